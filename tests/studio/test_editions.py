"""Answers after a preset was edited: none is an old one, however it was named."""

from __future__ import annotations

import os
import shutil

import pytest
from worker_tasks import LONG_S, squared

from nest_core.documents import presets
from nest_core.hardware import load_accelerator, load_family
from nest_core.scenario import Scenario, scenario_document
from nest_studio.jobs.waiting import JobQueue

SCENARIO = "llama2-7b-64-h100"


@pytest.fixture
def own_presets(tmp_path, monkeypatch):
    """A copy of all presets, which may be written to."""
    copy = tmp_path / "presets"
    shutil.copytree(presets.preset_path(), copy)
    monkeypatch.setattr(presets, "_root", lambda: copy)
    look_again()
    yield copy
    look_again()


def look_again():
    """Files are looked at once a second."""
    presets.look_again()


def request():
    document, _ = scenario_document(SCENARIO)
    return Scenario(document)


def edit(path, before, after):
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after), "utf-8")
    look_again()


def test_a_request_after_an_edit_is_another_request(own_presets):
    """A failure: what was kept under a preset's name is shown though its file says otherwise."""
    first = request()
    before = first.values.problem().memory_bytes
    file = own_presets / "accelerators" / "h100-80gb.toml"
    edit(file, "memory_GiB = 80.0", "memory_GiB = 96.0")
    again = request()
    assert again != first
    assert again.values.problem().memory_bytes == before * 96 / 80


def test_any_preset_that_changes_makes_another_edition(own_presets):
    """A failure: answers stay that took figures from a file of another kind than was thought of."""
    seen = {request()}
    for kind in sorted(os.listdir(own_presets)):
        file = min(path for path in (own_presets / kind).rglob("*") if path.is_file())
        file.write_bytes(file.read_bytes() + b"\n")
        look_again()
        found = request()
        assert found not in seen, kind
        seen.add(found)


def test_a_preset_read_before_is_read_again(own_presets):
    """A failure: a family's fitted parameters are those that it had when the server started."""
    name = load_accelerator("h100-80gb").family.name
    before = load_family(name)
    file = own_presets / "estimators" / f"{name}.toml"
    file.write_text(file.read_text("utf-8") + "\n", "utf-8")
    look_again()
    assert load_family(name) is not before
    assert load_family(name) is load_family(name)


def test_a_worker_that_read_other_presets_is_replaced(own_presets):
    job_queue = JobQueue(workers=1)
    try:
        first = job_queue.ask("first", squared, 1).result(LONG_S)
        assert job_queue.ask("second", squared, 1).result(LONG_S) == first
        edit(
            own_presets / "accelerators" / "h100-80gb.toml",
            "memory_GiB = 80.0",
            "memory_GiB = 96.0",
        )
        assert job_queue.ask("third", squared, 1).result(LONG_S) != first
    finally:
        job_queue.close()
