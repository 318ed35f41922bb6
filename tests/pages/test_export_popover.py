"""A plan taken along from a page: every framework's files as one download, or why not."""

from __future__ import annotations

import io
import re
import zipfile

import pytest
from streamlit.testing.v1 import AppTest

from nest_core.interop.exporters import RELEASES, ExportRefused, export_plan
from nest_core.planner import search
from nest_core.scenario import Scenario, scenario_document
from nest_studio.jobs.tasks.plans import OFFERED, plan_exports, zipped

PINNED = {"search.tp": 2, "search.cp": 1, "search.micro_batch_sequences": 1, "search.zero": 1}


@pytest.fixture(scope="module")
def request_of():
    """A scenario and its plan."""
    document, _ = scenario_document("llama2-7b-64-h100")
    scenario = Scenario(document, PINNED)
    return scenario, search(scenario.values.problem(), scenario.values.space).best


def test_every_target_gives_its_files_or_its_reason(request_of):
    scenario, best = request_of
    found = plan_exports(scenario, (best,), progress=lambda share, words: None, stop=lambda: False)
    assert [each.target for each in found] == list(OFFERED)
    refused = [each for each in found if each.refused]
    assert {each.label for each in refused} == {RELEASES["torchtitan"], RELEASES["deepspeed"]}
    for each in refused:
        assert not each.files
        with pytest.raises(ExportRefused) as error:
            export_plan(each.target, scenario.values, best)
        assert str(error.value) == each.refused
    for each in found:
        if each not in refused:
            bundle = export_plan(each.target, scenario.values, best)
            assert (each.files, each.notes) == (dict(bundle.files), tuple(bundle.notes))


def test_an_archive_has_the_same_bytes_and_scripts_that_run():
    files = {"launch.sh": "#!/bin/sh\n", "plan.args": "--x\n"}
    content = zipped(files)
    assert content == zipped(files)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == files
        modes = [entry.external_attr >> 16 & 0o777 for entry in archive.infolist()]
    assert modes == [0o755, 0o644]


def test_the_popover_offers_them(request_of):
    def page(text, ranked):
        from nest_studio.plan.view import framework_exports

        framework_exports(text, ranked, "mine")

    scenario, best = request_of
    shown = AppTest.from_function(page, args=(scenario, (best,))).run()
    assert not shown.exception
    labels = [each.proto.label for each in shown.get("download_button")]
    assert labels == [
        f"↓ {RELEASES[target]} (zip)" for target in ("megatron", "nemo", "maxtext", "slurm")
    ]
    assert all(re.search(r"\d", label) for label in labels)
    said = " ".join(each.proto.body for each in shown.get("html"))
    assert "DeepSpeed 0.19.8: Sequence parallel (sp) must be off" in said
