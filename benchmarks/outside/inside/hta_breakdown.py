"""Prints idle and hidden shares of traces, as HolisticTraceAnalysis finds them."""

import json
import logging
import sys

from hta.trace_analysis import TraceAnalysis

logging.disable(logging.CRITICAL)
answers = []
for file in sys.argv[1:]:
    analysis = TraceAnalysis(trace_files={0: file})
    parts = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    overlap = analysis.get_comm_comp_overlap(visualize=False).iloc[0]
    answers.append([float(parts["idle_time_pctg"]), float(overlap["comp_comm_overlap_pctg"])])
print(json.dumps(answers))
