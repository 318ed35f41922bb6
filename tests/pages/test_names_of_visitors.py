"""What visitors send to pages names presets: links, forged choices, uploads.

Browsers offer presets only, but whoever speaks to the server sends what they like. The interpreter
tells what is opened (`opened_files`).
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from opened_files import opened_below
from streamlit.testing.v1 import AppTest

APP = Path(__file__).resolve().parents[2] / "nest_studio" / "server" / "script.py"
SMALL = "llama2-7b-64-h100"
SECRET = "hunter2"
KEYS = ("fabric", "workload.model", "accelerator.profile", "accelerator")
KINDS = (".toml", ".json", ".graphml", "")


@pytest.fixture
def vault(tmp_path, monkeypatch):
    folder = tmp_path / "vault"
    folder.mkdir()
    for ending in KINDS:
        (folder / f"secret{ending}").write_text(f"{SECRET} = [\n{SECRET}\n")
    monkeypatch.chdir(folder)
    return folder


def everything(page: AppTest) -> str:
    """All that was sent to the browser, as text."""
    return "\n".join(str(element.proto) for element in page if getattr(element, "proto", None))


def kept(page, opened):
    assert not opened
    assert SECRET not in everything(page)
    assert not page.exception


@pytest.mark.parametrize("key", KEYS)
def test_a_comparisons_link_opens_no_file(key, vault):
    names = [f"secret{ending}" for ending in KINDS[:2]]
    names += [str(vault / f"secret{ending}") for ending in KINDS]
    page = AppTest.from_file(str(APP), default_timeout=120)
    page.query_params["compare"] = json.dumps(
        [[str(number), SMALL, {key: name}] for number, name in enumerate(names)]
    )
    with opened_below(vault) as opened:
        page.switch_page("../../pages/compare.py").run()
    kept(page, opened)
    assert len(re.findall(r"is left out: [A-Z][^.:]* must be", everything(page))) == 6


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("plan", "scenario"),
        ("plan", "fabric"),
        ("plan", "workload.model"),
        ("plan", "accelerator"),
        ("explore", "scenario"),
        ("explore", "workload.model"),
        ("workload", "layer.model"),
        ("workload", "layer.accelerator"),
        ("design", "fabric"),
    ],
)
@pytest.mark.sampled(3)
def test_a_choice_that_nobody_offered_opens_no_file(name, key, vault):
    page = AppTest.from_file(str(APP), default_timeout=120)
    page.query_params["scenario"] = SMALL
    page = page.run() if name == "plan" else page.switch_page(f"../../pages/{name}.py").run()
    offered = list(next(box for box in page.selectbox if box.key == key).options)
    for forged in ("secret.toml", str(vault / "secret.toml"), str(vault / "secret.json")):
        box = next(box for box in page.selectbox if box.key == key)
        box.options.append(forged)  # as a browser that was tampered with sends it
        box.set_value(forged)
        with opened_below(vault) as opened:
            page.run()
        kept(page, opened)
    assert next(box for box in page.selectbox if box.key == key).value in offered
