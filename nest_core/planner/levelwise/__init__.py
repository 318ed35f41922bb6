"""The paper's level-wise dynamic program on own costs, a planner beside the exact search."""

from nest_core.planner.levelwise.outer import PAPER_ORDER, Slots, slots
from nest_core.planner.levelwise.program import Promise, Promises, levelwise
from nest_core.planner.levelwise.tables import LevelLinks, level_links

__all__ = [
    "PAPER_ORDER",
    "LevelLinks",
    "Promise",
    "Promises",
    "Slots",
    "level_links",
    "levelwise",
    "slots",
]
