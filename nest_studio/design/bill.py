"""What a fabric is made of and costs, how it is ordered, and the tests that it should pass."""

import json
from typing import Any

import streamlit as st

from nest_core.bill.bill import Bill
from nest_core.bill.cables import Format
from nest_core.bill.prices import Prices, load_prices
from nest_core.calibration.acceptance.expected import accelerator_in
from nest_core.calibration.acceptance.verdict import Verdict
from nest_core.documents import (
    InputError,
    as_markdown,
    decoded,
    humanise_power,
    preset_names,
)
from nest_core.documents.schema import parameter
from nest_core.report.figures.bill import bill_figure, bill_rows, link_rows
from nest_core.report.figures.measured import acceptance_rows, acceptance_script
from nest_core.report.tables import Table
from nest_core.scenario import Scenario, file_stem
from nest_studio.components.show import download, facts, show_picture, told
from nest_studio.design.canvas import design_page
from nest_studio.form.fields import (
    Edits,
    OneOf,
    field_of,
    parameter_field,
    settle,
    uploads,
    widget,
    widget_value,
)
from nest_studio.jobs.tasks.fabrics import (
    FabricAnswer,
    acceptance,
    cable_file,
    cable_summary,
    fabric_bill,
)
from nest_studio.jobs.waiting import panel, submitted

__all__ = [
    "bill_section",
    "order_section",
    "price_settings",
]

MEDIA = "prices.media"
LIMIT = "prices.rack_power"
TABLE = "prices.table"
SHOWN = "price rows"
CABLING = "cabling.media"
RACK_LIMIT = "floor.rack_power_limit_kW.typical"
RACK_POWER, PRICE = (parameter(key, Prices) for key in (RACK_LIMIT, "switch.0.price_usd.typical"))
LISTS = ("switch", "nic", "transceiver", "cable")
COLUMNS = {
    key.split(".")[2]: parameter(f"{key}.typical", Prices).title
    for key in ("switch.0.price_usd", "cable.0.price_usd_per_m", "switch.0.power_W")
}


def price_settings() -> tuple[str, ...]:
    """Return what the session changed in the price list, as settings over it."""
    return tuple(f"{key}={json.dumps(value)}" for key, value in design_page().prices.items())


def bill_section(scenario: Scenario, answer: FabricAnswer) -> None:
    """Ports, the bill's finding and lines, racks and what exceeds a limit."""
    st.subheader("Bill of materials")
    job = submitted(fabric_bill, scenario, price_settings(), place="bill")
    with told():
        counted = panel(job, "Counting its parts", key="bill")
        if counted is not None:
            _bill(counted, answer)
    _price_list()


def _bill(bill: Bill, answer: FabricAnswer) -> None:
    narrow, wide = st.columns([2, 3], gap="medium")
    with narrow:
        show_picture(bill_figure(bill), "bill")
        racks = "1 rack" if bill.racks == 1 else f"{bill.racks:,} racks"
        facts(
            f"{racks} of {bill.nodes_per_rack} nodes at {humanise_power(bill.rack_power_W)} "
            f"({bill.server}: {humanise_power(bill.node_power_W)}), {bill.network_racks:,} of "
            "switches. Accelerators and servers are not in the price; low and high ends add up as "
            "if all came together.",
            kind="nest-quiet",
        )
        for check in bill.checks:
            facts(f"⚠ {check}")
    with wide:
        if answer.ports:
            st.html(answer.ports.to_html())
        longest = max((run.longest_m for total in bill.links for run in total.runs), default=0)
        st.html(
            Table(
                f"{bill.cables:,} cables, the longest {longest} m",
                "Cables by tier and reach",
                link_rows(bill),
            ).to_html()
        )
    with st.expander("Every line of the bill, with its source"):
        st.html(
            Table(
                f"{100 * bill.estimated_share:.0f} % of the price rests on estimates",
                f"{answer.title}; figures gathered for {bill.prices}",
                bill_rows(bill),
            ).to_html()
        )


def _price_list() -> None:
    """Draw the price list to be edited; changes hold for this session and every fabric in it."""
    with st.expander("Price list"):
        facts(
            "Type over a figure: it replaces the listed one with its range. Sources stand at the "
            "right; what is marked estimate or recalled deserves your own quote.",
            kind="nest-quiet",
        )
        prices, settings = load_prices(), design_page().prices
        first, second = st.columns(2)
        parameter_field(
            parameter(CABLING, Prices),
            settings.get(CABLING, prices.cabling.media),
            takes=OneOf(prices.media),
            key=MEDIA,
            place=first,
            on_change=_apply,
            bind=None,
        )
        parameter_field(
            RACK_POWER,
            settings.get(RACK_LIMIT, prices.floor.rack_power_limit_kW.typical),
            key=LIMIT,
            place=second,
            on_change=_apply,
            bind=None,
        )
        if TABLE not in st.session_state:
            st.session_state[SHOWN] = _price_rows(settings)
        settle(TABLE, _edits())
        st.data_editor(
            [
                {name: value for name, value in row.items() if name != "key"}
                for row in st.session_state[SHOWN]
            ],
            key=TABLE,
            on_change=_apply,
            hide_index=True,
            height=360,
            disabled=["part", "item", "kind", "source"],
            column_config={
                label: st.column_config.NumberColumn(min_value=PRICE.low)
                for label in COLUMNS.values()
            },
        )


def _edits() -> Edits:
    return Edits(
        len(st.session_state.get(SHOWN, ())),
        dict.fromkeys(COLUMNS.values(), field_of(PRICE, empty=True)),
    )


def _price_rows(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the price list with these settings over it."""
    prices = load_prices()
    rows = []
    for name in LISTS:
        for index, entry in enumerate(getattr(prices, name)):
            listed = {key: getattr(entry, key, None) for key in COLUMNS}
            figures = {
                COLUMNS[key]: settings.get(
                    f"{name}.{index}.{key}.typical", figure and figure.typical
                )
                for key, figure in listed.items()
            }
            price = entry.price_usd
            rows.append(
                {"key": f"{name}.{index}", "part": name, "item": entry.name}
                | figures
                | {
                    "kind": price.kind if price else "no source",
                    "source": f"{price.date}: {price.source}" if price else "",
                }
            )
    return rows


def _apply() -> None:
    """Keep what differs from the listed prices, as settings over the list.

    Where the list is no longer drawn, for want of a bill, its widgets say nothing and what was
    kept stays.
    """
    media, limit = (
        widget_value(MEDIA, OneOf(load_prices().media)),
        widget_value(LIMIT, field_of(RACK_POWER)),
    )
    edits = widget_value(TABLE, _edits())
    if media is None or limit is None or edits is None:
        return
    prices, settings = load_prices(), dict[str, Any]()
    for index, listed in enumerate(_price_rows({})):
        row = st.session_state[SHOWN][index] | edits["edited_rows"].get(index, {})
        for key, label in COLUMNS.items():
            price = field_of(PRICE).fit(row[label])
            if price and listed[label] is not None and price[0] != listed[label]:
                settings[f"{row['key']}.{key}.typical"] = price[0]
    if media != prices.cabling.media:
        settings[CABLING] = media
    if limit != prices.floor.rack_power_limit_kW.typical:
        settings[RACK_LIMIT] = limit
    design_page().prices = settings


FILES: tuple[tuple[Format, str], ...] = (
    ("netbox", "↓ NetBox import (CSV)"),
    ("csv", "↓ Order list (CSV)"),
)
LOGS, ACCELERATOR = "acceptance logs", "acceptance.accelerator"


def order_section(scenario: Scenario, answer: FabricAnswer) -> None:
    """Cables to order and to import, commands to run, their logs and the verdict."""
    st.subheader("Order, build, accept")
    narrow, wide = st.columns([2, 3], gap="medium")
    with narrow:
        _cables(scenario, answer)
        uploaded = st.file_uploader(
            "Logs of the tests",
            accept_multiple_files=True,
            key=LOGS,
            help="What the commands printed, at most 5 MB each. The files stay on this machine.",
        )
    with wide:
        usual = accelerator_in(str(scenario.fabric_table.get("name", "")))
        device = widget(
            f"{ACCELERATOR}.{usual}",
            OneOf(preset_names("accelerators"), empty=True),
            usual or None,
            label="Accelerator, whose library runs the tests",
            bind=None,
            placeholder="Choose an accelerator",
            help="At first the one that the fabric's name tells.",
        )
        if not device:
            facts("Choose the accelerator to see what its tests should reach.", kind="nest-quiet")
            return
        logs: tuple[tuple[str, str], ...] = ()
        with told(narrow.error):
            logs = tuple(
                (file.name, decoded(file.getvalue(), file.name)) for file in uploads(uploaded)
            )
        _acceptance(scenario, device, logs, narrow)


def _cables(scenario: Scenario, answer: FabricAnswer) -> None:
    settings = price_settings()
    with told(lambda why: facts(why, kind="nest-quiet")):
        summary = panel(
            submitted(cable_summary, scenario, settings, place="cables"),
            "Listing its cables",
            key="cables",
        )
        if summary is None:
            return
        count, tiers, notes = summary
        by_tier = ", ".join(f"{number:,} to the {tier} tier" for tier, number in tiers)
        facts(f"{count:,} cables, one row each: {by_tier}.")
        with st.container(horizontal=True, gap="small"):
            for style, label in FILES:
                download(
                    label,
                    lambda style=style: str(
                        submitted(cable_file, scenario, settings, style).result()
                    ),
                    f"{file_stem(answer.title)}-{style}.csv",
                    "text/csv",
                    key=f"cables-{style}",
                )
        facts(*notes, kind="nest-quiet")


def _acceptance(
    scenario: Scenario, device: str, logs: tuple[tuple[str, str], ...], beside_logs: Any
) -> None:
    verdict: Verdict | None = None
    try:
        verdict = panel(
            submitted(acceptance, scenario, device, logs, place="acceptance", urgent=False),
            "Pricing its acceptance tests",
            key="acceptance",
        )
    except InputError as error:
        if not logs:
            facts(str(error), kind="nest-quiet")
            return
        beside_logs.error(as_markdown(error))
        _acceptance(scenario, device, (), beside_logs)
        return
    if verdict is None:
        return
    for sentence in verdict.unmatched:
        beside_logs.warning(as_markdown(sentence))
    subtitle = (
        "Bus bandwidth of nccl-tests at 4 GiB, GB/s; at least: lower end of the 80 % interval"
    )
    st.html(Table(verdict.finding.rstrip("."), subtitle, list(acceptance_rows(verdict))).to_html())
    with st.expander("Commands, in this order"):
        st.code(
            acceptance_script([outcome.expected for outcome in verdict.outcomes]),
            None,
            wrap_lines=True,
        )
