"""The figure of a design study, from plans made up for the purpose."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from nest_core.report.figures.designs import designs_picture
from nest_core.studies.design_choice import Contender, DesignChoice
from nest_core.studies.design_search import DesignCertificate, Designed, Planned, pareto
from nest_core.studies.design_space import Design
from nest_core.studies.ranking import TieOrder


def plan(name, price, days, power=1e5):
    owned = SimpleNamespace(missing=())
    design = Design(f"{name}, 8 NICs", None, None, None, "H100", price * 1e6, power, owned)
    return Planned(design, 1.0, days, "a plan", 0.0)


TORUS = plan("torus", 3.0, 9.0)
LEAN = plan("spine-leaf 4:1", 4.0, 5.0)
FULL = plan("spine-leaf 1:1", 5.0, 4.9)
DEAR = plan("<b>fat-tree</b>", 6.0, 5.0)
LEFT = plan("dual-plane", 7.0, 5.0)
EVERY = [TORUS, LEAN, FULL, DEAR, LEFT]

UNTOLD = SimpleNamespace(worst_loss=None)


def drawn(
    every=(), tied=(LEAN, FULL), goal="days", planned=(TORUS, LEAN, FULL, DEAR), bills=(UNTOLD,)
):
    kept = pareto(planned)
    found = Designed(kept, planned, (), DesignCertificate(5, len(planned), 1, 0, 0, 0.0))
    order = [*tied, *(one for one in kept if one not in tied)]
    contenders = tuple(
        Contender(
            one,
            bills,
            1 if one in tied else 1 + len(tied),
            one.days,
            (4.0, 10.0),
            tuple(o.design.name for o in tied if o is not one),
            TieOrder(False, one.design.price_usd, one.design.power_W),
        )
        for one in order
    )
    return designs_picture(found, DesignChoice(goal, contenders, np.zeros((3, 3))), every)


def places(picture, name):
    trace = next(one for one in picture.plot.data if one.name == name)
    return list(zip(trace.x, trace.y, strict=True))


def test_every_design_stands_once_beneath_its_rank():
    picture = drawn(EVERY)
    assert places(picture, "left out by a bound") == [(7.0, 5.0)]
    assert places(picture, "beaten") == [(6.0, 5.0)]
    assert places(picture, "beaten by none") == [(3.0, 9.0), (4.0, 5.0), (5.0, 4.9)]
    assert places(picture, "tie with the best") == [(4.0, 5.0), (5.0, 4.9)]
    assert picture.subtitle == "Days against price of 5 designs; M$"
    assert "Without a dot" not in picture.reading


def test_what_was_never_planned_has_no_dot_and_the_reading_says_so():
    picture = drawn()
    assert places(picture, "left out by a bound") == []
    assert "never planned: 1 that" in picture.reading
    assert picture.subtitle == "Days against price of 4 designs; M$"


def test_names_stand_below_all_dots_the_cheapest_lowest():
    picture = drawn(EVERY)
    said = picture.plot.layout.annotations
    assert [one.text for one in said] == [
        "torus",
        "<b>spine-leaf 4:1: the choice</b>",
        "spine-leaf 1:1",
    ]
    assert said[0].y < said[1].y < said[2].y < 4.9
    assert picture.plot.layout.yaxis.range[0] < said[0].y


def test_the_title_is_the_choice():
    tied = "Spine-leaf 4:1 goes first of 2 designs that tie with each other"
    assert drawn().title == tied
    alone = "Spine-leaf 1:1 is the choice of 3 designs that none beats"
    assert drawn(tied=(FULL,)).title == alone


def test_what_the_worst_failure_takes_stands_in_the_choice_itself():
    """A failure: a choice with one spine, and "100 % of the throughput is lost" far below."""
    bill = SimpleNamespace(worst_loss=(1.0, "one spine"))
    assert drawn(tied=(FULL,), bills=(bill,)).title == (
        "Spine-leaf 1:1 is the choice of 3 designs that none beats; without one spine it loses "
        "100 % of its throughput"
    )


@pytest.mark.parametrize(
    ("goal", "said"),
    [("days", "whole bill, M$"), ("tokens_per_network_usd", "price of the network, M$")],
)
def test_prices_are_those_of_the_goal(goal, said):
    assert drawn(goal=goal).plot.layout.xaxis.title.text == said


def test_one_design_alone_is_drawn():
    picture = drawn(tied=(LEAN,), planned=(LEAN,))
    low, high = picture.plot.layout.yaxis.range
    assert low < 5.0 < high
    assert picture.title == "Spine-leaf 4:1, 8 NICs is the only design that none beats"
