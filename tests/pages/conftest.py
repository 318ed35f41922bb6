"""The studio without a browser."""

from __future__ import annotations

import functools
import importlib
from functools import partial
from multiprocessing import spawn
from pathlib import Path

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Selectbox

from nest_studio.compare import state as compare_state
from nest_studio.form import fabric as fabric_forms
from nest_studio.form import scenario as forms
from nest_studio.form.fields import fold
from nest_studio.jobs import waiting as jobs
from nest_studio.jobs.tasks.plans import levelwise_program
from nest_studio.jobs.tasks.requests import priced_baselines
from nest_studio.plan import state as plan_state
from nest_studio.session.store import Database

# As servers do before their first visitor (`readiness`): Streamlit and plotly import it when they
# first need it, the one for a page and the other where a worker's figure arrives, both at once.
importlib.import_module("pandas")

APP = Path(__file__).resolve().parents[2] / "nest_studio" / "server" / "script.py"


@pytest.fixture(scope="session", autouse=True)
def workers_leave_scripts_alone():
    """Streamlit leaves its script as the main module, which new processes would run again."""
    prepared = spawn.get_preparation_data

    def without_main(name):
        data = prepared(name)
        return {key: value for key, value in data.items() if not key.startswith("init_main")}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spawn, "get_preparation_data", without_main)
        yield


@pytest.fixture(scope="session", autouse=True)
def components_are_sought_once():
    """Streamlit's test client looks through all installed packages for components at every run."""
    with pytest.MonkeyPatch.context() as patch:
        found = functools.cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", found)
        yield


@pytest.fixture(scope="session", autouse=True)
def boxes_send_what_was_typed():
    """Streamlit's test client has no state for a box whose text is none of its options."""
    sound = Selectbox._widget_state.fget

    def state(box):
        try:
            return sound(box)
        except ValueError:
            return WidgetState(id=box.id, string_value=box.value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Selectbox, "_widget_state", property(state))
        yield


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Pages wait for their jobs: nobody runs them again when a job ends, or edits them again."""
    monkeypatch.setattr(jobs, "MOMENT_S", 100.0)
    monkeypatch.setattr(jobs, "QUIET_S", 0.0)


@pytest.fixture(autouse=True)
def no_baselines(request, monkeypatch):
    """Plans stand alone, and no page waits for what they are beside, but where a test says so."""
    if request.node.get_closest_marker("baselines"):
        return

    ask = jobs.JobQueue.ask

    def asked(queue, key, function, *args, **how):
        if function not in (priced_baselines, levelwise_program):
            return ask(queue, key, function, *args, **how)
        job = jobs.WorkerJob(key)
        job.set_result(() if function is priced_baselines else None)
        return job

    monkeypatch.setattr(jobs.JobQueue, "ask", asked)


@pytest.fixture
def shut_folds():
    """Groups of the form are shut at first, as visitors find them."""


@pytest.fixture(autouse=True)
def open_folds(request, monkeypatch):
    """Groups of the form are open at first, so that every field is drawn; but for `shut_folds`."""
    if "shut_folds" not in request.fixturenames:
        for module in (fabric_forms, forms):
            monkeypatch.setattr(module, "fold", partial(fold, opened=True))


@pytest.fixture
def usual_default():
    """Who asks for nothing in particular gets what visitors get."""


@pytest.fixture(autouse=True)
def at_once(request, monkeypatch):
    """Jobs are done where they are asked for, once per key: pages wait for no worker.

    Who asks for nothing in particular gets a small fabric. Tests that are about workers are
    marked so, those about the default ask for `usual_default`.
    """
    if request.node.get_closest_marker("workers"):
        return
    monkeypatch.setattr(jobs.JobQueue, "ask", _done)
    if "usual_default" not in request.fixturenames:
        for module in (forms, compare_state, plan_state):
            monkeypatch.setattr(module, "DEFAULT_SCENARIO", "llama2-7b-64-h100")


_DONE: dict[str, jobs.WorkerJob] = {}


def _done(_queue, key, function, *args, urgent=True, wanted_by=None):
    if key not in _DONE:
        job = _DONE[key] = jobs.WorkerJob(key)
        try:
            job.set_result(function(*args, progress=lambda share, words: None, stop=lambda: False))
        except Exception as error:
            job.set_exception(error)
    return _DONE[key]


def _opened(name: str, **address: str) -> AppTest:
    page = AppTest.from_file(str(APP), default_timeout=120)
    for key, value in address.items():
        page.query_params[key] = value
    page.switch_page(f"../../pages/{name}.py")
    return page.run()


@pytest.fixture
def plan_page():
    """``plan_page(**address)``: the page as it opens on an address's parameters."""
    return partial(_opened, "plan")


@pytest.fixture
def page_at():
    """``page_at(name, **address)``: any page, likewise."""
    return _opened


@pytest.fixture
def fabric_page():
    """``fabric_page(**address)``: the Design page, likewise."""
    return partial(_opened, "design")


@pytest.fixture
def workload_page():
    """``workload_page(**address)``: likewise."""
    return partial(_opened, "workload")


@pytest.fixture
def not_made_here(monkeypatch):
    """``not_made_here(*kinds)``: values of these are read here, as from a worker, and not made."""

    def made_here(self, *args, **kwargs):
        raise AssertionError(f"the server makes a {type(self).__name__}")

    def forbid(*kinds: type) -> None:
        for kind in kinds:
            monkeypatch.setattr(kind, "__init__", made_here)

    return forbid


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A database of the test's own."""
    url = f"sqlite:///{tmp_path / 'n.sqlite'}"
    monkeypatch.setenv("NEST_STUDIO_DATABASE", url)
    return Database(url)
