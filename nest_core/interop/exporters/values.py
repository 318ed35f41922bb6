"""What exporters share: the files of an export, what frameworks cannot express, and shell scripts.

``torchrun`` of PyTorch 2.13 numbers ranks node after node and, within one, by local rank, which
is also the device. The caller says which node it is on and where node 0 is: ``NODE_RANK`` (under
Slurm ``SLURM_PROCID`` of one task a node: ``SLURM_NODEID`` ignores a host file), ``MASTER_ADDR``,
``MASTER_PORT``.

Ranks on hosts: which host, and which of its devices, carries rank 0, 1, 2, …

A rank's number is its place along the axes of the plan's order (`nest_core.costs.layout`); the
device order says where that number sits. Hosts are those of `nest_core.network.Network.host`,
numbered as their first devices are: a tray of an NVL72 rack, not the 72 devices that NVLink joins.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

import numpy as np

from nest_core.costs import SCHEDULES_IN_WORDS, Plan, Point, device_order, plan_words
from nest_core.documents import InputError, capital, shortened
from nest_core.documents.schema import parameter
from nest_core.interop.exporters.releases import RELEASES
from nest_core.network import IntArray, Network, collapse
from nest_core.scenario import ScenarioValues, scenario_title

__all__ = [
    "ExportFiles",
    "ExportRefused",
    "HostMapping",
    "agrees",
    "array",
    "check_plain_experts",
    "check_uniform",
    "exports",
    "fields_where",
    "header",
    "host_mapping",
    "launched",
    "pipelined",
    "refuse_first",
    "torchrun",
]


@dataclass(frozen=True, slots=True, eq=False)
class HostMapping:
    """Where every rank runs.

    Parameters
    ----------
    devices, hosts, slots : int array (ranks,)
        Device of the fabric, its host, and its place among the devices of that host.
    host_sizes : int array (hosts of the fabric,)
        Devices of every host.
    by_host : int array (devices of the fabric,)
        Devices of host 0, then those of host 1, …
    """

    devices: IntArray
    hosts: IntArray
    slots: IntArray
    host_sizes: IntArray
    by_host: IntArray

    @property
    def ranks(self) -> int:
        """Return number of ranks."""
        return len(self.devices)

    @property
    def used_hosts(self) -> IntArray:
        """Return hosts that carry a rank, ascending."""
        return np.unique(self.hosts)

    @property
    def per_host(self) -> IntArray:
        """Return ranks on each of the used hosts."""
        return np.unique(self.hosts, return_counts=True)[1]

    @property
    def in_order(self) -> bool:
        """Whether ranks fill host 0 slot by slot, then host 1, …, as launchers number them."""
        hosts = np.repeat(np.arange(len(self.per_host)), self.per_host)
        slots = np.arange(self.ranks) - np.searchsorted(hosts, hosts)
        return np.array_equal(self.hosts, hosts) and np.array_equal(self.slots, slots)

    @property
    def even(self) -> bool:
        """Return whether all used hosts carry as many ranks."""
        return int(self.per_host.min()) == int(self.per_host.max())


def host_mapping(network: Network, point: Point) -> HostMapping:
    """Return the rank mapping of a point on a network."""
    _, first, host = np.unique(network.host, return_index=True, return_inverse=True)
    host = np.argsort(np.argsort(first))[host]
    order = np.argsort(host, kind="stable")
    sizes = np.bincount(host)
    starts = np.cumsum(sizes) - sizes
    slot = np.empty(network.devices, dtype=np.int64)
    slot[order] = np.arange(network.devices) - np.repeat(starts, sizes)
    devices = np.asarray(device_order(network, point.device_order)[: point.devices_used])
    return HostMapping(devices, host[devices], slot[devices], sizes, order)


T = TypeVar("T")
Content = str | bytes


_WORDS = SCHEDULES_IN_WORDS | {
    "True": "on",
    "False": "off",
    "plan.micro_batch": "micro-batch",
    "plan.cuts": "division into stages",
    "plan.devices_used": "number of devices used",
    "plan.device_order": "order of devices",
    "search.device_order": "order of devices",
    "plan.order": "order of axes",
    "search.order": "order of axes",
    "plan.stage_strategies": "division of a stage's layers",
    "plan.zero_group": "number of ranks that ZeRO shards over",
    "workload.gradient_bytes": "bytes per gradient",
}
"""What forms have no label for, or a label that is no subject of a sentence."""
_WORD = re.compile(
    r"\b(?:(?:plan|search|workload)\.\w+|1f1b|gpipe|interleaved_zb|zb_\w+|zbv|dualpipev"
    r"|True|False)\b"
)


class ExportRefused(InputError):
    """A plan that a framework cannot express; the sentence says which part and why.

    Rules are written with keys of files; the sentence calls fields as forms and plans do.

    Examples
    --------
    >>> print(ExportRefused("plan.sp", "must be off", True, "set search.sp to off"))
    Sequence parallel (sp) must be off, but is on: set sequence parallel (sp) to off.
    """

    def __str__(self) -> str:
        value = shortened(str(self.value), 60)
        text = f"{self.field} {self.rule}, but is {value}: {self.remedy}."
        return capital(shortened(_WORD.sub(_in_words, text), 1_600))


def _in_words(match: re.Match[str]) -> str:
    key = match[0]
    return _WORDS[key] if key in _WORDS else parameter(key.replace("plan.", "search.")).label


def refuse_first(*rules: tuple[object, str, str, object, str]) -> None:
    """Refuse a plan for the first part that a framework cannot express.

    Parameters
    ----------
    *rules
        Whether it is so, and field, rule, value and remedy of `ExportRefused`.

    Raises
    ------
    ExportRefused
        If any is.
    """
    for wrong, field, rule, value, remedy in rules:
        if wrong:
            raise ExportRefused(field, rule, value, remedy)


@dataclass(frozen=True, slots=True)
class ExportFiles:
    """Files of one export.

    Parameters
    ----------
    files : mapping of str to str or bytes
        Contents by name; text is UTF-8 with Unix line ends.
    notes : tuple of str
        One sentence each: what the framework decides for itself, or what is left out.
    """

    files: Mapping[str, Content]
    notes: tuple[str, ...] = ()


def header(scenario: ScenarioValues, plan: Plan, target: str) -> str:
    """Return comment lines that say what a file is, for which release, and of which plan."""
    title = " ".join(f"{scenario_title(scenario)}: {plan.words}.".split())
    return f"# {title}\n# Checked against {RELEASES[target]}.\n"


def fields_where(holds: object, **fields: T) -> dict[str, T]:
    """Return fields of a condition that holds; none of one that does not."""
    return fields if holds else {}


def pipelined(point: Point) -> bool:
    """Return whether the schedule matters."""
    return point.pp > 1


def check_plain_experts(scenario: ScenarioValues, point: Point, framework: str) -> None:
    """Refuse experts that are reached otherwise than by plain all-to-alls, one by one."""
    spread = scenario.model.experts > 1 and point.ep > 1
    refuse_first(
        (
            spread and scenario.dispatch != "all_to_all",
            "workload.dispatch",
            f"must be all_to_all for {framework}, which sends a token once per expert",
            scenario.dispatch,
            "set workload.dispatch to all_to_all",
        ),
        (
            spread and scenario.expert_overlap,
            "workload.expert_overlap",
            f"must be off for {framework}, which runs one micro-batch at a time",
            True,
            "set workload.expert_overlap to off",
        ),
    )


def check_uniform(plan: Plan, framework: str) -> None:
    """Refuse stages that divide their layers differently."""
    different = sorted({plan_words(asdict(strategy)) for strategy in plan.strategies})
    refuse_first(
        (
            len(different) > 1,
            "plan.stage_strategies",
            f"must be the same in all for {framework}",
            "; ".join(different),
            "set search.stage_strategies to uniform",
        )
    )


def agrees(point: Point, order: Sequence[str]) -> bool:
    """Return whether an order gives ranks the same coordinates, axes of degree 1 left out.

    Examples
    --------
    >>> point = Point(8, True, 4, 1, 1, 0, ("tp", "cp", "pp", "dp"))
    >>> agrees(point, ("tp", "cp", "dp", "pp"))
    True
    """
    return [a for a in point.order if getattr(point, a) > 1] == [
        a for a in order if getattr(point, a) > 1
    ]


def launched(
    scenario: ScenarioValues,
    plan: Plan,
    framework: str,
    orders: Sequence[Sequence[str]],
    *,
    even: bool = True,
) -> HostMapping:
    """Return where the ranks of a plan run under a launcher that has no rank file.

    Parameters
    ----------
    orders : sequence of sequences of str
        Axis orders that the framework has ranks for.
    even : bool
        Whether hosts must carry as many ranks each.

    Raises
    ------
    Refused
        Where stages do not all do the same, the batch would be padded (a framework would train
        other sequences than were asked for), or ranks lie otherwise.
    """
    check_uniform(plan, framework)
    point = plan.point
    mapping = host_mapping(collapse(scenario.fabric), point)
    refuse_first(
        (
            scenario.batch % (point.dp * point.micro_batch),
            "plan.dp",
            f"times the micro-batch of {point.micro_batch} must divide the batch of "
            f"{scenario.batch} for {framework}",
            point.dp,
            "set search.pad_batch to off",
        ),
        (
            len(set(plan.recompute)) > 1,
            "plan.recompute",
            f"must be the same in every stage for {framework}",
            " and ".join(dict.fromkeys(plan.recompute)),
            "pin search.recompute to one choice",
        ),
        (
            not any(agrees(point, order) for order in orders),
            "plan.order",
            f"must be {' or '.join('-'.join(order) for order in orders)} for {framework}, apart "
            "from axes of degree 1",
            "-".join(point.order),
            "pin search.order to one of them",
        ),
        (
            not mapping.in_order,
            "plan.device_order",
            f"must fill node after node for {framework}'s launcher",
            point.device_order,
            "export for Slurm, whose rank file carries it, or set search.seating to consecutive "
            "and search.device_order to natural",
        ),
        (
            even and not mapping.even,
            "plan.devices_used",
            f"must be the same on every node for {framework}'s launcher",
            " and ".join(map(str, sorted({int(n) for n in mapping.per_host}))),
            "use whole nodes, or export for Slurm",
        ),
    )
    return mapping


def array(name: str, words: Iterable[Sequence[str]]) -> str:
    """Return a bash array, one option with its values per line.

    Examples
    --------
    >>> print(array("PLAN", [("--a", "1"), ("--b",)]), end="")
    PLAN=(
      --a 1
      --b
    )
    """
    return "".join([f"{name}=(\n", *(f"  {shlex.join(group)}\n" for group in words), ")\n"])


def exports(variables: Mapping[str, str]) -> str:
    """Return environment variables; an empty value unsets."""
    return "".join(
        f"export {name}={shlex.quote(value)}\n" if value else f"unset {name}\n"
        for name, value in variables.items()
    )


def torchrun(rank_mapping: HostMapping, script: Sequence[str]) -> str:
    """Return the launching lines.

    ``script`` is what follows torchrun's own options, quoted already.
    """
    nodes = len(rank_mapping.per_host)
    options = [f"--nnodes {nodes}", f"--nproc-per-node {int(rank_mapping.per_host[0])}"]
    setup = ""
    if nodes > 1:
        setup = (
            'NODE_RANK="${NODE_RANK:-${SLURM_PROCID:?number of this node, from 0}}"\n'
            ': "${MASTER_ADDR:?host name of node 0}"\n'
        )
        options += [
            '--node-rank "$NODE_RANK"',
            '--master-addr "$MASTER_ADDR"',
            '--master-port "${MASTER_PORT:-29500}"',
        ]
    else:
        options.append("--standalone")
    return setup + " \\\n  ".join(["exec torchrun", *options, *script]) + "\n"
