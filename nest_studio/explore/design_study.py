"""The answer of a design study: the Pareto set, a fabric and its plan, what the choice rests on."""

from collections.abc import Sequence
from datetime import datetime

import streamlit as st

from nest_core.documents import percent, percent_column, preset_names
from nest_core.report.figures.designs import (
    choice_rows,
    designs_picture,
    failure_words,
    tornado_picture,
)
from nest_core.report.picture import picture, to_svg
from nest_core.report.sheet import decision_sheet
from nest_core.report.tables import Table
from nest_core.scenario import Scenario
from nest_core.studies.decision import DecisionInputs, decide
from nest_core.studies.design_choice import Contender, DesignChoice, in_words
from nest_core.studies.design_growth import GrowthPath, ways_to_grow
from nest_core.studies.sensitivity import DesignAnswer, Sensitivity
from nest_core.studies.study import Study
from nest_studio.components.browser.elements import show_svg
from nest_studio.components.show import facts, show_picture
from nest_studio.explore.view import rows_table
from nest_studio.form.fields import OneOf, widget
from nest_studio.session.open_plan import open_plan

__all__ = ["show_design"]

PICKED = "design.picked"
_PICTURE_PX = 640
_MOST_ON_SHEET = 4


def show_design(study: Study, answer: DesignAnswer) -> None:
    """Draw all of it."""
    designed, choice = answer.searched, answer.choice
    names = tuple(contender.name for contender in choice.contenders)

    def pick(place: int) -> None:
        if place in range(len(names)):
            st.session_state[PICKED] = names[place]

    show_picture(designs_picture(designed, choice), "design", on_pick=pick)
    proof = designed.certificate
    facts(
        "Certificate: no other design beats these."
        if proof.proven
        else f"Certificate: open, gap {percent(proof.gap)}.",
        kind="nest-quiet",
    )
    first, second = st.columns([1, 1], gap="medium")
    with first:
        name = widget(
            PICKED,
            OneOf(names),
            names[0],
            label="Design",
            bind=None,
            help="Click a point above, or pick one.",
        )
        contender = next(entry for entry in choice.contenders if entry.name == name)
        _contender(study, choice, contender)
    with second:
        report = contender.bills[0].report
        drawn = picture(
            contender.planned.design.fabric, report.plan if report else None, width=_PICTURE_PX
        )
        show_svg(to_svg(drawn), key="design-picture")
    rows_table(choice_rows(choice), {"price_usd": "localized", "worst_loss": "percent"})
    facts(choice.rule, kind="nest-quiet")
    if answer.sensitivity is not None:
        _rests_on(answer.sensitivity)
    _growth(
        ways_to_grow(
            study,
            [first.planned.design for first in choice.contenders if first.rank == 1],
        )
    )
    if designed.refused:
        with st.expander(f"{len(designed.refused):,} designs that cannot be, or break a limit"):
            st.dataframe(designed.refused, column_config={"name": "design"})


def _rests_on(rests_on: Sensitivity) -> None:
    """Draw the tornado, and say what decides."""
    first, second = st.columns([1, 1], gap="medium")
    with first:
        show_picture(tornado_picture(rests_on), "tornado")
    with second:
        st.html('<div class="nest-title">What decides</div>')
        facts(*rests_on.sentences)
        if rests_on.information:
            worth = percent_column(fact.worth for fact in rests_on.information)
            st.html(
                Table(
                    "What it is worth to know before choosing",
                    "Expected saving, as a share of the goal's cost",
                    [
                        {
                            "unknown": fact.name,
                            "worth": worth(fact.worth),
                            "how": fact.measure,
                        }
                        for fact in rests_on.information
                    ],
                ).to_html()
            )


def _contender(study: Study, choice: DesignChoice, contender: Contender) -> None:
    design = contender.planned.design
    facts(
        "" if choice.goal == "days" else f"{in_words(choice.goal, contender.value)}.",
        f"{contender.planned.days:.3g} days ({contender.span[0]:.3g} to {contender.span[1]:.3g})"
        f"{failure_words(contender)}.",
        f"${design.price_usd / 1e6:,.4g} M, {design.power_W / 1e3:,.4g} kW.",
        f"Plan: {contender.planned.plan}",
        f"Ties with {len(contender.ties)} others." if contender.ties else "",
        f"In no price for want of a source: {', '.join(design.owned.missing)}."
        if design.owned.missing
        else "",
    )
    member = study.members[0]
    others = [other for other in choice.contenders if other.rank == 1 and other is not contender]
    bills = [other.bills[0] for other in (contender, *others[: _MOST_ON_SHEET - 1])]
    question = {
        "entries": [
            {
                "name": other.name,
                "document": member.scenario.document,
                "overrides": other.planned.design.changes,
            }
            for other in (contender, *others[: _MOST_ON_SHEET - 1])
        ],
        "goal": choice.goal,
        "assumed": {"max_loss": choice.max_loss},
    }
    row = st.container(horizontal=True)
    row.button(
        "Open in Plan",
        key="design-open",
        disabled=member.name not in preset_names("scenarios"),
        on_click=open_plan,
        args=(Scenario(member.scenario.document, design.changes), contender.name),
        help="Sets the form to this design and shows its plan; of a mix, that of its first model.",
    )
    row.download_button(
        "Decision sheet",
        lambda: decision_sheet(
            decide(bills, DecisionInputs(max_loss=choice.max_loss), choice.goal),
            datetime.now(),
            question=question,
        ),
        "decision-sheet.html",
        "text/html",
        on_click="ignore",
        type="primary",
        key="design-sheet",
        disabled=len(study.members) > 1,
        help="The first rank's designs, for a committee; of a mix there is none.",
    )


def _growth(ways: Sequence[GrowthPath]) -> None:
    if not ways:
        return
    rows = [
        {
            "design": way.design,
            "built": way.how,
            "M$ by phase": " + ".join(f"{phase.paid_usd / 1e6:,.4g}" for phase in way.phases),
            "links recabled": " + ".join(f"{phase.recabled:,}" for phase in way.phases[1:]),
            "regret, M$": f"{way.regret_usd / 1e6:,.3g}",
            "in all, M$": "–" if way.reason else f"{way.total_usd / 1e6:,.4g}",
            "note": way.reason,
        }
        for way in ways
    ]
    st.html(
        Table(
            "What to buy now, if more devices come",
            "Regret: what is paid now beyond the cheapest, lost if growth does not come",
            rows,
        ).to_html()
    )
