"""Links that ask for what a page does not take: said, with what stands there instead."""

from __future__ import annotations

import pytest

from nest_studio.server.arrival import refused

SMALL = {"scenario": "llama2-7b-64-h100", "tour": "off"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("key", "text", "instead"),
    [
        ("scenario", "nonsense", "`llama3-70b-1024-h100` stands there"),
        ("workload.sequence_length_tokens", "-5", "`4096` stands there"),
        ("workload.sequence_length_tokens", "many", "`4096` stands there"),
        ("accelerator.memory_GiB", "nan", "`80.0` stands there"),
        ("workload.precision", "fp7", "`bf16` stands there"),
        ("fabric.clos.oversubscription.0", "99", "stands there"),
        ("fabric.clos.oversubscription.7", "2", "none has that name"),
        ("workload.sequence_lenght", "4096", "none has that name"),
    ],
)
def test_what_a_page_does_not_take_is_said(usual_default, plan_page, key, text, instead):
    page = plan_page(**(SMALL | {key: text}))
    assert not page.exception
    (said,) = (entry.value for entry in page.warning)
    assert f"The link's {key} must be" in said
    assert text in said
    assert instead in said


def test_it_is_said_until_the_field_is_set(plan_page):
    page = plan_page(
        **SMALL, **{"workload.sequence_length_tokens": "-5", "workload.precision": "x"}
    )
    assert "sequence_length" in page.warning[0].value
    assert "precision" in page.warning[0].value
    page.number_input(key="workload.sequence_length_tokens").set_value(2048).run()
    assert "sequence_length" not in page.warning[0].value
    assert "precision" in page.warning[0].value
    page.button(key="refused-dismiss").click().run()
    assert not page.warning


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"workload.sequence_length_tokens": "4096"},
        {"workload.sequence_length_tokens": "2048", "search.zero": "1"},
        {"accelerator.memory_GiB": "80"},
        {"fabric.clos.oversubscription.0": "1"},
        {"search.tp": "4", "workload.precision": "fp8", "unknown": "1", "explore.loss": "3"},
    ],
)
def test_what_is_taken_is_not_said(plan_page, asked):
    page = plan_page(**SMALL, **asked)
    assert not page.exception
    assert not page.warning


def test_an_own_model_that_cannot_be_read_is_said(plan_page):
    page = plan_page(**SMALL, **{"workload.model": "My model", "own_model": "{"})
    assert not page.exception
    assert any("own_model must be a model's table" in entry.value for entry in page.warning)


@pytest.mark.parametrize(
    ("texts", "held"),
    [
        (["1", "2"], [2, 1]),
        (["TRUE"], True),
        (["1.50"], 1.5),
        ([], None),
        ([""], None),
        (["a"], "a"),
    ],
)
def test_the_same_in_other_words_is_the_same(texts, held):
    assert not refused({"a": texts}, {}, {"a": held})
    assert refused({"a": ["other"]}, {}, {"a": held})


def test_texts_of_any_kind_stand_in_the_sentence():
    _, sentence = refused({"a": ["`x`\n" + "y" * 1000]}, {}, {"a": 1})["a"]
    assert "\n" not in sentence
    assert len(sentence) < 300
    assert "`'x' yyy" in sentence


@pytest.mark.parametrize("more", [0, 1])
def test_what_a_page_has_no_widget_for_goes_along(fabric_page, more):
    """A failure: a link to Design names a scenario, and Plan opens with another."""
    page = fabric_page(scenario="llama2-7b-64-h100", fabric="v100-pods-64", tour="off")
    for _ in range(more):
        page.run()
    for name in ("learn", "plan"):
        page.query_params.clear()  # as the browser's navigation does
        page.switch_page(f"../../pages/{name}.py").run()
    assert page.selectbox(key="scenario").value == "llama2-7b-64-h100"
    assert page.selectbox(key="fabric").value == "v100-pods-64"


def test_what_was_refused_does_not_come_back(plan_page):
    """A failure: a ratio that a torus does not have is set where another fabric has one."""
    page = plan_page(
        scenario="llama2-7b-64-tpu-torus", tour="off", **{"fabric.clos.oversubscription.0": "3.0"}
    )
    page.run()
    for name in ("learn", "plan"):
        page.query_params.clear()
        page.switch_page(f"../../pages/{name}.py").run()
    page.selectbox(key="scenario").set_value("llama2-7b-64-h100").run()
    assert page.slider(key="fabric.clos.oversubscription.0").value == 1.0
