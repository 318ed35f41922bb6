"""Write every family's trace anew into ``presets/traces``: ``python -m benchmarks.traces``."""

from benchmarks.traces.modules import FAMILIES, trace_family
from nest_core.documents import preset_path
from nest_core.workload.tracing.own import as_document

for family in FAMILIES:
    path = preset_path("traces", f"{family}.json")
    path.write_text(
        as_document(family, "benchmarks.traces", trace_family(family)), encoding="utf-8"
    )
    print(path)
