"""Mixes: places, plans and what jobs do to one another."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter

import numpy as np
import pytest
from small_fabric import CLOS, FABRIC, job, small

from nest_core.documents import InputError
from nest_core.documents.schema import checked
from nest_core.documents.schema.mix import MixFile
from nest_core.network import collapse
from nest_core.simulator import simulate
from nest_core.studies.mixes import divisions, play_mix
from nest_core.studies.neighbours import simulate_jobs
from nest_studio.cli import run

PINS = {"search.micro_batch_sequences": 4, "search.tp": 1, "search.pp": 1, "search.zero": [1]}


def mix(placement: str, *devices, plan: str = "", batches=(64, 32, 64), clos=None) -> MixFile:
    """Return BERT-large jobs on the small fabric, of eight devices unless ``clos`` says more."""
    jobs = [
        {
            "name": f"job {n}",
            "scenario": "bert-large-64-v100",
            "overrides": {**PINS, "workload.global_batch_sequences": batches[n]},
            "devices": number,
            "plan": plan,
        }
        for n, number in enumerate(devices)
    ]
    fabric = {**FABRIC, "clos": {**CLOS, "devices": 8, **(clos or {})}}
    document = {"schema": 1, "name": "m", "placement": placement, "fabric": fabric, "job": jobs}
    return checked(MixFile, document)


def test_packed_jobs_fill_leaves_and_spread_ones_reach_all():
    packed, spread = (
        [{device // 4 for device in one.devices} for one in play_mix(mix(how, 4, 4)).jobs]
        for how in ("packed", "spread")
    )
    assert packed == [{0}, {1}]
    assert spread == [{0, 1}, {0, 1}]


def test_links_of_several_jobs_are_named_with_who_uses_them():
    packed, spread = play_mix(mix("packed", 4, 4)), play_mix(mix("spread", 4, 4))
    assert packed.links == ()
    assert {name for link in spread.links for name in link.users} == {"job 0", "job 1"}
    assert all("spine" in link.link for link in spread.links)
    assert all(one.slowdown > 1.0 for one in spread.jobs)
    assert spread.bound_slowdown >= max(one.slowdown for one in spread.jobs)


def test_a_job_by_hand_runs_as_it_would_undisturbed_where_it_meets_nobody():
    plan = "dp=4,tp=1,pp=1,micro_batch=4,zero=1"
    result = play_mix(mix("by_hand", [3, 2, 1, 0], [4, 5, 6, 7], plan=plan))
    values = small(devices=8)
    expected = simulate(*job(values, collapse(values.fabric), plan, [3, 2, 1, 0])).seconds
    assert result.jobs[0].plan.point.device_order == (3, 2, 1, 0)
    assert result.jobs[0].seconds == pytest.approx(expected, rel=1e-9)


def best_anywhere(values, numbers):
    """Return the least loss over every way to give whole nodes to jobs, nothing taken as equal."""
    network = collapse(values[0].fabric)
    nodes = [np.flatnonzero(network.node == n).tolist() for n in range(network.node.max() + 1)]
    needed = [-(-number // len(nodes[0])) for number in numbers]

    places = []
    for order in itertools.permutations(range(len(nodes)), sum(needed)):
        parts, at = [], 0
        for count in needed:
            parts.append(tuple(sorted(order[at : at + count])))
            at += count
        places.append(tuple(parts))
    results = {}
    for parts in set(places):
        jobs = []
        for n, part in enumerate(parts):
            devices = [device for node in part for device in nodes[node]]
            words = f"dp={numbers[n]},tp=1,pp=1,micro_batch=4,zero=1"
            jobs.append(job(values[n], network, words, devices))
        results[parts] = simulate_jobs(jobs)
    least = np.min([taken.undisturbed_s for taken in results.values()], axis=0)
    weights = np.array(numbers) / sum(numbers)
    return min(float(taken.seconds / least @ weights) for taken in results.values()), least


@pytest.mark.parametrize(
    ("numbers", "devices"),
    [((4, 4), 8), ((2, 4), 8), ((2, 2, 4), 8), ((6, 2), 8), ((6, 6), 12), ((4, 2, 6), 12)],
)
def test_the_joint_placement_is_that_of_enumeration(numbers, devices):
    batches = (48, 96, 48)
    result = play_mix(mix("joint", *numbers, batches=batches, clos={"devices": devices}))
    values = [
        small({**PINS, "workload.global_batch_sequences": batch}, devices=devices)
        for batch in batches[: len(numbers)]
    ]
    loss, least = best_anywhere(values, numbers)
    seconds = np.array([one.seconds for one in result.jobs])
    weights = np.array(numbers) / sum(numbers)
    assert result.proven
    assert float(seconds / least @ weights) == pytest.approx(loss, rel=1e-6)
    assert len({d for one in result.jobs for d in one.devices}) == sum(numbers)


@pytest.mark.parametrize(
    ("nodes", "needed"), [([2, 2], [2, 1]), ([2, 2, 2], [2, 2]), ([3, 2, 2], [1, 3]), ([1], [2])]
)
def test_divisions_are_all_that_equal_blocks_tell_apart(nodes, needed):
    """Beside every way to deal single nodes out, blocks of one size in any order."""
    blocks = [block for block, size in enumerate(nodes) for _ in range(size)]
    expected = set()
    for owners in itertools.permutations(
        [n for n, count in enumerate(needed) for _ in range(count)]
        + [-1] * (len(blocks) - sum(needed))
    ):
        if len(owners) > len(blocks):
            continue
        shares = [
            tuple(
                sum(at == block and owner == n for at, owner in zip(blocks, owners, strict=True))
                for n in range(len(needed))
            )
            for block in range(len(nodes))
        ]
        expected.add(frozenset(Counter(zip(nodes, shares, strict=True)).items()))
    listed = list(divisions(nodes, [0] * len(nodes), needed))
    alike = {frozenset(Counter(zip(nodes, one, strict=True)).items()) for one in listed}
    assert alike == expected
    assert len(listed) == len(alike)


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        (("by_hand", [0, 1], [1, 2]), "of no other job, but is '1, of job job 0'"),
        (("by_hand", [0, 1], [2, 99]), "must be of the 8 that there are"),
        (("packed", 4, 8), "must be at most the 8 devices of the fabric in all, but is 12"),
        (("packed", 4, [4, 5]), "must be listed where jobs are placed by hand"),
    ],
)
def test_what_is_no_mix_is_refused_in_one_sentence(file, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)) as refused:
        play_mix(mix(*file))
    assert "\n" not in str(refused.value)


def test_the_command_prints_the_contract(tmp_path, capsys):
    document = mix("spread", 4, 4).model_dump(by_alias=True)
    lines = ['schema = 1\nname = "m"\nplacement = "spread"\nfabric = "h100-spine-leaf-64"']
    for one in document["job"]:
        lines.append(f'[[job]]\nname = "{one["name"]}"\nscenario = "llama2-7b-64-h100"')
        lines.append('devices = 16\noverrides = {"search.tp" = 1, "search.pp" = 1}')
    path = tmp_path / "mix.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert run(["mix", str(path), "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields.keys() >= {"jobs", "contended_links", "bound_slowdown", "placement"}
    job_keys = {"name", "devices", "alone_iteration_time_s", "iteration_time_s", "slowdown"}
    assert all(entry.keys() >= job_keys for entry in fields["jobs"])
    assert run(["mix", str(path)]) == 0
    assert "slowdown" in capsys.readouterr().out
    assert run(["mix", str(tmp_path / "none.toml")]) == 2
