"""``nest-studio trace package.module:build``: a person's own module, and what can be wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("torch_installed")

MLP = """
import torch
from torch import nn

def plain():
    return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)), torch.zeros(2, 8, 64)

def sized():
    module, x = plain()
    return module, (x,), {"hidden": 64, "ffn": 256, "sequence": 8}

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(70, 66, bias=False) for _ in range(3))
        self.output = nn.Linear(66, 70, bias=False)

    def forward(self, x):
        q, k, v = (each(x).view(2, 16, 6, 11).transpose(1, 2)
                   for each in (self.query, self.key, self.value))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.output(y.transpose(1, 2).flatten(2))

def block():
    sizes = {"hidden": 70, "heads": 6, "head_dim": 11, "sequence": 16, "micro_batch": 2}
    return Block(), torch.zeros(2, 16, 70), sizes

def layered():
    tokens = torch.zeros(2, 16, dtype=torch.long)
    return {"embedding": (nn.Embedding(500, 70), tokens),
            "block": (*block(), 3),
            "head": (nn.Linear(70, 500), torch.zeros(2, 16, 70))}

def model():
    sizes = block()[2]
    layers = layered()
    layers["embedding"] = (*layers["embedding"], sizes | {"vocabulary": 500})
    layers["head"] = (*layers["head"], sizes | {"vocabulary": 500})
    return layers

def clashing():
    layers = model()
    layers["head"] = (*layers["head"][:2], {"hidden": 500, "vocabulary": 70})
    return layers

def two_heads():
    return {**model(), "head": (*model()["head"], 2)}

def vast():
    module = nn.Sequential(*(nn.Linear(65536, 65536, bias=False) for _ in range(8)))
    return module, torch.zeros(4, 65536)

def initialised():
    module = nn.Linear(4, 4)
    assert module.weight.sum().item() != 0
    return module, torch.zeros(1, 4)

number = 5
def needs(argument): return argument
def fails(): raise RuntimeError("no weights\\nat all")
def nothing(): return None
def single(): return nn.Linear(2, 2)
def swapped(): return torch.zeros(1, 2), nn.Linear(2, 2)
def empty(): return {}
def no_tensor(): return nn.Linear(2, 2), 7
def odd_kind(): return {"tower": (nn.Linear(2, 2), torch.zeros(1, 2))}
def odd_count(): return {"block": (nn.Linear(2, 2), torch.zeros(1, 2), {}, 0)}
def odd_symbol(): return nn.Linear(2, 2), torch.zeros(1, 2), {"width": 2}
def odd_size(): return nn.Linear(2, 2), torch.zeros(1, 2), {"hidden": 2.0}
def equal_sizes(): return nn.Linear(2, 2), torch.zeros(1, 2), {"hidden": 2, "ffn": 2}
def odd_sizes(): return nn.Linear(2, 2), torch.zeros(1, 2), [2]
def leaves(): raise SystemExit(7)
class Mute(Exception):
    def __str__(self): raise ValueError
def mute(): raise Mute
def prints(): print("HELLO"); return plain()
def wrong_input(): return nn.Linear(2, 2), torch.zeros(1, 3)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a person's package, as the working folder."""
    package = tmp_path / "theirs"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "models.py").write_text(MLP)
    (package / "broken.py").write_text("import torch\nimport not_there_either\n")
    (package / "wrong.py").write_text("def build(:\n")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "theirs"]:
        del sys.modules[name]


def own(target: str, folder: Path) -> Any:
    from nest_core.workload.tracing.own import trace_own

    return trace_own(f"theirs.models:{target}", folder)


def told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    from nest_studio.cli import run

    code = run(["trace", *arguments])
    output = capsys.readouterr()
    return code, output.out, output.err


def test_sizes_without_names_stay_numbers(folder):
    (layer,) = own("plain", folder)
    assert (layer.kind, layer.count, layer.parameters) == ("block", 1, 2 * 64 * 256 + 64 + 256)
    assert [(node["name"], node["op"]) for node in layer.nodes] == [
        ("input", "input"),
        ("0", "linear"),
        ("1", "elementwise"),
        ("2", "linear"),
    ]
    assert layer.nodes[1]["shape"] == [[2], [8], [256]]


def test_named_sizes_become_symbols(folder):
    (layer,) = own("sized", folder)
    assert layer.nodes[1]["shape"] == [[2], ["sequence"], ["ffn"]]
    assert layer.nodes[1]["weights"] == [[["ffn"], ["hidden"]], [["ffn"]]]


def test_the_command_prints_a_strategys_share(folder, capsys):
    """Half the heads per rank: half the weights and products, two exchanges."""
    whole = json.loads(told(["theirs.models:block", "--json"], capsys)[1])
    code, out, _ = told(["theirs.models:block", "--strategy", "tp=2,sp=true", "--json"], capsys)
    half = json.loads(out)
    assert code == 0
    assert whole["parameters"] == half["parameters"] == 4 * 70 * 66
    (before,), (after,) = whole["layers"], half["layers"]
    projections = 4 * 2 * 32 * 70 * 66
    attention = 4 * 2 * 6 * 16 * 16 * 11 / 2
    assert before["flops"] == projections + attention
    assert after["flops"] == before["flops"] / 2
    assert after["parameter_bytes"] == before["parameter_bytes"] / 2 == 4 * 70 * 66
    assert sorted((call["op"], call["bytes"]) for call in after["collectives"]) == [
        ("all_gather", 2 * 16 * 70 * 2), ("reduce_scatter", 2 * 16 * 70 * 2),
    ]  # fmt: skip
    assert before["collectives"] == []


def test_layers_by_kind_and_a_saved_trace(folder, capsys):
    code, out, _ = told(["theirs.models:layered", "--output", "mine.json", "--json"], capsys)
    fields = json.loads(out)
    assert code == 0
    assert [(layer["kind"], layer["count"]) for layer in fields["layers"]] == [
        ("embedding", 1),
        ("block", 3),
        ("head", 1),
    ]
    assert fields["parameters"] == 2 * 500 * 70 + 500 + 3 * 4 * 70 * 66
    saved = json.loads((folder / "mine.json").read_text())
    assert saved["family"] == "mine"
    assert list(saved["layers"]) == ["embedding", "block", "head"]
    from nest_core.workload.graph import graph_of

    assert graph_of("block", saved["layers"]["block"]).output.op == "elementwise"


def test_a_traced_module_is_planned(folder, capsys):
    """Its chain of layers at true sizes; ranks that share its heads exchange what they add up."""
    from nest_studio.cli import run

    assert told(["theirs.models:model", "--output", "mine.json"], capsys)[0] == 0
    true = {"hidden": 8192, "heads": 64, "head_dim": 128, "vocabulary": 32000, "blocks": 80}
    changes = {"model": '"mine.json"', **{f"model.{size}": n for size, n in true.items()}}
    sets = [f"--set=workload.{key}={value}" for key, value in changes.items()]
    sets += ["--set=search.tp=8", "--set=search.sp=true", "--set=search.pp=[1, 2]"]
    code = run(["plan", "llama2-7b-64-h100", *sets, "--set=baselines.names=[]", "--json"])
    output = capsys.readouterr()
    assert code == 0, output.err
    fields = json.loads(output.out)
    assert fields["feasible"]
    assert fields["certificate"]["proven"]
    assert fields["plan"]["tp"] == 8
    assert fields["stages"][-1]["layers"][1] == 82
    assert fields["stages"][0]["communication_s"] > 0


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("clashing", r"head sizes\.(hidden|vocabulary) must be \d+ in every layer"),
        ("two_heads", r"head must stand once in a model, but is 2"),
    ],
)
def test_layers_that_make_no_model_are_not_saved(folder, capsys, target, message):
    code, _, err = told([f"theirs.models:{target}", "--output", "mine.json"], capsys)
    assert code == 2
    assert re.search(message, err)
    assert not (folder / "mine.json").exists()


def test_what_a_module_prints_is_not_the_answer(folder, capsys):
    code, out, err = told(["theirs.models:prints", "--json"], capsys)
    assert code == 0
    assert json.loads(out)["model"] == "theirs.models:prints"
    assert "HELLO" in err


def test_people_read_a_table(folder, capsys):
    code, out, _ = told(["theirs.models:layered"], capsys)
    assert code == 0
    assert out.splitlines()[2].split()[:2] == ["layer", "count"]
    assert [line.split()[0] for line in out.splitlines()[3:6]] == ["embedding", "block", "head"]


@pytest.mark.check
def test_a_vast_module_takes_no_memory(folder):
    """Eight matrices of 17 GB each, within 2 GB of address space more than at the start."""
    script = """
import resource, torch
from pathlib import Path
from nest_core.workload.tracing.own import trace_own
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
(layer,) = trace_own("theirs.models:vast", Path.cwd())
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(layer.parameters, grown * 1024 < 1e9)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == [str(8 * 65536**2), "True"]


def test_initialisations_that_read_values_still_work(folder):
    (layer,) = own("initialised", folder)
    assert layer.parameters == 20


WRONG = {
    "theirs.nowhere:build": r"module theirs\.nowhere must be importable, but is 'not found'",
    "nowhere.at_all:build": r"module nowhere\.at_all must be importable, but is 'not found'",
    "theirs.broken:build": r"theirs\.broken .*ModuleNotFoundError: .*not_there_either",
    "theirs.wrong:build": r"theirs\.wrong must be importable, but is 'SyntaxError",
    "theirs.models:absent": r"must have absent, but is 'without absent'",
    "theirs.models:number": r"must be a function without arguments, but is 'int'",
    "theirs.models:needs": r"must return a module, but is .*TypeError",
    "theirs.models:fails": r"RuntimeError: no weights'",
    "theirs.models:leaves": r"must return a module, but is 'SystemExit: 7'",
    "theirs.models:mute": r"must return a module, but is 'Mute'",
    "theirs.models:nothing": r"must return \(module, inputs\).*'NoneType'",
    "theirs.models:single": r"must return \(module, inputs\).*'Linear'",
    "theirs.models:swapped": r"must return a torch\.nn\.Module first, but is 'Tensor'",
    "theirs.models:empty": r"'an empty mapping'",
    "theirs.models:no_tensor": r"must return example inputs second, tensors, but is 'int'",
    "theirs.models:odd_kind": r"must name layers embedding, block, moe_block, head, but is 'tower'",
    "theirs.models:odd_count": r"must stand 1 to 2,000 times in a row, but is 0",
    "theirs.models:odd_symbol": r"sizes must be of micro_batch, .*but is 'width'",
    "theirs.models:odd_size": r"sizes\.hidden must be a whole number of 2 or more, but is 2\.0",
    "theirs.models:equal_sizes": r"sizes\.hidden must differ from ffn, but is 2",
    "theirs.models:odd_sizes": r"must return sizes third, a dictionary, but is 'list'",
    "theirs.models:wrong_input": r"module Linear must be traceable by torch\.export",
    "not a name:build": r"MODEL must read package\.module:build",
    "os:": r"MODEL must read package\.module:build",
}


@pytest.mark.parametrize("target", WRONG)
def test_what_is_wrong_is_one_sentence(folder, capsys, target):
    code, out, err = told([target], capsys)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert re.search(WRONG[target], err)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ("ep=2", "--strategy ep must be 1 where build() gives no size that it divides"),
        ("tp=4", "tp must divide the model's 6 heads"),
        ("cp=3", "cp must divide the sequence of 16 tokens"),
    ],
)
def test_a_strategy_needs_sizes_that_it_divides(folder, capsys, strategy, message):
    code, _, err = told(["theirs.models:block", "--strategy", strategy], capsys)
    assert code == 2
    assert err.startswith(message)
