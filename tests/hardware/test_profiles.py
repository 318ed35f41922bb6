"""Profiles: files in and out, and measured times before estimated ones. No torch here."""

from __future__ import annotations

import importlib.util
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

from nest_core.costs.tables import layer_table
from nest_core.documents.errors import InputError
from nest_core.documents.presets import load_toml, preset_names, preset_path
from nest_core.hardware import (
    backward_seconds,
    forward_seconds,
    load_accelerator,
    measured_share,
    seconds,
)
from nest_core.hardware.profile_cases import cases
from nest_core.hardware.profiles import (
    KernelMeasurement,
    Profile,
    SkippedKernel,
    joined,
    load_profile,
    read_profile,
    signature,
    write_profile,
)
from nest_core.hardware.stacks import default_stack, under
from nest_core.scenario import load_scenario
from nest_core.workload import Strategy, chain
from nest_core.workload.model_files import load_model
from nest_core.workload.operators import Kernel, Operator
from nest_studio.cli import run

DEVICE = under(load_accelerator("h100-80gb"), default_stack("h100"), "bf16")
PRODUCT = Kernel("gemm", 2e9, 6e6, (1.0, 1000.0, 1000.0, 1000.0))
PASS = Kernel("memory", 0.0, 6e6)
WORK = Operator("o", "linear", (PRODUCT,), (PRODUCT, PASS), (), 0.0, False)
SMALL = "llama2-7b-64-h100"
PINNED = ("search.tp=4", "search.sp=false", "search.micro_batch_sequences=1")


def measurement(op, direction, kernel, taken, function=""):
    return KernelMeasurement(
        signature(op, direction, kernel), function, ("m, block, o",), taken, 0.0, 3, "t"
    )


def profile(*entries, **changes):
    whole = Profile("p", "A device", "cuda", "bf16", "2.13.0", "12.8", "2026-01-31", entries)
    return replace(whole, **changes)


def with_profile(*entries, **changes):
    return replace(DEVICE, profile=profile(*entries, **changes))


def of_everything(model, strategies, factor):
    """Every kernel measured at so many times its estimate."""
    return profile(
        *(
            KernelMeasurement(
                case.signature,
                case.function,
                case.operators,
                factor * seconds(case.kernel, DEVICE, "bf16"),
                0.0,
                1,
                "t",
            )
            for case in cases(model, strategies)
        )
    )


def document(**changes):
    return {**json.loads(write_profile(profile(measurement("o", "forward", PASS, 1.0)))), **changes}


def test_a_profile_survives_its_file():
    whole = profile(
        measurement("linear", "forward", PRODUCT, 0.1 + 0.2),
        skipped=(
            SkippedKernel(signature("a", "backward", PASS), "gelu", ("m, b, o",), 'no "kernel"'),
        ),
    )
    again = read_profile(write_profile(whole))
    assert again == whole
    assert hash(again) == hash(whole)
    assert again.measured == whole.measured
    assert again.skipped == whole.skipped
    assert pickle.loads(pickle.dumps(whole)) == whole


@pytest.mark.parametrize("change", ["name", "device", "precision", "date"])
def test_profiles_that_differ_are_not_equal(change):
    whole = profile(measurement("linear", "forward", PRODUCT, 1.0))
    other = replace(whole, **{change: "fp16"})
    assert other != whole
    assert hash(other) != hash(whole)
    assert profile(measurement("linear", "forward", PRODUCT, 2.0)) != whole


def test_a_measured_kernel_takes_its_measured_time():
    device = with_profile(measurement("linear", "forward", PRODUCT, 7.0))
    assert forward_seconds(WORK, device, "bf16") == 7.0
    assert backward_seconds(WORK, device, "bf16") == backward_seconds(WORK, DEVICE, "bf16")
    assert forward_seconds(replace(WORK, op="grouped_linear"), device, "bf16") < 1.0
    assert forward_seconds(WORK, device, "fp16") == forward_seconds(WORK, DEVICE, "fp16")
    assert forward_seconds(WORK, DEVICE, "bf16") < 1.0


def test_kernels_of_both_passes_are_told_apart():
    device = with_profile(
        measurement("linear", "forward", PRODUCT, 7.0),
        measurement("linear", "backward", PRODUCT, 11.0),
        measurement("linear", "backward", PASS, 13.0),
    )
    assert forward_seconds(WORK, device, "bf16") == 7.0
    assert backward_seconds(WORK, device, "bf16") == 24.0
    assert seconds(PRODUCT, device, "bf16") == 9.0  # of an operator that is not named


def test_kernels_that_look_alike_share_their_mean():
    device = with_profile(
        measurement("elementwise", "forward", PASS, 1.0, "gelu"),
        measurement("elementwise", "forward", PASS, 2.0, "add"),
    )
    alike = Operator("o", "elementwise", (PASS,), (), (), 0.0, False)
    assert forward_seconds(alike, device, "bf16") == 1.5


def test_the_last_digits_of_sizes_do_not_matter():
    device = with_profile(measurement("linear", "forward", PRODUCT, 7.0))
    off = replace(PRODUCT, bytes=np.nextafter(6e6, 7e6), shape=(1.0, 1e3, 1e3, 1e3 - 1e-10))
    assert forward_seconds(replace(WORK, forward=(off,)), device, "bf16") == 7.0
    other = replace(PRODUCT, shape=(1.0, 1000.0, 1000.0, 1001.0))
    assert forward_seconds(replace(WORK, forward=(other,)), device, "bf16") < 1.0


@pytest.mark.parametrize("model", ["llama2-7b", "mixtral-8x7b", "gpt3-6.7b", "deepseek-v2"])
@pytest.mark.parametrize("attention", ["flash", "unfused"])
def test_times_that_are_all_doubled_double_a_table(model, attention):
    known = load_model(model)
    strategy = Strategy(tp=4, sp=True, micro_batch=2, sequence=512, attention=attention)
    measured = replace(DEVICE, profile=of_everything(known, [strategy], 2.0))
    estimated = layer_table(known, strategy, DEVICE, "bf16")
    found = layer_table(known, strategy, measured, "bf16")
    for name in ("compute_s", "forward_s", "replay_s"):
        np.testing.assert_allclose(getattr(found, name), 2.0 * getattr(estimated, name), 1e-12)
    np.testing.assert_array_equal(found.launch_s, estimated.launch_s)
    runs = [
        (operator, times)
        for layer, times in chain(known, strategy).runs
        for operator in layer.operators
    ]
    assert measured_share(runs, measured, "bf16") == 1.0
    assert measured_share(runs, DEVICE, "bf16") == 0.0


def test_the_share_counts_every_layer_and_both_passes():
    device = with_profile(measurement("linear", "forward", PRODUCT, 6e-6))
    rest = backward_seconds(WORK, DEVICE, "bf16")
    other = Operator("n", "norm", (PASS,), (), (), 0.0, False)
    more = forward_seconds(other, DEVICE, "bf16")
    share = measured_share([(WORK, 3), (other, 5)], device, "bf16")
    assert share == pytest.approx(18e-6 / (3 * (6e-6 + rest) + 5 * more))
    assert measured_share([], device, "bf16") == 0.0


def test_tables_are_kept_by_what_a_profile_holds():
    model, strategy = load_model("llama2-7b"), Strategy(tp=2, micro_batch=1, sequence=256)
    first, again = (of_everything(model, [strategy], 3.0) for _ in range(2))
    table = layer_table(model, strategy, replace(DEVICE, profile=first), "bf16")
    assert layer_table(model, strategy, replace(DEVICE, profile=again), "bf16") is table
    other = of_everything(model, [strategy], 4.0)
    assert layer_table(model, strategy, replace(DEVICE, profile=other), "bf16") is not table


def test_cases_are_the_kernels_of_all_strategies_once_each():
    model = load_model("mixtral-8x7b")
    strategies = [Strategy(tp=2, micro_batch=size, sequence=256) for size in (1, 2)]
    expected = {
        signature(operator.op, direction, kernel)
        for strategy in strategies
        for layer, _ in chain(model, strategy).runs
        for operator in layer.operators
        for direction in ("forward", "backward")
        for kernel in getattr(operator, direction)
    }
    found = cases(model, strategies)
    assert {case.signature for case in found} == expected
    assert len({(case.signature, case.function) for case in found}) == len(found)
    norms = next(case for case in found if case.function == "rmsnorm")
    assert [place.split(", ")[1] for place in norms.operators] == ["moe_block", "moe_block", "head"]


def test_a_later_measurement_replaces_an_earlier_one():
    first = profile(
        measurement("linear", "forward", PRODUCT, 1.0),
        measurement("norm", "forward", PASS, 2.0),
        skipped=(SkippedKernel(signature("loss", "forward", PASS), "", ("m",), "no memory"),),
    )
    second = profile(
        replace(measurement("norm", "forward", PASS, 3.0), operators=("n, block, o",)),
        measurement("loss", "forward", PASS, 4.0),
        name="q",
        date="2026-02-01",
    )
    whole = joined(first, second)
    assert [entry.seconds for entry in whole.measured] == [1.0, 3.0, 4.0]
    assert whole.measured[1].operators == ("m, block, o", "n, block, o")
    assert (whole.name, whole.date, whole.skipped) == ("p", "2026-02-01", ())
    with pytest.raises(InputError, match=r"profile\.device must be 'B' as in the profile"):
        joined(first, replace(second, device="B"))


BAD = [
    ("{", "must be valid JSON"),
    ("[]", "must be a JSON object"),
    ("[" * 100_000, "accelerator.profile must be valid JSON"),
    (json.dumps(document(schema=2)), "profile.schema must be 1"),
    (json.dumps(document(precision="int8")), "profile.precision must be"),
    (json.dumps(document(colour="red")), "profile.colour is not a known key"),
    (json.dumps({"schema": 1}), "profile.name is required"),
]
KERNELS = [
    ("seconds", float("nan"), r"kernels\[0\].seconds must be a finite number"),
    ("seconds", 0.0, r"kernels\[0\].seconds must be at least"),
    ("seconds", "1", r"kernels\[0\].seconds must be a number"),
    ("bytes", -1.0, r"kernels\[0\].bytes must be at least 0"),
    ("direction", "sideways", r"kernels\[0\].direction must be"),
    ("shape", [1.0] * 5, r"kernels\[0\].shape must be a list of at most 4 entries"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_a_bad_file_is_refused_in_a_sentence(text, message):
    with pytest.raises(InputError, match=message):
        read_profile(text)


@pytest.mark.parametrize(("key", "value", "message"), KERNELS)
def test_a_bad_kernel_is_refused_by_name(key, value, message):
    whole = document()
    whole["kernels"][0][key] = value
    with pytest.raises(InputError, match=f"profile.{message}"):
        read_profile(json.dumps(whole))


def test_names_and_paths(tmp_path):
    whole = profile(measurement("linear", "forward", PRODUCT, 1.0))
    (tmp_path / "mine.json").write_text(write_profile(whole))
    assert load_profile("mine.json", tmp_path) == whole
    with pytest.raises(
        InputError, match=r"accelerator\.profile must be a preset or a path to a \.json"
    ):
        load_profile("no-such", tmp_path)
    with pytest.raises(InputError, match="must be a readable file"):
        load_profile("other.json", tmp_path)


def test_a_scenario_names_its_profile(tmp_path):
    text = preset_path("scenarios", f"{SMALL}.toml").read_text()
    (tmp_path / "s.toml").write_text(text + '\n[override]\n"accelerator.profile" = "p.json"\n')
    (tmp_path / "p.json").write_text(write_profile(profile()))
    assert load_scenario(str(tmp_path / "s.toml")).accelerator.profile == profile()
    assert load_scenario(SMALL).accelerator.profile is None
    with pytest.raises(InputError, match=r"must have been measured in fp16, but is 'bf16'"):
        load_scenario(str(tmp_path / "s.toml"), ['workload.precision="fp16"'])


@pytest.mark.check
def test_a_plan_says_how_much_of_it_was_measured(tmp_path, capsys):
    asked = load_scenario(SMALL)
    strategy = asked.strategy(4, False, 1, 1, 1, 4)
    whole = of_everything(asked.model, [strategy], 1.0)
    products = [entry for entry in whole.measured if entry.signature.unit == "gemm"]
    times, shares = [], []
    for kept in (whole.measured, tuple(products), ()):
        (tmp_path / "p.json").write_text(write_profile(replace(whole, measured=kept)))
        sets = (*PINNED, "baselines.names=[]", f'accelerator.profile="{tmp_path / "p.json"}"')
        options = [part for setting in sets for part in ("--set", setting)]
        assert run(["plan", SMALL, *options, "--json"]) == 0
        fields = json.loads(capsys.readouterr().out)
        times.append(fields["iteration_time_s"])
        shares.append(fields["profile"]["coverage"])
        assert fields["profile"]["device"] == "A device"
    assert times == pytest.approx([times[0]] * 3)
    assert shares[0] == pytest.approx(1.0)
    assert 0.5 < shares[1] < 1.0
    assert shares[2] == 0.0


def test_no_accelerator_brings_a_profile_of_its_own():
    """So none enters a validation that does not declare it."""
    for name in preset_names("accelerators"):
        assert "profile" not in load_toml(preset_path("accelerators", f"{name}.toml"))
        assert load_accelerator(name).profile is None


def test_shipped_profiles_can_be_read():
    for name in preset_names("profiles", ".json"):
        found = load_profile(name)
        assert found.name == name
        assert found.measured


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-model"], "workload.model must be a preset"),
        (["llama2-7b", "--device", "tpu"], "Invalid value for '--device'"),
        (["llama2-7b", "--tp", "1,x"], "--tp must be whole numbers, but is '1,x'"),
        (["llama2-7b", "--micro-batch", "0"], "--micro-batch must be at least 1, but is 0"),
        (["llama2-7b", "--sequence", "-1"], "--sequence must be at least 1, but is -1"),
        (["llama2-7b", "--precision", "int8"], "Invalid value for '--precision'"),
        (["llama2-7b", "--attention", "slow"], "Invalid value for '--attention'"),
        (["llama2-7b", "--repeat", "0"], "Invalid value for '--repeat'"),
        (["llama2-7b", "--output", "p.toml"], "--output must end in .json"),
        (["llama2-7b", "--output", "no/such/folder/p.json"], "--output must be a file that can"),
    ],
)
def test_bad_input_is_refused_before_anything_is_measured(
    arguments, message, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: pytest.fail("went on"))
    assert run(["profile", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(message)
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_without_torch_the_extra_is_named(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert run(["profile", "llama2-7b", "--device", "cpu"]) == 2
    assert capsys.readouterr().err == (
        "torch must be installed to measure kernels, but is 'missing': "
        "pip install nest-studio[torch].\n"
    )
