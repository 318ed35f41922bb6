"""Tiers of drawings, their ratios in whole links, and elements without links."""

from __future__ import annotations

import pytest

from nest_core.documents.errors import InputError
from nest_core.fabric.drawing import drawing_of, empty_drawing
from nest_core.fabric.tiers import TemplatePart, added, cut_off, oversubscribed, tiers_of, unlinked
from nest_core.network import collapse
from nest_core.scenario import load_fabric


def drawn(name: str):
    fabric = load_fabric(name)
    return drawing_of(fabric, collapse(fabric).nesting)


@pytest.mark.parametrize(
    "name", ["h100-spine-leaf-64", "h100-spine-leaf-1024-4to1", "fat-tree-k16"]
)
def test_tiers_of_a_drawn_clos_are_its_own(name):
    fabric = load_fabric(name)
    found = tiers_of(drawn(name))
    assert [tier.name for tier in found] == list(fabric.tier_names[:-1])
    assert [tier.ratio for tier in found] == pytest.approx(list(fabric.ratios))


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0, 3.0, 7.0, 64.0])
def test_links_up_are_the_nearest_whole_number(ratio):
    drawing = drawn("h100-spine-leaf-64")
    (leaf,) = tiers_of(drawing)
    changed = oversubscribed(drawing, leaf.switches, ratio)
    (thin,) = tiers_of(changed)
    assert thin.links_up == (max(1, int(32 / ratio + 0.5)),) * 2
    assert thin.ratio == 32 / thin.links_up[0]
    assert [e["id"] for e in changed["element"]] == [e["id"] for e in drawing["element"]]
    down = [link for link in drawing["link"] if "spine 0" not in (link["a"], link["b"])]
    assert [link for link in changed["link"] if "spine 0" not in (link["a"], link["b"])] == down


def test_only_the_chosen_switches_change_and_several_above_share_evenly():
    drawing = added(empty_drawing(), TemplatePart("pod", 2, "pod", nodes=16))
    leaf = tiers_of(drawing)[0]
    assert leaf.groups == ("pod 0", "pod 1")
    chosen = leaf.switches[:1]
    changed = oversubscribed(drawing, chosen, 4.0)
    for before, after in zip(drawing["link"], changed["link"], strict=True):
        touched = {before["a"], before["b"]} & set(chosen)
        up = any(end.startswith("spine") for end in (before["a"], before["b"]))
        assert (before == after) is not bool(touched and up)


def test_a_switch_under_three_loses_links_evenly():
    rack = added(empty_drawing(), TemplatePart("rack", 1, nodes=4))
    tops = [f"top {number}" for number in range(3)]
    elements = [*rack["element"], *({"id": top, "role": "switch"} for top in tops)]
    up = {"a": "leaf 0", "bandwidth_GBps": 50.0, "count": 8}
    drawing = rack | {"element": elements, "link": [*rack["link"], *(up | {"b": t} for t in tops)]}
    changed = oversubscribed(drawing, ["leaf 0"], 2.3)
    counts = [link["count"] for link in changed["link"] if link["b"] in tops]
    assert sorted(counts) == [4, 5, 5]  # 32 down over 14 up is 2.29


@pytest.mark.parametrize(
    ("switches", "ratio", "message"),
    [
        (["leaf 0"], 0.0, "ratio must be a finite number above 0"),
        (["spine 0"], 2.0, "links down and up"),
        (["nobody"], 2.0, "links down and up"),
        (["leaf 0", "leaf 1"], 0.5, "must leave leaf 0 at its 64 ports or fewer"),
    ],
)
def test_ratios_that_ports_do_not_allow_are_one_sentence(switches, ratio, message):
    with pytest.raises(InputError, match=message):
        oversubscribed(drawn("h100-spine-leaf-64"), switches, ratio)


def test_elements_without_links_are_named():
    drawing = added(empty_drawing(), TemplatePart("rack", 1, nodes=1))
    assert unlinked(drawing) == ()
    more = [*drawing["element"], {"id": "gpu 99", "role": "device"}]
    assert unlinked(drawing | {"element": more}) == ("gpu 99",)
    alone = empty_drawing() | {"element": [{"id": "gpu 0", "role": "device"}]}
    assert unlinked(alone) == ()


def test_what_a_lost_leaf_cuts_off_is_its_nodes():
    """A leaf was taken away by mouse, and 8 nodes had to be found and deleted one by one."""
    drawing = drawn("h100-spine-leaf-64")
    assert cut_off(drawing) == ()
    rest = [entry for entry in drawing["element"] if entry["id"] != "leaf 0"]
    links = [link for link in drawing["link"] if "leaf 0" not in (link["a"], link["b"])]
    lost = cut_off(drawing | {"element": rest, "link": links})
    assert sum(name.startswith("gpu") for name in lost) == 32
    kept = [entry["id"] for entry in rest if entry["id"] not in lost]
    reached, edge = set(kept[:1]), set(kept[:1])
    while edge:
        edge = {
            end
            for link in links
            for end, other in ((link["a"], link["b"]), (link["b"], link["a"]))
            if other in edge
        } - reached
        reached |= edge
    assert reached == set(kept)
