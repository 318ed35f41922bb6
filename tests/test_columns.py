"""Columns: one name for a figure in every result, file and frame, with its unit in it."""

import re

import pytest

import nest_core as nest
from nest_core.documents.columns import COLUMNS, column_of, column_words
from nest_core.documents.schema import ScenarioFile, checked
from nest_core.scenario import expanded

SMALL = "llama2-7b-64-h100"
UNITS = r"GBps|Bps|GiB|bytes|us|s|sequences|tokens|kW|W|usd|kWh|days"
NAME = re.compile(rf"[a-z][a-z0-9]*(_[a-z0-9]+)*?(_(?:{UNITS}))?|(?:[a-z]+_)+per_[a-z_]*(?:W|kWh)")
UNITLESS = {
    "mfu", "bubble", "loss", "worst_loss", "gap", "speedup", "devices", "days_low", "days_high",
    "ratio", "collapse_error", "devices_within_budget", "days_without_failures",
}  # fmt: skip
"""Figures without a unit: shares, ratios, counts, and days' ends."""
SHARES = re.compile(
    r"usd_per_|loss_|chance_|throughput_without_|paired|.*oversubscription$|.*_per_network_W$"
)
AXES = [{"parameter": "zero", "values": [1, 0]}]
STUDY = {"schema": 1, "name": "ZeRO", "scenario": SMALL, "axes": AXES}
DESIGN = {"families": ["rail-only", "spine-leaf"], "ratios": [1.0, 4.0]}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    small = nest.load(SMALL).with_(baselines=["manual"])
    wide = small.with_(oversubscription=[4.0])
    budget = {"kind": "power", "value": None}
    design = {key: value for key, value in STUDY.items() if key != "axes"} | {"design": DESIGN}
    return {
        "plan": nest.plan(small),
        "plan that does not fit": nest.plan(small.with_(memory=2.0)),
        "price": nest.price(small, "dp=64"),
        "place": nest.place(small, "dp=64"),
        "levels": nest.levels("h100-spine-leaf-64"),
        "sweep": nest.sweep(small, micro_batch=[4, 2, 1], oversubscription=[2.0, 1.0]),
        "compare": nest.compare({"a": small, "b": wide}, budget=budget, level_wise=True),
        "ratios": nest.ratios(small, {"llama2-7b": 2, "qwen2-7b": 1}, loss=0.002),
        "study": nest.study(STUDY),
        "design": nest.design(design),
    }


def test_every_column_of_every_result_is_a_name_in_snake_case_with_its_unit(results):
    """A failure: ``iteration_time_s`` here, ``iteration, s`` and ``best_s`` there."""
    for kind, result in results.items():
        rows = result.rows()
        frame = result.to_frame()
        assert list(frame.columns) == list(rows[0]), kind
        for row in rows:
            assert row.keys() == rows[0].keys(), kind
            for name, value in row.items():
                assert NAME.fullmatch(name), (kind, name)
                if isinstance(value, float) and not SHARES.match(name):
                    has_unit = re.search(rf"(?:_|^)(?:{UNITS})$", name)
                    assert has_unit or name in UNITLESS, (kind, name)


def test_one_figure_has_one_name_and_one_value_in_all_results(results):
    best = results["plan"].best
    seconds = pytest.approx(best.iteration_s, rel=1e-12)
    plan, compared = results["plan"].rows()[0], results["compare"].rows()[0]
    swept = next(
        row
        for row in results["sweep"].rows()
        if (row["micro_batch_sequences"], row["leaf_oversubscription"])
        == (plan["micro_batch_sequences"], 1.0)
    )
    studied = next(row for row in results["study"].rows() if row["zero"] == plan["zero"])
    for row in (plan, compared, swept, studied):
        assert row["iteration_time_s"] == seconds
        assert row["tokens_per_s"] == pytest.approx(plan["tokens_per_s"])
        assert row["mfu"] == pytest.approx(best.mfu)
        assert row["bubble"] == pytest.approx(best.bubble)
    assert swept["memory_GiB"] == plan["memory_GiB"] == studied["memory_GiB"]
    for name in ("network_usd", "network_kW"):
        assert compared[name] == pytest.approx(swept[name]) == pytest.approx(studied[name])


def test_every_line_of_a_comparison_has_a_column_of_its_own(results):
    """A failure: NEST's program's time overwrote the plan's, both being called alike."""
    found = results["compare"]
    assert len(found.rows()[0]) == len(found.found.lines()) + 1


def test_no_two_columns_say_the_same_and_a_header_leads_back_to_its_name():
    words = [text.lower() for text in COLUMNS.values()]
    assert len(words) == len(set(words))
    for name in (*COLUMNS, "ideal_time_s", "leaf_oversubscription", "loss_of_gpt3_175b"):
        assert column_of(column_words(name)) == column_of(name) == name


def test_files_that_name_a_column_as_it_was_called_before_are_read():
    bound = {"iteration_s": {"max": 60.0}}
    before = nest.study(STUDY | {"metrics": ["iteration_s", "mfu"], "constraints": bound})
    assert before.rows()[0]["iteration_time_s"] > 0
    assert [column_of(name) for name in ("iteration time, s", "throughput, tokens/s", "MFU")] == [
        "iteration_time_s",
        "tokens_per_s",
        "mfu",
    ]


def test_tables_of_pages_that_are_saved_have_columns_of_the_same_kind(results):
    charts = [chart for result in results.values() for chart in _pictures(result)]
    charts += list(nest.levels("h100-spine-leaf-64", SMALL).pictures())
    for chart in charts:
        for row in chart.rows()[:1]:
            assert all(NAME.fullmatch(name) for name in row), (chart.title, list(row))


def _pictures(result):
    return result.pictures() if hasattr(result, "pictures") else ()


def table_of(scenario):
    """A scenario's document with every default written out."""
    merged, _ = expanded(scenario.document, scenario.overrides, scenario.folder)
    return checked(ScenarioFile, merged).model_dump(by_alias=True, exclude_none=True)


@pytest.mark.parametrize("key", [
    info.alias or name for name, info in ScenarioFile.model_fields.items()
])  # fmt: skip
def test_every_table_of_a_scenario_can_be_set_by_its_own_name(key):
    """A failure: ``with_(stack=…)`` was refused with "write space"."""
    scenario = nest.load(SMALL)
    value = table_of(scenario).get(key)
    same = scenario.with_(**{key: value})
    assert same.values == scenario.values


def test_every_key_of_a_scenario_can_be_set_by_its_dotted_and_by_its_short_name():
    scenario = nest.load(SMALL)
    before, tables = scenario.values, table_of(scenario)
    names = 0
    for section in ("workload", "search", "baselines", "accelerator"):
        for key, value in tables[section].items():
            for name in (f"{section}.{key}", *([key] if (section, key) not in SHADOWED else [])):
                assert scenario.with_(**{name: value}).values == before, name
                names += 1
    assert names > 60


SHADOWED = {
    ("accelerator", "schema"), ("accelerator", "name"), ("accelerator", "kind"),
    ("accelerator", "source"), ("accelerator", "collectives"), ("baselines", "names"),
}  # fmt: skip
"""Short names that mean another table's key, or a file's own."""


def test_a_stack_is_set_as_a_file_sets_it():
    scenario = nest.load(SMALL)
    assert scenario.with_(stack="megatron-core-2025").values.stack.name == "megatron-core-2025"
    assert scenario.with_(prices={"ownership": {"years": 4.0}}).values == scenario.values
    with pytest.raises(nest.InputError, match="stack must be a preset"):
        scenario.with_(stack="megatron-2525")
