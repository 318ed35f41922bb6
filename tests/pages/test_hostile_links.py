"""Links whose parameters hold anything: no page breaks, and every page can be used afterwards."""

from __future__ import annotations

import random

import pytest
from hostile import SMALL, TEXTS, faults, opened
from streamlit.testing.v1 import AppTest

from nest_core.teaching.lessons import LESSONS

FORM = (
    "scenario",
    "fabric",
    "fabric.clos.devices",
    "fabric.clos.oversubscribe",
    "fabric.clos.oversubscription.0",
    "fabric.level.1.oversubscription",
    "workload.model",
    "workload.global_batch_sequences",
    "workload.sequence_length_tokens",
    "workload.precision",
    "workload.optimizer",
    "workload.attention",
    "accelerator",
    "accelerator.memory_GiB",
    "search.tp",
    "search.cp",
    "search.ep",
    "search.micro_batch_sequences",
    "search.zero",
    "search.recompute",
    "search.offload",
    "search.schedule",
    "search.order",
    "search.stage_strategies",
    "search.memory_rule",
    "own",
    "own_model",
)
KEYS = {
    "plan": (*FORM, "paint", "tour", "why-mine", "form-undo", "stop-plan"),
    "workload": (
        "layer.model",
        "layer.kind",
        "layer.tp",
        "layer.sp",
        "layer.cp",
        "layer.ep",
        "layer.micro_batch_sequences",
        "layer.recompute",
        "layer.accelerator",
        "layer.sequence_length_tokens",
        "layer.precision",
        "layer.attention",
        "layer.context",
        "layer.expert_tensor",
        "layer.imbalance",
        "layer.capacity",
        "own",
        "own_model",
    ),
    "compare": (
        "compare",
        "compare.budget",
        "compare.budget_value",
        "compare.failures",
        "compare.only",
        "own",
        "compare-undo",
        "compare-add",
        "bill.device_usd",
        "bill.optics",
        "bill.hours",
        "bill.max_loss",
    ),
    "explore": (
        *FORM,
        "explore.asks",
        "explore.question",
        "explore.x",
        "explore.y",
        "explore.memory",
        "explore.batch",
        "explore.zero",
        "explore.oversubscription.0",
        "explore.models",
        "explore.loss",
        "explore.share.llama2-7b",
        "explore.point",
        "explore-run",
    ),
    "design": (
        "fabric",
        "fabric.clos.devices",
        "fabric.clos.oversubscribe",
        "beside",
        "canvas",
        "fabric.clos.oversubscription.0",
        "collective.op",
        "collective.devices",
        "collective.stride",
        "collective.groups",
        "collective.algorithm",
        "collective.library",
        "own",
        "prices.media",
        "prices.rack_power",
        "prices.table",
        "export.format",
    ),
    "paper": ("name", "costs", "model"),
    "learn": (
        "lesson",
        "large",
        *(
            f"{one.key}.{part}"
            for one in LESSONS
            for part in ("guess", "show", *(control.key for control in one.controls))
        ),
    ),
    "notebook": ("notebook", "notebook list", "delete-all"),
}
"""Every parameter that a page reads, and keys of widgets that no address may set."""

BASES = {
    "plan": {"scenario": SMALL, "tour": "off"},
    "explore": {"scenario": SMALL, "explore.asks": "Highest ratios"},
    "workload": {"layer.model": "mixtral-8x7b"},
    "compare": {"compare.budget": "network price"},
    "design": {"fabric": "h100-spine-leaf-64"},
}


def address_of(page: str, rng: random.Random) -> dict[str, str | list[str]]:
    """A page's usual address with some of its parameters replaced."""
    found: dict[str, str | list[str]] = dict(BASES.get(page, {}))
    for key in rng.sample(KEYS[page], min(len(KEYS[page]), rng.choice((1, 2, 4)))):
        text = rng.choice(TEXTS)
        found[key] = [text, rng.choice(TEXTS)] if rng.random() < 0.1 else text
    if page == "learn":
        found.setdefault("lesson", rng.choice(LESSONS).key)
    return found


def use(page: AppTest, rng: random.Random) -> None:
    """Change something in the way that the page offers it."""
    choices = [one for one in page.selectbox if len(one.options) > 1 and not one.disabled]
    if choices:
        one = rng.choice(choices)
        one.select_index(rng.randrange(len(one.options)))
    page.run()


def check(root, name: str, seed: int) -> None:
    rng = random.Random(f"{name} {seed}")
    address = address_of(name, rng)
    page = opened(name, address, str(root / "nest_studio" / "server" / "script.py"))
    assert not faults(page), address
    use(page, rng)
    assert not faults(page), address
    other = rng.choice([one for one in KEYS if one not in (name, "learn", "paper")])
    page.switch_page(f"../../pages/{other}.py").run()
    assert not faults(page), (address, other)
    page.switch_page(f"../../pages/{name}.py").run()
    assert not faults(page), (address, other, name)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("fabric.clos.devices", "inf"),
        ("fabric.clos.oversubscription.0", "1e999"),
        ("workload.global_batch_sequences", "9" * 5000),
        ("accelerator.memory_GiB", "nan"),
        *(
            pytest.param(key, text, marks=pytest.mark.check)
            for key, text in (
                ("workload.sequence_length_tokens", "-inf"),
                ("search.tp", "1e999"),
                ("search.micro_batch_sequences", "inf"),
            )
        ),
    ],
)
def test_a_number_without_end_is_said_and_the_rest_of_the_link_taken(plan_page, key, text):
    page = plan_page(**({"scenario": SMALL, "tour": "off"} | {key: text}))
    assert not page.exception
    assert page.selectbox(key="scenario").value == SMALL
    assert "nest-card" in "".join(one.proto.body for one in page.get("html"))
    (said,) = (one.value for one in page.warning)
    assert said.startswith("The link's ")
    rules = ("must be a finite number", "must be a whole number", "numbers of at most 64 bits")
    assert any(rule in said for rule in rules)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("paper", "name"),
        ("paper", "costs"),
        ("paper", "model"),
        ("explore", "explore.asks"),
        ("learn", "lesson"),
        ("plan", "paint"),
    ],
)
@pytest.mark.sampled(2)
def test_a_choice_that_a_link_leaves_empty_is_the_usual_one(root, name, key):
    usual = opened(name, BASES.get(name, {}), str(root / "nest_studio" / "server" / "script.py"))
    page = opened(
        name, {**BASES.get(name, {}), key: ""}, str(root / "nest_studio" / "server" / "script.py")
    )
    assert not faults(page)
    assert [one.value for one in page.markdown] == [one.value for one in usual.markdown]


def test_a_word_for_a_number_without_end_may_stand_in_a_field_of_text(root):
    page = opened(
        "explore", {"scenario": SMALL}, str(root / "nest_studio" / "server" / "script.py")
    )
    (values, *_) = [one for one in page.text_input if one.key.startswith("explore.")]
    values.set_value("inf").run()
    for name in ("notebook", "explore"):
        page.switch_page(f"../../pages/{name}.py").run()
        page.run()
        assert not faults(page)
    assert page.text_input(key=values.key).value == "inf"


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.sampled(2)
def test_hostile_links_break_no_page(root, name):
    check(root, name, 0)


@pytest.mark.check
@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("name", KEYS)
def test_hostile_links_break_no_page_at_length(root, name, seed):
    check(root, name, 1000 + seed)
