"""NetBox's bulk import of cables beside the rows that we write for it.

Its form and its choices are read off their source: fields, those that are needed, values of type,
status and unit. A comma in a name of a device or an interface would be several of them.
"""

import csv
import io
import json

from benchmarks.outside.tool import Row, Tool, reasons
from nest_core.bill.cables import cable_schedule, csv_lines
from nest_core.bill.prices import load_prices
from nest_core.documents import InputError
from nest_core.documents.presets import preset_names
from nest_core.scenario import load_fabric

TOOL = Tool("netbox", "4.7.3", alone=("netbox==4.7.3",), python="3.12")
MAX_DEVICES = 1056
CHOICES = {
    "type": "CableTypeChoices",
    "status": "LinkStatusChoices",
    "length_unit": "CableLengthUnitChoices",
}


def rows() -> list[Row]:
    """Return how many files of cables fit the form."""
    form = json.loads(TOOL.run("netbox_form.py"))
    fields, needed = set(form["fields"]), set(form["needed"])
    allowed = {key: {"", *form["choices"][name]} for key, name in CHOICES.items()}
    tried, cables, wrong = 0, 0, []
    for name in preset_names("fabrics"):
        fabric = load_fabric(name)
        if fabric.devices > MAX_DEVICES:
            continue
        try:
            schedule = cable_schedule(fabric, load_prices())
        except InputError:
            continue
        tried += 1
        table = list(csv.DictReader(io.StringIO("".join(csv_lines(schedule.cables, "netbox")))))
        cables += len(table)
        faults = {f"{key} is no column" for key in table[0].keys() - fields}
        faults |= {f"{key} is missing" for key in needed - table[0].keys()}
        for row in table:
            faults |= {f"{key} {row[key]}" for key in CHOICES if row[key] not in allowed[key]}
            faults |= {f"{key} is empty" for key in needed if not row[key]}
            ends = {key: text for key, text in row.items() if key.startswith("side")}
            faults |= {f"a comma in {key}: {text}" for key, text in ends.items() if "," in text}
            faults |= {"a long label"} if len(row["label"]) > 100 else set()
        wrong += [f"{name}: {', '.join(sorted(faults)[:3])}"] if faults else []
    what = f"bulk import of cables, of fabrics up to {MAX_DEVICES:,} devices: columns, choices"
    return [TOOL.row(what, tried, tried - len(wrong), f"{cables:,} cables. {reasons(wrong)}")]
