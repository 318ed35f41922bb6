"""Populations of jobs: what a log says, where Slurm puts jobs, and what that costs."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from small_fabric import CLOS, FABRIC, job, small

import nest_core as nest
from nest_core.documents import InputError
from nest_core.network import collapse
from nest_core.simulator import simulate
from nest_core.studies.mixes import mix_file
from nest_core.studies.neighbours import simulate_jobs
from nest_core.studies.population import play_population, uplink_shares
from nest_core.studies.slurm_jobs import ClusterJob, job_nodes, place_jobs, read_sacct
from nest_studio.cli import run

PINS = {"search.micro_batch_sequences": 4, "search.tp": 1, "search.pp": 1, "search.zero": [1]}


def document(jobs, **more):
    """Return a population of BERT-large on the small fabric: four leaves of two nodes of two."""
    table = {"scenario": "bert-large-64-v100", "overrides": PINS, "jobs": jobs, **more}
    return {"schema": 1, "name": "p", "fabric": {**FABRIC, "clos": CLOS}, "population": table}


def sizes(**share):
    return [{"devices": int(name[1:]), "share": part} for name, part in share.items()]


# Where Slurm puts a job, beside every way to choose its nodes.

LEAF = (0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 3)
POD = (0,) * 7 + (1,) * 5
BLOCKS = (LEAF, POD, (0,) * 12)


def placed(idle, need, rule, segment=None):
    devices = np.array([2 * (node in idle) for node in range(12)])
    arrays = [np.array(block) for block in BLOCKS]
    nodes = job_nodes(2 * need, devices, np.full(12, 2), arrays, rule, segment)
    return None if nodes is None else nodes.tolist()


def random_idle(seed):
    rng = np.random.default_rng(seed)
    return {*rng.permutation(12)[: int(rng.integers(1, 13))].tolist()}, int(rng.integers(1, 9))


@pytest.mark.parametrize("seed", range(60))
def test_tree_is_the_best_of_all_ways_to_choose_nodes(seed):
    """Lowest switch, then fewest idle nodes below it, then fewest leaves."""
    idle, need = random_idle(seed)
    ways = {}
    for nodes in itertools.combinations(sorted(idle), need):
        level = next(n for n, block in enumerate(BLOCKS) if len({block[k] for k in nodes}) == 1)
        below = sum(BLOCKS[level][k] == BLOCKS[level][nodes[0]] for k in idle)
        ways[nodes] = level, below, len({LEAF[k] for k in nodes})
    nodes = placed(idle, need, "tree")
    if not ways:
        assert nodes is None
        return
    assert ways[tuple(nodes)] == min(ways.values())


@pytest.mark.parametrize("seed", range(60))
def test_block_takes_no_more_blocks_than_the_size_needs_or_waits(seed):
    """A base block has four nodes, the most that a leaf has here."""
    idle, need = random_idle(seed)
    ways = {
        nodes: len({LEAF[k] for k in nodes})
        for nodes in itertools.combinations(sorted(idle), need)
        if len({LEAF[k] for k in nodes}) <= (need + 3) // 4
    }
    nodes = placed(idle, need, "block")
    if not ways:
        assert nodes is None
        return
    assert ways[tuple(nodes)] == min(ways.values())
    if len({LEAF[k] for k in nodes}) == 1:
        tight = (sum(LEAF[k] == LEAF[way[0]] for k in idle) for way, n in ways.items() if n == 1)
        assert sum(LEAF[k] == LEAF[nodes[0]] for k in idle) == min(tight)


def test_segments_of_two_go_to_the_tightest_blocks():
    """Blocks with 3, 4, 2 and 3 idle nodes: two of the block of two, two more of one of three."""
    nodes = placed({*range(12)}, 4, "block", segment=2)
    assert nodes[:2] == [7, 8]
    assert len({LEAF[k] for k in nodes[2:]}) == 1
    assert placed({*range(12)}, 3, "block", segment=2) is None


def test_a_job_of_less_than_a_node_goes_to_the_fullest_with_room():
    jobs = [ClusterJob(1, 0, 9), ClusterJob(2, 0, 9), ClusterJob(1, 0, 9), ClusterJob(1, 0, 9)]
    blocks = [np.array([0, 0, 1]), np.zeros(3, int)]
    nodes = place_jobs(jobs, np.full(3, 2), blocks, "tree")
    assert [of.tolist() for of in nodes] == [[0], [1], [0], [2]]


def test_a_job_that_waits_holds_up_those_behind_it():
    """Two leaves of two nodes: the large job waits for both leaves, the small one behind it."""
    jobs = [ClusterJob(2, 0, 5), ClusterJob(4, 0, 5), ClusterJob(1, 0, 1)]
    blocks = [np.array([0, 0, 1, 1]), np.zeros(4, int)]
    nodes = place_jobs(jobs, np.ones(4, int), blocks, "tree")
    assert [of.tolist() for of in nodes] == [[0, 1], [0, 1, 2, 3], [0]]


# Shares and losses.


def test_the_share_under_one_leaf_by_hand(tmp_path):
    """Leaves of two nodes of two; one job a time, of 2, 4, 8 and 4 devices for 1, 2, 3 and 1 s."""
    log = "JobID|NNodes|ElapsedRaw|Start\n" + "".join(
        f"{n}|{nodes}|{seconds}|2026-01-01T00:0{n}:00\n{n}.batch|{nodes}|{seconds}|\n"
        for n, (nodes, seconds) in enumerate([(1, 1), (2, 2), (4, 3), (2, 1)])
    )
    (tmp_path / "jobs.txt").write_text(log)
    told = []
    result = play_population(
        mix_file(document("jobs.txt", ratios=[1.0, 4.0])), tmp_path, lambda *step: told.append(step)
    )
    assert [(share, words[-3:]) for share, words in told] == [(0.0, "1:1"), (0.5, "4:1")]
    hours = {2: 2 * 1, 4: 4 * 2 + 4 * 1, 8: 8 * 3}
    assert result.under_one_leaf == pytest.approx((hours[2] + hours[4]) / sum(hours.values()))
    assert [row["devices"] for row in result.sizes] == [2, 4, 8]
    assert [row["under_one_leaf"] for row in result.sizes] == [1, 1, 0]
    assert result.replayed == 1.0
    low, high = result.ratios
    assert low["loss"] == pytest.approx(0, abs=1e-9)
    assert high["contended_loss"] > 0.01
    # The job fills its leaves: nobody is there who could send as well.
    assert high["loss"] == pytest.approx(high["contended_loss"], rel=1e-9)


@pytest.mark.parametrize("ratio", [1.0, 2.0, 4.0])
def test_beside_others_that_send_as_much_a_job_takes_what_it_takes_beside_its_twin(ratio):
    """Each has a node under either leaf, and so half of their uplinks."""
    values = small(PINS, devices=8, oversubscription=[ratio])
    network = collapse(values.fabric)
    words = "dp=4,tp=1,pp=1,micro_batch=4,zero=1"
    twins = [job(values, network, words, at) for at in ([0, 1, 4, 5], [2, 3, 6, 7])]
    link_map = network.link_map.scaled(uplink_shares(network, [0, 1, 4, 5]))
    problem, plan = twins[0]
    seconds = simulate(replace(problem, network=replace(network, link_map=link_map)), plan).seconds
    assert seconds == pytest.approx(simulate_jobs(twins).seconds[0], rel=1e-6)


def test_ratios_cost_more_the_higher_and_a_histogram_keeps_its_shares():
    table = document(sizes(n1=0.1, n4=0.3, n8=0.6), ratios=[1.0, 2.0, 4.0], seed=3)
    result = nest.mix(table).result
    assert [row["share"] for row in result.sizes] == pytest.approx([0.1, 0.3, 0.6])
    losses = [row["contended_loss"] for row in result.ratios]
    assert losses == sorted(losses)
    assert all(row["contended_loss"] >= row["loss"] - 1e-9 for row in result.ratios)
    assert nest.mix(table).to_json() == nest.mix(table).to_json()


def test_jobs_larger_than_a_leaf_are_never_under_one_and_smaller_ones_lose_nothing():
    assert nest.mix(document(sizes(n6=1.0), ratios=[1.0])).result.under_one_leaf == 0
    assert nest.mix(document(sizes(n2=1.0))).result.ratios[-1]["contended_loss"] == 0


# Logs, and what is refused.


def test_a_log_leaves_steps_out_and_takes_devices_from_gres(tmp_path):
    path = tmp_path / "jobs.txt"
    path.write_text(
        "JobID|NNodes|AllocTRES|ElapsedRaw|Start\n"
        "7|2|cpu=8,gres/gpu=9,node=2|60|2026-01-01T00:00:10\n"
        "7.batch|1|cpu=4,gres/gpu=5|60|2026-01-01T00:00:10\n7.extern|2||60|\n7.0|2||59|\n"
        "8_4|1|billing=3,gres/gpu:a100=4|30|2026-01-01T00:00:05\n"
        "9|1|cpu=4|30|2026-01-01T00:00:05\n10|1|gres/gpu=1|0|Unknown\n"
    )
    jobs = read_sacct(path, 8)
    assert [(of.devices, of.lasts) for of in jobs] == [(4, 30), (9, 60)]
    assert jobs[1].arrives - jobs[0].arrives == 5


def test_a_log_without_devices_counts_whole_nodes(tmp_path):
    path = tmp_path / "jobs.txt"
    path.write_text("JobID|ElapsedRaw|NNodes\n1|60|2\n2|5|0\n")
    assert [of.devices for of in read_sacct(path, 8)] == [16]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("JobID|NNodes\n1|2\n", "must have the columns JobID, ElapsedRaw, and AllocTRES or NNodes"),
        ("JobID|ElapsedRaw\n1|2\n", "must have the columns JobID, ElapsedRaw, and AllocTRES or"),
        ("JobID|NNodes|ElapsedRaw\n1|2|01:00:00\n", "line 2 must have whole seconds and times"),
        ("JobID|NNodes|ElapsedRaw\n1.batch|2|60\n", "must hold jobs that ran on devices"),
        ("JobID|NNodes|ElapsedRaw\n1|9|60\n", "must have at most the 16 devices of the fabric"),
    ],
)
def test_a_log_that_is_none_is_refused_in_one_sentence(tmp_path, capsys, text, sentence):
    (tmp_path / "jobs.txt").write_text(text)
    with pytest.raises(InputError, match=re.escape(sentence)) as refused:
        play_population(mix_file(document("jobs.txt")), tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"jobs": []}, "population.jobs must be a list of at least 1 entries, but is []"),
        ({"jobs": sizes(n8=-0.5)}, "population.jobs[0].share must be above 0.0, but is -0.5"),
        ({"jobs": sizes(n17=1.0)}, "must have at most the 16 devices of the fabric each"),
        ({"jobs": "jobs.txt"}, "population.jobs must list sizes here, but is 'jobs.txt'"),
        (
            {"jobs": sizes(n6=1.0), "placement": "block", "segment": 2},
            "must hold jobs that topology/block can place on the idle fabric, but is '6 devices'",
        ),
        ({"placement": "torus"}, "population.placement must be 'tree' or 'block'"),
    ],
)
def test_what_is_no_population_is_refused_in_one_sentence(changes, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)) as refused:
        nest.mix(document(**{"jobs": sizes(n8=1.0), **changes}))
    assert "\n" not in str(refused.value)


def test_a_fabric_without_ratios_is_refused():
    table = document(sizes(n8=1.0)) | {"fabric": "torus-16x16"}
    with pytest.raises(InputError, match="fabric must be a tree with tiers to oversubscribe"):
        nest.mix(table)


def test_the_command_prints_the_population(tmp_path, capsys):
    lines = ["schema = 1", 'name = "p"', 'fabric = "h100-spine-leaf-64"', "[population]"]
    lines += ['scenario = "llama2-7b-64-h100"', "ratios = [2.0]"]
    lines += ['overrides = { "search.tp" = 1, "search.pp" = 1 }']
    lines += ["[[population.jobs]]", "devices = 48", "share = 1.0"]
    path = tmp_path / "p.toml"
    path.write_text("\n".join(lines))
    assert run(["mix", str(path), "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["jobs"] == fields["contended_links"] == []
    assert fields["placement"] == "tree"
    assert fields["population"]["ratios"][0]["ratio"] == 2.0
    assert run(["mix", str(path)]) == 0
    assert "under one leaf" in capsys.readouterr().out
