"""The Measurements page: logs in, sentences beside their fields, a stack kept and used on Plan."""

from __future__ import annotations

import html
import json
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from nest_core.api.measurements import Measurements, read_entries
from nest_core.calibration.logs import RunFacts
from nest_studio.session.own_fabric import KEPT_AS, OWN_STACK
from nest_studio.session.store import Database, Documents, StoredLinks, database_url

sys.path.append(str(Path(__file__).resolve().parents[1] / "calibration" / "logs"))
from printed_logs import megatron, text

SMALL = "llama2-7b-64-h100"
PINNED = {
    "search.tp": "exactly 1",
    "search.cp": "exactly 1",
    "search.micro_batch_sequences": "exactly 1",
    "search.zero": "exactly 1",
}
LOG = text(megatron([9.0, 8.0, 7.0, *[5.4] * 5]))
COMMAND = "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2"


@pytest.fixture
def measure_page(root):
    """``measure_page(**address)``: the page as it opens on an address's parameters."""

    def opened(**address):
        page = AppTest.from_file(
            str(root / "nest_studio" / "server" / "script.py"), default_timeout=120
        )
        for key, value in ({"scenario": SMALL} | PINNED | address).items():
            page.query_params[key] = value
        page.switch_page("../../pages/measure.py")
        return page.run()

    return opened


@pytest.fixture
def kept_key():
    """The key under which the store has one run."""
    entries = read_entries(LOG.encode(), "slow.log", RunFacts(columns={"accelerator": "H100"}))
    measurements = Measurements("mine", entries)
    return StoredLinks(Database(database_url())).put(measurements.to_json())


def text_of(page):
    return html.unescape(" ".join(element.proto.body for element in page.get("html")))


def widget(page, kind, key):
    return next(each for each in getattr(page, kind) if each.key == key)


def test_a_first_visit_says_what_to_bring(measure_page):
    page = measure_page()
    assert not page.exception
    assert "Drop what your jobs printed" in text_of(page)
    assert next(each for each in page.button if each.key == "measure-use").disabled


def test_a_dropped_log_is_read_fitted_and_planned_under(measure_page):
    page = measure_page()
    widget(page, "selectbox", "measure.device").set_value("h100-80gb")
    page.file_uploader[0].upload("slow.log", LOG.encode(), "text/plain").run()
    assert not page.exception
    assert not page.error
    said = text_of(page)
    assert "1 measured run, as read" in said
    assert "5.40 s" in said
    assert "Whole runs moves most" in said
    assert "under megatron-core-2025 and under my-cluster" in said
    assert page.query_params["measured"]


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (b"epoch 1\n", "without any"),
        (b"", "empty"),
        (LOG.encode(), "pick it, or take the scenario's"),
    ],
)
def test_what_cannot_be_read_is_said_beside_its_field_and_nothing_is_lost(
    measure_page, kept_key, held, said
):
    page = measure_page(measured=kept_key)
    page.file_uploader[0].upload("other.log", held, "text/plain").run()
    assert not page.exception
    assert said in " ".join(each.value for each in page.error)
    assert "--" not in " ".join(each.value for each in page.error)
    assert "1 measured run, as read" in text_of(page)


def test_a_command_alone_is_read_or_refused(measure_page):
    page = measure_page()
    page.text_area[0].set_value(COMMAND).run()
    assert "its global batch size" in page.error[0].value
    whole = (
        f"{COMMAND} --nnodes 4 --nproc-per-node 8 --micro-batch-size 1 --bf16 --num-layers 32 "
        "--hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --global-batch-size 128"
    )
    widget(page, "selectbox", "measure.device").set_value("h100-80gb")
    page.text_area[0].set_value(whole).run()
    assert not page.error
    assert "1 command, as read" in text_of(page)
    assert "No run was measured yet" in page.info[0].value


def test_what_is_kept_is_used_on_plan_renamed_and_deleted(measure_page, plan_page, kept_key):
    page = measure_page(measured=kept_key)
    widget(page, "button", "measure-keep-do").click().run()
    assert not page.exception
    store = Documents(Database(database_url()), "measurements")
    assert store.open("mine")["stack"]["name"] == "mine"
    widget(page, "button", "measure-keep-do").click().run()
    assert "Name must not be taken" in page.toast[0].value
    planned = plan_page(scenario=SMALL, stack=OWN_STACK, **{KEPT_AS: "mine"}, **PINNED)
    assert not planned.exception
    assert "Software: mine, calibrated" in text_of(planned)
    widget(page, "selectbox", "measure.kept").set_value("mine").run()
    widget(page, "text_input", "measure-name-mine").set_value("ours").run()
    next(each for each in page.button if each.label == "Rename").click().run()
    assert store.names() == ("ours",)
    assert store.open("ours")["stack"]["name"] == "ours"
    widget(page, "selectbox", "measure.kept").set_value("ours").run()
    next(each for each in page.button if each.label == "Delete").click().run()
    assert store.names() == ()
    gone = plan_page(scenario=SMALL, stack=OWN_STACK, **{KEPT_AS: "mine"}, **PINNED)
    assert not gone.exception
    assert "calibrated" not in text_of(gone)


def test_an_entry_is_left_out_and_its_file_does_not_bring_it_back(measure_page):
    page = measure_page()
    widget(page, "selectbox", "measure.device").set_value("h100-80gb")
    page.file_uploader[0].upload("slow.log", LOG.encode(), "text/plain").run()
    widget(page, "button", "measure-out-run-slow.log").click().run()
    assert not page.exception
    assert "as read" not in text_of(page)


def test_an_address_of_something_else_is_no_measurements(measure_page):
    key = StoredLinks(Database(database_url())).put({"name": "x", "entries": [json.loads("3")]})
    page = measure_page(measured=key)
    assert not page.exception
    assert "Drop what your jobs printed" in text_of(page)
