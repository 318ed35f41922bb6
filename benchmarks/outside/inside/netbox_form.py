"""What NetBox's form for the bulk import of cables takes, read off its source, as JSON.

``PYTHON netbox_form.py``: ``fields``, those ``needed``, and ``choices`` by the class that has them.
"""

import ast
import json
import sysconfig
from pathlib import Path

PACKAGES = Path(sysconfig.get_path("purelib"))
CHOICES = ("CableTypeChoices", "LinkStatusChoices", "CableLengthUnitChoices")


def classes(name: str) -> dict[str, ast.ClassDef]:
    """Return the classes of a source by name."""
    tree = ast.parse((PACKAGES / name).read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def assigned(owner: ast.ClassDef) -> dict[str, ast.expr]:
    """Return what a class assigns, by name."""
    return {
        ast.unparse(node.targets[0]): node.value
        for node in owner.body
        if isinstance(node, ast.Assign)
    }


if __name__ == "__main__":
    form = classes("dcim/forms/bulk_import.py")["CableImportForm"]
    meta = next(node for node in form.body if isinstance(node, ast.ClassDef))
    calls = {n: call for n, call in assigned(form).items() if isinstance(call, ast.Call)}
    sets = classes("dcim/choices.py")
    choices = {
        name: [v.value for v in assigned(sets[name]).values() if isinstance(v, ast.Constant)]
        for name in CHOICES
    }
    optional = "required=False"
    needed = [n for n, c in calls.items() if optional not in map(ast.unparse, c.keywords)]
    fields = ast.literal_eval(assigned(meta)["fields"])
    print(json.dumps({"fields": fields, "needed": needed, "choices": choices}))
