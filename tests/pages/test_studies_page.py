"""Studies on the Explore page: open one, run it, read it, and what is refused."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from streamlit.testing.v1 import AppTest

from nest_core.documents.errors import InputError
from nest_core.studies import engine
from nest_core.studies.rows import StudyRow, rows_of
from nest_core.studies.study import study_of
from nest_studio.explore import studies as study_view
from nest_studio.jobs import study_runs
from nest_studio.session import stored
from nest_studio.session.store import Database, Documents, database_url

TINY = """
schema = 1
name = "Tiny study"
question = "Which ZeRO stage?"
scenario = "llama2-7b-64-h100"
metrics = ["tokens_per_s", "memory_GiB"]

[overrides]
"search.tp" = [8]
"search.pp" = [1]
"search.micro_batch_sequences" = [1]
"search.recompute" = ["none"]

[[axes]]
parameter = "zero"
values = [1, 3]

[[axes]]
parameter = "batch"
values = [256, 512]

[constraints]
memory_GiB = { max = 1 }
"""


@pytest.fixture
def studies_page(root):
    """``studies_page(text)``: the page with a study that is kept under a name."""

    def opened(text):
        Documents(Database(database_url()), "studies").save("mine", {"toml": text}, replace=True)
        page = AppTest.from_file(
            str(root / "nest_studio" / "server" / "script.py"), default_timeout=120
        )
        page.query_params["scenario"] = "llama2-7b-64-h100"
        page.query_params["explore.asks"] = "Studies"
        page.query_params["study.name"] = "mine"
        page.switch_page("../../pages/explore.py")
        return page.run()

    return opened


def test_a_study_with_its_own_scenario_has_no_form_beside_it(studies_page):
    """The rail showed a scenario that the study did not run."""
    page = studies_page(TINY)
    mark = '<i class="nest-mark nest-formless">'
    assert mark in text_of(page)
    page.selectbox(key="study.name").set_value(study_view.MINE).run()
    assert mark not in text_of(page)


def ended(page):
    """The page once its study has ended."""
    until = time.monotonic() + 100
    while any(button.key == "study-cancel" for button in page.button):
        assert time.monotonic() < until
        time.sleep(0.2)
        page.run()
    return page.run()


def text_of(page):
    return " ".join(str(each.body) for each in page.get("html"))


def test_a_study_runs_on_the_page_and_its_rows_are_those_of_the_store(studies_page):
    page = studies_page(TINY)
    assert not page.exception
    assert "Tiny study" in text_of(page)
    assert "4 points" in text_of(page)
    assert f"Kept {datetime.now(UTC):%d %b %Y}, " in text_of(page)
    page.button(key="study-run").click().run()
    page = ended(page)
    assert not page.exception
    study = study_of(study_document())
    rows = list(rows_of(study, stored.answers()))
    assert len(rows) == 4
    (shown,) = (each.value for each in page.dataframe)
    assert list(shown["tokens_per_s"]) == [row["tokens_per_s"] for row in rows]
    assert not any(button.key == "study-run" for button in page.button)
    page.toggle(key="study.meets").set_value(True).run()
    assert not page.exception
    assert not len(page.dataframe) or not len(page.dataframe[0].value)


def study_document():
    import tomllib

    return tomllib.loads(TINY)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"zero"', '"zeroo"', "must be a parameter of the scenario"),
        ("schema = 1", "schema = 2", "schema"),
        ("[[axes]]", "[[axes]", "must be valid TOML"),
        ("llama2-7b-64-h100", "../secret", "scenario"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_the_text_stays(studies_page, old, new, said):
    page = studies_page(TINY.replace(old, new))
    assert not page.exception
    (error,) = page.error
    assert said.lower() in error.value.replace("\\", "").lower()
    assert new in page.text_area(key="study.text").value


def test_two_studies_run_at_a_time_and_a_third_waits(job_queue_stub):
    runs = [
        study_runs.begin(name, job_queue_stub, None, lambda *_: time.sleep(0.5))
        for name in ("a", "b")
    ]
    assert study_runs.begin("a", job_queue_stub, None, None) is runs[0]
    with pytest.raises(InputError, match="at most 2 run at a time"):
        study_runs.begin("c", job_queue_stub, None, None)
    assert all(run.wait(10) for run in runs)


def test_runs_that_ended_are_forgotten_in_turn(job_queue_stub):
    for number in range(study_runs.KEPT + 5):
        run = study_runs.begin(str(number), job_queue_stub, None, lambda *_: None)
        assert run.wait(10)
    assert len(study_runs._runs) == study_runs.KEPT
    assert study_runs.running("0") is None
    assert study_runs.running(str(number)) is run


def test_what_failed_is_said(studies_page, monkeypatch):
    page = studies_page(TINY.replace("Tiny study", "Failing study"))
    study = study_of(study_document() | {"name": "Failing study"})
    failed = stored.answers()
    ended = engine.StudyProgress(points=4, computed=4, reused=0, failed=4)
    for number in range(4):
        key = study.key(study.members[0], study.overrides(number))
        failed.put({key: StudyRow("failed", "ValueError: made up")})
    run = study_runs.StudyRun(failed)
    run.result = ended
    run._ended.set()
    monkeypatch.setattr(study_view, "running", lambda key: run)
    page.session_state["study rows"] = (None, [], 0.0)
    page.run()
    (said,) = page.warning
    assert said.value == "4 points failed; the first: ValueError: made up"
    assert page.button(key="study-run").label == "Run"


@pytest.fixture
def job_queue_stub(monkeypatch):
    monkeypatch.setattr(study_runs, "_runs", {})
    return object()
