"""Plans and baselines, computed once per request and kept for everyone who asks again.

The key is the request's canonical text: the scenario document with its overrides. Our plan is
searched where it is asked for; baselines are priced beside the page, so that it can draw our
plan while they take their time.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path

import streamlit as st

from nest_core.baselines import Baseline, evaluate_baselines
from nest_core.planner import Certificate, Result, search
from nest_core.scenario import Scenario, load_scenario, resolve_scenario
from nest_core.topology import Fabric
from nest_studio.forms import Request

__all__ = [
    "baselines_of",
    "baselines_within",
    "canonical",
    "compiled_planner",
    "fabric_of",
    "order_baselines",
    "plan_of",
    "scenario_of",
]

KEPT = 256
POLL_S = 0.1
Pricing = Future[tuple[Baseline, ...]]


def canonical(request: Request) -> str:
    """The text that identifies a request."""
    return json.dumps([request.document, request.overrides, str(request.folder)], sort_keys=True)


def scenario_of(text: str) -> Scenario:
    """The scenario of a canonical request; InputError where there is none."""
    document, overrides, folder = json.loads(text)
    return resolve_scenario(document, overrides, Path(folder))


def fabric_of(request: Request) -> Fabric:
    """The request's fabric, whatever the rest asks for; InputError where there is none."""
    own = {key: value for key, value in request.overrides.items() if key.startswith("fabric")}
    return resolve_scenario(request.document, own, request.folder).fabric


@st.cache_data(max_entries=KEPT, show_spinner=False)
def plan_of(text: str) -> Result:
    """The search's result for a canonical request."""
    scenario = scenario_of(text)
    return search(
        scenario.problem(), scenario.space, top=scenario.top, time_limit_s=scenario.time_limit_s
    )


@st.cache_resource(show_spinner="Compiling the planner: seconds, once per installation …")
def compiled_planner() -> Certificate:
    """Have the planner's machine code ready: seconds after installation, nothing later."""
    scenario = load_scenario("llama2-7b-64-h100")
    return search(scenario.problem(), scenario.space).certificate


def order_baselines(text: str) -> None:
    """Have the baselines for a canonical request priced, and give up this session's last order."""
    pricing = _desk().ask(text)
    earlier: Pricing | None = st.session_state.get("pricing")
    if earlier is not None and earlier is not pricing:
        earlier.cancel()
    st.session_state["pricing"] = pricing


def baselines_within(text: str, seconds: float) -> tuple[Baseline, ...] | None:
    """The baselines if they are there in time."""
    try:
        return _desk().ask(text).result(timeout=seconds)
    except (TimeoutError, CancelledError):  # another session may give up the same order
        return None


def baselines_of(text: str) -> tuple[Baseline, ...]:
    """The baselines when they are there; a newer run of the page ends the wait."""
    while (baselines := baselines_within(text, POLL_S)) is None:
        # Streamlit stops a run only where it touches the session.
        st.session_state["baselines awaited"] = True
    return baselines


class _Desk:
    """Prices requests beside the pages and remembers the last ones."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(max_workers=2, thread_name_prefix="baselines")
        self._known: OrderedDict[str, Pricing] = OrderedDict()
        self._lock = threading.Lock()

    def ask(self, text: str) -> Pricing:
        """The future of a request, old or new."""
        with self._lock:
            known = self._known.get(text)
            if known is None or known.cancelled():
                known = self._worker.submit(_price_baselines, text)
                self._known[text] = known
            self._known.move_to_end(text)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
            return known


@st.cache_resource(show_spinner=False)
def _desk() -> _Desk:
    return _Desk()


def _price_baselines(text: str) -> tuple[Baseline, ...]:
    scenario = scenario_of(text)
    return evaluate_baselines(
        scenario.problem(), scenario.space, scenario.model, scenario.baselines,
        seed=scenario.seed, time_limit_s=scenario.time_limit_s,
    )  # fmt: skip
