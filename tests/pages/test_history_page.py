"""The plan page's form: changes taken back, made again, and all of them at once."""

from __future__ import annotations

LEAF = "fabric.clos.oversubscription.0"
MEMORY = "accelerator.memory_GiB"
SMALL = "llama2-7b-64-h100"


def held(page):
    return page.slider(key=LEAF).value, page.number_input(key=MEMORY).value


def changed(page):
    page.slider(key=LEAF).set_value(4.0).run()
    page.number_input(key=MEMORY).set_value(40.0).run()
    assert held(page) == (4.0, 40.0)
    return page


def press(page, name):
    page.button(key=f"form-{name}").click().run()
    assert not page.exception
    return page


def test_changes_are_taken_back_and_made_again(plan_page):
    page = plan_page(scenario=SMALL)
    first = held(page)
    assert page.button(key="form-undo").disabled
    changed(page)
    assert held(press(page, "undo")) == (4.0, first[1])
    assert held(press(page, "undo")) == first
    assert page.button(key="form-undo").disabled
    assert held(press(page, "redo")) == (4.0, first[1])
    page.number_input(key=MEMORY).set_value(64.0).run()
    assert page.button(key="form-redo").disabled


def test_a_preset_is_taken_back_with_all_that_it_set(plan_page):
    page = changed(plan_page(scenario=SMALL))
    page.selectbox(key="scenario").set_value("bert-large-64-v100").run()
    assert page.number_input(key=MEMORY).value == 32.0
    press(page, "undo")
    assert page.selectbox(key="scenario").value == SMALL
    assert held(page) == (4.0, 40.0)


def test_reset_is_a_change_like_others(plan_page):
    page = plan_page(scenario=SMALL)
    first = held(page)
    changed(page)
    assert held(press(page, "reset")) == first
    assert held(press(page, "undo")) == (4.0, 40.0)
