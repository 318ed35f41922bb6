"""Plotly figures of core values, as pure functions: for pages, notebooks and reports alike."""

from nest_core.report.figures.entries import MethodRow, entries, throughput_figure
from nest_core.report.figures.levels import level_figure, linkload_figure
from nest_core.report.figures.stages import balance_figure, memory_figure
from nest_core.report.figures.style import Chart
from nest_core.report.figures.timeline import timeline_figure

__all__ = [
    "Chart",
    "MethodRow",
    "balance_figure",
    "entries",
    "level_figure",
    "linkload_figure",
    "memory_figure",
    "throughput_figure",
    "timeline_figure",
]
