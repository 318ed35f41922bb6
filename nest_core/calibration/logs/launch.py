"""What a launch command or a configuration file says, by the names of settings, and how many nodes
and processes it starts: srun, torchrun, mpirun, deepspeed, accelerate.

A command may hold several launchers (``srun -N 16 torchrun --nproc-per-node 8``): processes that
the inner one starts on every node count, one for each device.

Read are flags (``--tensor-model-parallel-size 4``, ``--parallelism.tensor_parallel_degree=4``),
overrides (``model.tensor_model_parallel_size=4``), lines of shell, TOML and YAML
(``export TENSOR_MODEL_PARALLEL=4``, ``seq_len = 8192``, ``seq_length: 8192``) and JSON of
DeepSpeed. A later one goes before an earlier.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Any

from nest_core.costs.megatron_job import REQUIRED
from nest_core.costs.shell import ends_values, has_flags, may_hold_flags, script_words
from nest_core.documents import InputError, parsed_json, read_text, require

__all__ = ["FIELD", "Launch", "is_whole", "launch_text", "read_launch", "settings_in"]

FIELD = "--launch"

_NODES = ("--nnodes", "--nodes", "--num-nodes", "--num-machines", "-N")
_PER_NODE = (
    *("--nproc-per-node", "--gpus-per-node", "--num-gpus", "--gres", "--ntasks-per-node"),
    *("-npernode", "--npernode", "-ppn"),
)
"""Innermost first: srun may start one torchrun per node, which starts a process per device."""
_DEVICES = ("--num-processes", "--ntasks", "-n", "-np", "--np")
_OPTIONS = (*_NODES, *_PER_NODE, *_DEVICES)
_SHORT = re.compile(r"(-[Nn])=?(\d+)")
_COUNT = re.compile(r"(?:gpu:(?:[\w.]+:)?)?(\d{1,7})(?:\(.*)?")
_LAUNCHERS = ("srun", "sbatch", "salloc", "mpirun", "mpiexec", "torchrun", "deepspeed")
"""Behind one of these, and before what it starts, short options are its own."""
_PROGRAM = re.compile(r".*(?:_perf|\.py|\.sh)|-m")
_ELASTIC = re.compile(r"(\d{1,7})[:-](\d{1,7})")
_FILE = re.compile(r"[^\s=]+\.(?:sh|slurm|sbatch|ya?ml|toml|json|txt)")

_SETTING = re.compile(
    r"""^[ \t]*(?:\[([\w.]+)\]|(?:export\s+|:\s*"?\$\{|-\s+)?([A-Za-z_][\w.]*)\s*(?::=|=|:)\s*"""
    r"""["']?([\w.+-]+)["']?\}?"?)\s*(?:[#;].*)?$""",
    re.MULTILINE,
)
_OVERRIDE = re.compile(r"(?<![\w.$-])\+{0,2}([A-Za-z_][\w.]*)=([\w.+-]+)(?=\s|$)")
_LISTS = ("recompute_modules",)
_COUNTS = {"nodes": "nnodes", "per_node": "nproc_per_node", "devices": "world_size"}
_GROUPED = {"model.name": "model.name", "activation_checkpoint.mode": "recompute_granularity"}
"""Names that say nothing without their group."""
_MODEL = ("model", "model.name", "model_recipe_name", "model_name_or_path", "module")


def launch_text(option: str) -> str:
    """Return a command, or what the file says that it names.

    Raises
    ------
    InputError
        For a file that cannot be read.
    """
    is_file = os.path.isfile(option) or _FILE.fullmatch(option)
    return read_text(Path(option)) if is_file else option


def settings_in(text: str) -> dict[str, str]:
    """Return a text's settings, in lower case with underscores, without groups before names.

    Raises
    ------
    InputError
        For JSON that is none, and for quotes that are not closed.

    Examples
    --------
    >>> settings_in("torchrun train.py --training.seq-len=8192 --sequence-parallel --num-layers 4")
    {'seq_len': '8192', 'sequence_parallel': 'True', 'num_layers': '4'}
    """
    if text.lstrip().startswith("{"):
        return dict(_flat(parsed_json(text, FIELD, "write the JSON of DeepSpeed"), ""))
    pairs = (*_OVERRIDE.findall(text), *_lines(text))
    settings = {_name(key): value for key, value in pairs}
    if has_flags(text):
        settings |= dict(_flags(launch_words(text)))
    with suppress(InputError):  # the log may state what a command leaves open
        counts = asdict(read_launch(text))
        settings |= {_COUNTS[name]: str(count) for name, count in counts.items() if count}
    model = " ".join(
        settings[name].rpartition("/")[2]
        for name in (*_MODEL, "flavor", "model_size", "config")
        if name in settings
    )
    return {name: value for name, value in settings.items() if name not in _MODEL} | (
        {"model": model} if model else {}
    )


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield settings that have a line of their own, with the names of TOML's tables."""
    table = ""
    for match in _SETTING.finditer(text):
        if match[1]:
            table = f"{match[1]}."
        else:
            yield table + match[2], match[3]


def is_whole(text: str, settings: Mapping[str, str]) -> bool:
    """Return whether a text with these settings is a command that starts Megatron-LM as it is."""
    return (
        has_flags(text)
        and settings.keys() >= REQUIRED
        and not any(map(may_hold_flags, launch_words(text)))
    )


@dataclass(frozen=True, slots=True)
class Launch:
    """What a command says of the machine; None where it is silent.

    Parameters
    ----------
    nodes, per_node, devices : int or None
        Nodes, processes on each, and all processes.
    """

    nodes: int | None
    per_node: int | None
    devices: int | None


def read_launch(command: str) -> Launch:
    """Return nodes and processes of a launch command.

    Raises
    ------
    InputError
        If it states none, or two that contradict one another.

    Examples
    --------
    >>> read_launch("srun -N 16 --ntasks-per-node 1 torchrun --nproc_per_node=8 train.py")
    Launch(nodes=16, per_node=8, devices=128)
    >>> read_launch("mpirun -np 64 all_reduce_perf")
    Launch(nodes=None, per_node=None, devices=64)
    """
    counts = _counts(launch_words(command))
    require(
        len({counts[option] for option in _NODES if option in counts}) <= 1,
        FIELD,
        "must state one number of nodes",
        command,
        "let srun and torchrun start the same nodes",
    )
    nodes = _first(counts, _NODES)
    per_node, devices = _first(counts, _PER_NODE), _first(counts, _DEVICES)
    if nodes and devices and not per_node and devices % nodes == 0:
        per_node = devices // nodes
    inner = any(option in counts for option in _PER_NODE[:4])
    if nodes and per_node:
        require(
            not (devices and not inner and devices != nodes * per_node),
            FIELD,
            "must start as many processes as its nodes times those of a node",
            f"{devices or 0:,} on {nodes:,} nodes of {per_node:,}",
            "correct the command",
        )
        devices = nodes * per_node
    elif per_node and devices and not inner:
        nodes = -(-devices // per_node)
    require(
        nodes or per_node or devices,
        FIELD,
        "must state nodes or processes",
        command,
        "give it as in srun -N 16 --ntasks-per-node 8, or torchrun --nnodes 16 --nproc-per-node 8",
    )
    return Launch(nodes, per_node, devices)


def _counts(words: Sequence[str]) -> dict[str, int]:
    """Return counts by option, spelled with hyphens; of an option given twice the last."""
    counts: dict[str, int] = {}
    launcher = ""
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        if PurePath(word).name in _LAUNCHERS or _PROGRAM.fullmatch(word):
            launcher = "" if _PROGRAM.fullmatch(word) else PurePath(word).name
        elif short := _SHORT.fullmatch(word):
            option, equals, value = short[1], "=", short[2]
        if option.startswith("--"):
            option = option.replace("_", "-")
        elif option == "-N" and launcher.startswith("mpi"):  # Open MPI's processes per node
            option = "--npernode"
        if option in _OPTIONS and (launcher or option.startswith("--")):
            value = value if equals else (words[place + 1] if place + 1 < len(words) else "")
            if (count := _count(option, value)) is not None:
                counts[option] = count
    return counts


def _count(name: str, value: str) -> int | None:
    """Return the number that an option states; None for words such as ``gpu``."""
    elastic = _ELASTIC.fullmatch(value)
    require(
        not elastic or elastic[1] == elastic[2],
        f"{FIELD} {name}",
        "must be one number",
        value,
        "say how many nodes the job had",
    )
    count = _COUNT.fullmatch(elastic[1] if elastic else value)
    require(
        not count or int(count[1]),
        f"{FIELD} {name}",
        "must be above 0",
        value,
        "correct the command",
    )
    return int(count[1]) if count else None


def _first(counts: dict[str, int], options: tuple[str, ...]) -> int | None:
    return next((counts[option] for option in options if option in counts), None)


def launch_words(command: str) -> list[str]:
    """Return the words of a command, also of commands that it quotes and of YAML's lists; errors
    are of the option that it was given with.
    """
    try:
        words, _ = script_words(re.sub(r"(?m)^#SBATCH\b", "sbatch", command))
    except InputError as error:
        raise InputError(FIELD, error.rule, error.value, error.remedy) from error
    return [bare for word in words if (bare := _bare(word)) not in ("", "-")]


def _bare(word: str) -> str:
    """Return a word without what lists of YAML and JSON put around it."""
    word = word.removesuffix(",")
    return word[1:] if word.startswith("[-") else word if "[" in word else word.removesuffix("]")


def _flags(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    queue = list(reversed(words))
    while queue:
        word = queue.pop()
        if not word.startswith("--"):
            continue
        flag, equals, value = word[2:].partition("=")
        values = [value] if equals else []
        while queue and not equals and not ends_values(queue[-1]):
            values.append(queue.pop())
        name = _name(flag)  # behind one value, or a switch, a program's name may follow
        if f"--{name.replace('_', '-')}" in _OPTIONS:
            continue
        yield name, " ".join(values if name in _LISTS else values[:1]) or "True"


def _name(text: str) -> str:
    group, _, last = text.lower().replace("-", "_").rpartition(".")
    return _GROUPED.get(f"{group.rpartition('.')[2]}.{last}", last)


def _flat(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield leaves of a document.

    Groups stay before names, as DeepSpeed's names mean little alone.
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        yield from _flags([str(item) for item in value])
    elif isinstance(value, str | int | float | bool):
        yield path.lower(), value if isinstance(value, str) else json.dumps(value)
