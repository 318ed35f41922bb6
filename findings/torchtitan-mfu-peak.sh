#!/usr/bin/env bash
# torchtitan 0.3.0: on an H800 it prints an MFU 3.2 times too high, and an L40S is taken for an A100.
#
# The MFU of its metrics line is against a peak that is looked up by the device's name. H800 is not
# in that table (H20, H100 in three kinds, H200, GH200 are), nor are A800 and L40S: what is missing
# has the 312 TFLOP/s of an A100, and one warning among the first lines is all that says so. A run at
# 40 % of an H800's 989 TFLOP/s prints "mfu: 126.79%", and one at 30 % prints a believable 95 %. Up to
# 0.1.0 a B200 had 4,500 TFLOP/s, its rate with sparsity, so that its MFU is half of what 0.3.0 prints
# for the same speed.
#
# Guessed before it was run: 989 TFLOP/s for an H800, 362 for an L40S.
# Who compares runs by MFU takes tokens per second (tps) instead, or divides by the right peak.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
for version in 0.1.0 0.3.0; do
    "$folder/env/bin/pip" install --quiet --disable-pip-version-check --no-deps \
        --target "$folder/$version" "torchtitan==$version"
done
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import ast
import re
from pathlib import Path
from types import SimpleNamespace

NAMES = ("NVIDIA H100 80GB HBM3", "NVIDIA H800", "NVIDIA L40S", "NVIDIA H20", "NVIDIA B200")


def refuse(*_, **__):
    raise FileNotFoundError("lspci")


def peaks(version):
    """Run the release's own look-up; lspci, which knows some names better, is not there."""
    tree = ast.parse(Path(version, "torchtitan/tools/utils.py").read_text())
    parts = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "get_peak_flops"]
    warnings = []
    surroundings = {
        "subprocess": SimpleNamespace(run=refuse, PIPE=None, CalledProcessError=OSError),
        "logger": SimpleNamespace(warning=warnings.append),
        "re": re,
    }
    exec(compile(ast.Module(parts, []), version, "exec"), surroundings)
    found = {name: surroundings["get_peak_flops"](name) / 1e12 for name in NAMES}
    print(version, found, [w for w in warnings if "undefined" in w])
    return found


before, now = peaks("0.1.0"), peaks("0.3.0")
assert now["NVIDIA H100 80GB HBM3"] == 989 and now["NVIDIA H20"] == 148, now
assert now["NVIDIA H800"] == now["NVIDIA L40S"] == 312, now
assert before["NVIDIA B200"] == 2 * now["NVIDIA B200"] == 4500, (before, now)
print(f"40 % of an H800 is printed as {0.4 * 989 / now['NVIDIA H800']:.2%}")
print("as described")
PYTHON
