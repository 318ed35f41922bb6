"""Traces of simulated iterations in Perfetto's own trace processor.

The package is from PyPI; its program is fetched by the package itself, from Google's storage. All
slices, threads, processes and counters that we wrote are asked for in SQL.
"""

import json

from benchmarks.outside.tool import BUILD, Missing, Row, Tool
from nest_core.api.simulate import simulate

TOOL = Tool("perfetto", "0.59.1", ("perfetto==0.59.1",))
WHAT = "slices, counters and names of traces"
CASES = {
    "llama2-7b-64-h100": "dp=8,tp=2,pp=4,sp=true,zero=2",
    "llama3-70b-1024-h100": "dp=64,tp=4,pp=4,sp=true,zero=1",
}


def rows() -> list[Row]:
    """Return how many of the events it reads as they were written."""
    tried = accepted = 0
    for name, plan in CASES.items():
        text = "\n".join(simulate(name, plan).trace())
        file = BUILD / "perfetto" / f"{name}.json"
        TOOL.interpreter()
        file.write_text(text)
        try:
            read = json.loads(TOOL.run("perfetto_slices.py", file))
        except Missing as error:
            if "curl" not in str(error) and "URL" not in str(error):
                raise
            raise Missing(
                "the package fetches its program from Google's storage, out of reach here; "
                "tests/simulator/test_trace.py holds traces against the format's rules"
            ) from None
        events = json.loads(text)["traceEvents"]
        slices = [event for event in events if event["ph"] == "X"]
        tried += len(slices)
        written = sorted(
            [round(1e3 * event["ts"]), round(1e3 * event["dur"]), event["name"]] for event in slices
        )
        accepted += sum(a == b for a, b in zip(written, sorted(read["slices"]), strict=True))
        counters = [event for event in events if event["ph"] == "C"]
        names = {
            event["args"]["name"]
            for event in events
            if event["ph"] == "M" and "name" in event["args"]
        }
        if read["counters"] != len(counters) or not names <= set(read["names"]):
            return [TOOL.row(WHAT, tried, 0, f"{name}: counters or names are missing")]
    return [TOOL.row(WHAT, tried, accepted, "times to the nanosecond, none overlaps on its thread")]
