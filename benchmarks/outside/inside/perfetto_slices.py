"""Print what Perfetto's trace processor reads of a trace, as JSON."""

import json
import sys

from perfetto.trace_processor import TraceProcessor

with TraceProcessor(trace=sys.argv[1]) as processor:
    slices = [
        [row.ts, row.dur, row.name] for row in processor.query("select ts, dur, name from slice")
    ]
    counters = next(iter(processor.query("select count(*) as n from counter"))).n
    names = [
        row.name
        for table in ("process", "thread")
        for row in processor.query(f"select name from {table}")
        if row.name
    ]
    errors = [
        f"{row.name}: {row.value}"
        for row in processor.query(
            "select name, value from stats where severity = 'error' and value"
        )
    ]
if errors:
    sys.exit("; ".join(errors))
print(json.dumps({"slices": slices, "counters": counters, "names": names}))
