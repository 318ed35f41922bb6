"""Plans from JSON files, key=value pairs and Megatron-LM flags: read, or refused in a sentence."""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.costs import Plan, Point, StageStrategy
from nest_core.costs.parse import parse_plan, read_pasted, read_plan
from nest_core.costs.plan import even_cuts
from nest_core.documents.errors import InputError
from nest_core.documents.files import MAX_FILE_BYTES

MEGATRON = ("tp", "cp", "dp", "pp")
PAPER = ("tp", "cp", "pp", "dp")


@st.composite
def plans(draw: st.DrawFn) -> tuple[Plan, int]:
    """A plan and the number of its layers."""
    layers = draw(st.integers(1, 60))
    pp = draw(st.integers(1, min(layers, 12)))
    virtual_stages = draw(st.integers(1, min(layers // pp, 3)))
    count = pp * virtual_stages - 1
    inner = (
        draw(st.sets(st.integers(1, layers - 1), min_size=count, max_size=count))
        if (layers > 1)
        else set()
    )
    schedule = "interleaved" if virtual_stages > 1 else draw(st.sampled_from(["1f1b", "gpipe"]))
    recompute = st.sampled_from(["none", "selective", "full"])
    point = Point(
        tp=draw(st.integers(1, 64)), sp=draw(st.booleans()), dp=draw(st.integers(1, 512)), pp=pp,
        micro_batch=draw(st.integers(1, 64)), zero=draw(st.integers(0, 3)),
        order=draw(st.sampled_from([MEGATRON, PAPER])), cp=draw(st.integers(1, 16)),
        ep=draw(st.integers(1, 16)), schedule=schedule, interleave=virtual_stages,
        etp=draw(st.integers(0, 8)),
    )  # fmt: skip
    chosen = tuple(draw(recompute) for _ in range(pp))
    widths = st.integers(1, 16)
    strategy = st.builds(
        StageStrategy, widths, st.booleans(), widths, widths, st.integers(0, 3), st.integers(0, 8)
    )
    mixed = draw(st.sampled_from([(), tuple(draw(strategy) for _ in range(pp))]))
    return Plan(point, (0, *sorted(inner), layers), chosen, mixed), layers


@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(plans())
def test_a_plan_comes_back_from_json_as_it_was(drawn):
    """A failure: what `plan` printed is priced as something else."""
    plan, layers = drawn
    text = json.dumps(plan.to_json())
    assert parse_plan(json.loads(text), layers) == plan


@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(plans())
def test_key_value_pairs_can_say_every_plan(drawn):
    """Lists joined by hyphens; what is left out is 1, 0, false, none or even."""
    plan, layers = drawn
    plan, point = replace(plan, strategies=()), plan.point
    parts = {
        "tp": point.tp,
        "dp": point.dp,
        "pp": point.pp,
        "micro_batch": point.micro_batch,
        "zero": point.zero,
        "sp": str(point.sp).lower(),
        "order": "-".join(point.order),
        "cuts": "-".join(map(str, plan.cuts)),
        "cp": point.cp,
        "ep": point.ep,
        "etp": point.etp,
        "schedule": point.schedule,
        "interleave": point.interleave,
    }
    if point.pp > 1:
        parts["stage_recompute"] = "-".join(plan.recompute)
    else:
        parts["recompute"] = plan.recompute[0]
    text = ",".join(f"{key}={value}" for key, value in parts.items())
    assert read_plan(text, layers, 10**6) == plan


def test_a_device_order_of_ones_own_is_a_list():
    """What `plan` prints of a hand-made placement is read back; a tuple, so that plans hash."""
    text = json.dumps(parse_plan({"tp": 2, "device_order": [1, 0]}, 34).to_json())
    plan = parse_plan(json.loads(text), 34)
    assert plan.point.device_order == (1, 0)
    assert hash(plan) == hash(parse_plan(json.loads(text), 34))


@pytest.mark.parametrize(
    "text",
    [
        "dp=8 tp=4 pp=2",
        "dp=8\ntp=4\npp=2\n",
        "dp = 8; tp = 4; pp = 2",
        '{"dp": 8, "tp": 4, "pp": 2}',
        '{"plan": {"dp": 8, "tp": 4, "pp": 2}}',
    ],
)
def test_fields_may_be_pasted_in_any_arrangement(text):
    assert read_pasted(text, 34, 64).plan == read_plan("dp=8,tp=4,pp=2", 34, 64)


def test_pasted_text_never_opens_a_file(tmp_path):
    """A failure: the page reads files of its machine for whoever asks."""
    file = tmp_path / "plan.json"
    file.write_text('{"dp": 8}')
    with pytest.raises(InputError):
        read_pasted(str(file), 34, 64)


def test_what_is_left_out_takes_its_default():
    expected = Plan(Point(4, False, 8, 2, 1, 0, MEGATRON), (0, 17, 34), ("none", "none"))
    assert read_plan("dp=8,tp=4,pp=2", 34, 64) == expected
    assert read_plan(" dp = 8 , tp=4,pp=2,cp=1,ep=1,schedule=1f1b,interleave=1", 34, 64) == expected


@pytest.mark.parametrize(
    "text",
    [
        "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2",
        "--tensor-model-parallel-size=4 --pipeline-model-parallel-size=2",
        "  --pipeline-model-parallel-size 2 --tensor-model-parallel-size '4'",
        "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --data-parallel-size 8",
        "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2"
        " --context-parallel-size 1 --expert-model-parallel-size 1 --micro-batch-size 1",
    ],
)
def test_megatron_flags_leave_data_parallelism_to_the_rest(text):
    """64 devices over 4 x 2 make 8 replicas, as Megatron-LM infers them."""
    assert read_plan(text, 34, 64) == read_plan("dp=8,tp=4,pp=2", 34, 64)


def test_megatron_switches():
    plan = read_plan(
        "--tensor-model-parallel-size 8 --sequence-parallel --use-distributed-optimizer"
        " --recompute-activations --micro-batch-size 2",
        34,
        64,
    )
    assert plan == Plan(Point(8, True, 8, 1, 2, 1, MEGATRON), (0, 34), ("selective",))
    for text in (
        "--recompute-granularity full --pipeline-model-parallel-size 2",
        "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
        " --pipeline-model-parallel-size 2",
    ):
        assert read_plan(text, 34, 2).recompute == ("full", "full")
    assert read_plan("--use-tp-pp-dp-mapping", 34, 8).point.order == PAPER


@pytest.mark.parametrize(
    ("text", "zero"),
    [
        ("--use-torch-fsdp2", 3),
        ("--data-parallel-sharding-strategy no_shard", 0),
        ("--data-parallel-sharding-strategy optim", 1),
        ("--data-parallel-sharding-strategy optim_grads", 2),
        ("--data-parallel-sharding-strategy=optim_grads_params", 3),
    ],
)
def test_megatron_sharding(text, zero):
    assert read_plan(text, 34, 8).point.zero == zero


def test_megatron_context_and_expert_degrees():
    """128 devices over tp 2, cp 4 and pp 4 make 4 replicas; experts take no devices."""
    plan = read_plan(
        "--tensor-model-parallel-size 2 --context-parallel-size 4"
        " --pipeline-model-parallel-size 4 --expert-model-parallel-size 8",
        34,
        128,
    )
    assert plan.point == Point(2, False, 4, 4, 1, 0, MEGATRON, cp=4, ep=8)


def test_megatron_spreads_experts_over_tensor_ranks():
    """Without the flag tp divides experts; a plan that says nothing takes the scenario's word."""
    text = "--tensor-model-parallel-size 4 --sequence-parallel --expert-model-parallel-size 32"
    assert read_plan(text, 34, 32).point.etp == 4
    found = read_plan(text + " --expert-tensor-parallel-size 1", 34, 32).point
    assert (found.etp, found.ep, found.expert_sharers) == (1, 32, 1)
    assert read_plan("tp=4,sp=true,ep=2", 34, 8, whole_experts=True).point.etp == 1
    assert read_plan("tp=4,sp=true,ep=2,etp=2", 34, 8, whole_experts=True).point.etp == 2


@pytest.mark.parametrize(
    "flag",
    ["--num-virtual-stages-per-pipeline-rank 2", "--num-layers-per-virtual-pipeline-stage 4"],
)
def test_megatron_virtual_stages(flag):
    """32 blocks over 4 stages of 2 virtual stages: 4 blocks each, the ends at the ends."""
    plan = read_plan(f"--pipeline-model-parallel-size 4 {flag}", 34, 4)
    assert (plan.point.schedule, plan.point.interleave) == ("interleaved", 2)
    assert plan.cuts == (0, 5, 9, 13, 17, 21, 25, 29, 34)
    assert plan.virtual_stages(1) == ((5, 9), (21, 25))


@pytest.mark.parametrize("layers", [1, 2, 3, 10, 34, 98])
def test_even_cuts_cover_the_chain_as_evenly_as_blocks_go(layers):
    """Every stage has a layer, and as many blocks as any other or one less.

    Embedding and head ride with the first and the last stage, unless stages outnumber blocks.
    """
    for depth in range(1, layers + 1):
        cuts = even_cuts(layers, depth)
        assert (len(cuts), cuts[0], cuts[-1]) == (depth + 1, 0, layers)
        sizes = [last - first for first, last in pairwise(cuts)]
        assert min(sizes) >= 1
        if depth <= layers - 2:
            sizes[0] -= 1
            sizes[-1] -= 1
        assert max(sizes) - min(sizes) <= 1


BAD_TEXT = [
    ("", "must be a JSON file, key=value pairs or Megatron flags"),
    ("nothing-here.json", "must be a JSON file, key=value pairs or Megatron flags"),
    ("a\0b", "must be a JSON file, key=value pairs or Megatron flags"),
    ("dp=8,tp", "must read key=value,key=value, but is 'tp'"),
    ("dp=8,,tp=2", "must read key=value,key=value, but is ''"),
    ("width=8", "plan.width is not a known field, but is 8: use tp, dp, pp"),
    ("=8", "is not a known field"),
    ("dp=0", "plan.dp must be a whole number from 1 to 10,000,000, but is 0"),
    ("dp=-1", "plan.dp must be a whole number from 1 to 10,000,000, but is '-1'"),
    ("dp=1.5", "plan.dp must be a whole number from 1 to 10,000,000, but is '1.5'"),
    ("dp=²", "plan.dp must be a whole number from 1"),
    ("dp=nan", "plan.dp must be a whole number from 1 to 10,000,000, but is 'nan'"),
    ("dp=" + "9" * 5000, "plan.dp must be a whole number from 1"),
    ("dp=" + "8," * 5000 + "=", "must read key=value,key=value"),
    ("sp=1", "plan.sp must be true or false, but is 1"),
    ("pp=35", "plan.pp must not exceed the model's 34 layers, but is 35"),
    ("cp=0", "plan.cp must be a whole number from 1 to 10,000,000, but is 0"),
    ("ep=x", "plan.ep must be a whole number from 1 to 10,000,000, but is 'x'"),
    ("schedule=zb", "plan.schedule must be one of the schedules, but is 'zb': pick 1f1b, gpipe"),
    ("pp=4,interleave=9", "plan.interleave times pp = 4 must not exceed the model's 34 layers"),
    (
        "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 3",
        "stage times pp = 4 must divide the model's 32 blocks, but is 3",
    ),
    ("--data-parallel-sharding-strategy all", "must be one of Megatron-LM's, but is 'all'"),
    ("--sequence-parallel=true", "must give a switch no value, but is '--sequence-parallel=true'"),
    ("device_order=spiral", "plan.device_order must be one of the orders, but is 'spiral'"),
    ("recompute=some", "plan.recompute must be none, selective, full, modules joined by +"),
    ("recompute=mixed", "but is 'mixed': give stage_recompute for a mixed plan"),
    ("order=5", "plan.order must be a list, but is 5"),
    ("order=tp", "plan.order must be a list, but is 'tp'"),
    ("order=tp-dp-pp", "plan.order must name tp, cp, dp and pp once"),
    ("cuts=5", "plan.cuts must be a list, but is 5"),
    ("cuts=0-x", "plan.cuts must be a whole number from 0 to 10,000,000, but is 'x'"),
    ("--tensor-model-parallel-size", "must give every flag its value"),
    ("--tensor-model-parallel-size 'abc", "must close its quotes"),
    ("--tensor-model-parallel-size 0", "--tensor-model-parallel-size must be a whole number"),
    ("--context-parallel-size 0", "--context-parallel-size must be a whole number from 1"),
]


@pytest.mark.parametrize(("text", "message"), BAD_TEXT, ids=[text[:40] for text, _ in BAD_TEXT])
def test_text_that_is_no_plan_is_refused(text, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message) as caught:
        read_plan(text, 34, 64)
    assert "\n" not in str(caught.value)


BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"order": None}, "plan.order must be a list, but is None"),
    ({"order": "tpcp"}, "plan.order must be a list, but is 'tpcp'"),
    ({"order": {"tp": 1, "cp": 1, "dp": 1, "pp": 1}}, "plan.order must be a list"),
    ({"order": ["tp", "cp", "dp", ["pp"]]}, "plan.order must name tp, cp, dp and pp once"),
    ({"cuts": 5}, "plan.cuts must be a list, but is 5"),
    ({"cuts": "0-34"}, "plan.cuts must be a list, but is '0-34'"),
    ({"cuts": [0, 1.5, 34]}, "plan.cuts must be a whole number from 0 to 10,000,000, but is 1.5"),
    ({"cuts": [0, True]}, "plan.cuts must be a whole number from 0 to 10,000,000, but is True"),
    ({"stage_recompute": 5}, "plan.stage_recompute must be a list, but is 5"),
    ({"stage_recompute": "none"}, "plan.stage_recompute must be a list, but is 'none'"),
    ({"recompute": []}, "plan.recompute must be none, selective, full, modules"),
    ({"recompute": {"a": 1}}, "plan.recompute must be none, selective, full, modules"),
    ({"recompute": {"modules": []}}, "plan.recompute must name each module once, and at least"),
    ({"recompute": "mlp+mlp"}, "plan.recompute must name each module once"),
    ({"recompute": {"modules": ["att"]}}, "but is 'att': pick core_attn, moe_act, layernorm, "),
    ({"dp": None}, "plan.dp must be a whole number from 1 to 10,000,000, but is None"),
    ({"dp": True}, "plan.dp must be a whole number from 1 to 10,000,000, but is True"),
    ({"dp": 10**400}, "plan.dp must be a whole number from 1"),
    ({"tp": float("inf")}, "plan.tp must be a whole number from 1 to 10,000,000, but is inf"),
    ({"zero": -1}, "plan.zero must be a whole number from 0 to 10,000,000, but is -1"),
    ({"sp": None}, "plan.sp must be true or false, but is None"),
    ({"cp": [1]}, r"plan.cp must be a whole number from 1 to 10,000,000, but is \[1\]"),
    ({"schedule": ["1f1b"]}, "plan.schedule must be one of the schedules"),
    (
        {"device_order": [0, -1]},
        "plan.device_order must be a whole number from 0 to 10,000,000, but is -1",
    ),
    ({"stage_strategies": 5}, "plan.stage_strategies must be a list, but is 5"),
    (
        {"stage_strategies": [5]},
        "must hold objects of tp, sp, cp, ep, zero, etp, zero_group, but is 5",
    ),
    (
        {"stage_strategies": [{"dp": 2}]},
        "must hold objects of tp, sp, cp, ep, zero, etp, zero_group",
    ),
    ({"stage_strategies": [{"sp": 1}]}, "must have sp true or false, but is 1"),
    (
        {"interleave": 2.0},
        "plan.interleave must be a whole number from 1 to 10,000,000, but is 2.0",
    ),
    ({"virtual": 2}, "plan.virtual is not a known field, but is 2"),
]


@pytest.mark.parametrize(
    ("fields", "message"), BAD_FIELDS, ids=[str(f)[:40] for f, _ in BAD_FIELDS]
)
def test_fields_of_the_wrong_kind_are_refused(fields, message):
    """A failure: a hand-written JSON plan ends in a traceback."""
    with pytest.raises(InputError, match=message):
        parse_plan(fields, 34)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must be valid JSON"),
        (b"{", "must be valid JSON"),
        (b"\xff\xfe", "must be UTF-8 text"),
        (b"[" * 100_000, "must be valid JSON"),
        (b'{"dp": ' + b"9" * 5000 + b"}", "must be valid JSON"),
        (b"[]", "must hold a plan"),
        (b"null", "must hold a plan"),
        (b'{"plan": null, "feasible": false}', "must hold a plan, but is None"),
        (b'{"plan": 5}', "must hold a plan, but is 5"),
        (b'{"dp": NaN}', "plan.dp must be a whole number from 1 to 10,000,000, but is nan"),
        (b" " * (MAX_FILE_BYTES + 1), "must hold at most 5,000,000 bytes"),
    ],
    ids=[
        "empty",
        "open",
        "binary",
        "deep",
        "long number",
        "list",
        "null",
        "no plan",
        "plan 5",
        "NaN",
        "large",
    ],
)
def test_files_that_hold_no_plan_are_refused(content, message, tmp_path):
    file = tmp_path / "plan.json"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_plan(str(file), 34, 64)
    assert "\n" not in str(caught.value)


def test_a_file_holds_a_plan_or_a_whole_answer(tmp_path):
    plan = Plan(Point(2, False, 4, 2, 1, 1, PAPER), (0, 20, 34), ("none", "full"))
    for document in (plan.to_json(), {"feasible": True, "plan": plan.to_json(), "stages": []}):
        file = tmp_path / "a=b.json"  # an equals sign does not make a file's name key=value
        file.write_text(json.dumps(document))
        assert read_plan(str(file), 34, 64) == plan


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
names = st.sampled_from(
    [
        "tp",
        "dp",
        "pp",
        "micro_batch",
        "sp",
        "zero",
        "recompute",
        "order",
        "cuts",
        "cp",
        "stage_recompute",
        "devices_used",
        "schedule",
        "ep",
        "interleave",
    ]
)


def refusal(reading: Callable[[], Plan]) -> str:
    """Why it is no plan; empty if it is one."""
    try:
        reading()
    except InputError as error:
        return str(error)
    return ""


@settings(max_examples=150, derandomize=True, database=None, deadline=None)
@given(st.dictionaries(names | st.text(max_size=6), anything, max_size=6))
@pytest.mark.check
def test_any_object_is_a_plan_or_refused(fields):
    """Nothing but `InputError` escapes, whatever a JSON file holds."""
    assert "\n" not in refusal(lambda: parse_plan(fields, 34))


pieces = st.sampled_from(
    [
        "dp=8",
        "tp=2",
        "pp=2",
        "order=",
        "cuts=0-34",
        "--micro-batch-size",
        "'",
        '"',
        "\\",
        "=",
        ",",
        " ",
        "--sequence-parallel",
        "-",
        "8",
        "\0",
        "µ",
        "cuts=-",
        "{",
        "recompute=full",
    ]
)


@settings(max_examples=150, derandomize=True, database=None, deadline=None)
@given(st.lists(pieces | st.text(string.printable, max_size=5), max_size=8).map("".join))
def test_any_text_is_a_plan_or_refused(text):
    """A typing error on the command line is one sentence too."""
    assert "\n" not in refusal(lambda: read_plan(text, 34, 64))


def test_a_field_given_twice_is_refused():
    """The person meant one of them; taking the last would price another plan."""
    with pytest.raises(InputError, match=r"plan\.dp must be given once"):
        read_plan("dp=64,dp=1", 34, 64)
