"""Strategy files of Galvatron's search [1]_, told as plans.

A file has a tensor degree, a kind of data parallelism and whether backward runs again for every
layer; a plan here has them for every stage, and a number of recomputed blocks. A file is read where
both say the same thing and refused where they do not.

References
----------
.. [1] hetu-galvatron 2.4.0: ``strategy2config`` and ``save_results`` write,
       ``get_hybrid_parallel_configs_api`` reads.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from nest_core.costs.megatron_job import Setting
from nest_core.documents.errors import InputError, require

__all__ = ["GalvatronStrategy", "is_strategy", "read_strategy"]

_WHOLE = re.compile(r"[0-9]{1,7}(,[0-9]{1,7})*")
_ZERO = {"ddp": 0, "zero2": 2, "zero3": 3}
_SCHEDULES = {"gpipe": "gpipe", "pipedream_flush": "1f1b"}


@dataclass(frozen=True, slots=True)
class GalvatronStrategy:
    """What a file says: a plan's fields, the job by keys of scenario files, and what it assumes."""

    fields: Mapping[str, Any]
    settings: Mapping[str, Setting]
    notes: tuple[str, ...]


def is_strategy(document: Mapping[str, Any]) -> bool:
    """Whether a JSON object is one of Galvatron's."""
    return "tp_sizes_enc" in document


def read_strategy(document: Mapping[str, Any], layers: int, devices: int) -> GalvatronStrategy:
    """Return what a strategy file says.

    Parameters
    ----------
    layers, devices : int
        Of the problem; the layers with embedding and head, of which the file says little. Replicas
        are what its degrees leave of the devices, for it does not count them.

    Raises
    ------
    InputError
        For a file of other layers or devices, one that is not as the search writes it, and what a
        plan cannot say.
    """
    pp, batch, chunks = (_number(document, name) for name in ("pp_deg", "global_bsz", "chunks"))
    division = _division(document, layers - 2, pp)
    by_layer = {
        name: _numbers(document, name, layers - 2, default, most)
        for name, default, most in (
            ("tp_sizes_enc", None, devices),
            ("tp_consecutive_flags", None, 1),
            ("dp_types_enc", None, 1),
            ("use_sp", "0", 1),
            ("checkpoint", "0", 1),
        )
    }
    tp = _alike(by_layer["tp_sizes_enc"], "tp_sizes_enc", "plan")
    require(
        tp >= 1 and devices % (tp * pp) == 0,
        "galvatron.tp_sizes_enc",
        f"times pp_deg = {pp} must divide the {devices} devices",
        tp,
        "give a file that was searched for as many",
    )
    dp = devices // (tp * pp)
    require(
        tp == 1 or not any(by_layer["use_sp"]),
        "galvatron.use_sp",
        "must be 0, for Ulysses has no price here",
        1,
        "search with --sp_space tp",
    )
    require(
        batch % (chunks * dp) == 0,
        "galvatron.chunks",
        f"times {dp} replicas must divide global_bsz = {batch}",
        chunks,
        "give a file that was searched for as many devices",
    )
    ends = [0, *accumulate(division)]
    stages = [slice(*pair) for pair in pairwise(ends)]
    unsharded = _word(document, "default_dp_type", "ddp", _ZERO)
    zero = [
        3 if _alike(by_layer["dp_types_enc"][stage], "dp_types_enc", "stage") else unsharded
        for stage in stages
    ]
    fields: dict[str, Any] = {
        "tp": tp,
        "sp": tp > 1,
        "dp": dp,
        "pp": pp,
        "micro_batch": batch // (chunks * dp),
        "zero": zero[0],
        "cuts": [0, *(1 + end for end in ends[1:-1]), layers],
        "stage_recompute": [_again(by_layer["checkpoint"][stage]) for stage in stages],
        "stage_strategies": [{"zero": stage} for stage in zero] if len(set(zero)) > 1 else [],
    }
    schedule = _word(document, "pipeline_type", "gpipe", _SCHEDULES)
    if pp > 1:  # a stage alone adds gradients up, whatever the type
        fields["schedule"] = schedule
    if 1 < tp < devices // pp and not _alike(
        by_layer["tp_consecutive_flags"], "tp_consecutive_flags", "plan"
    ):
        fields["order"] = ["dp", "cp", "tp", "pp"]
    notes = []
    if tp > 1:
        notes.append(
            "Sequence parallelism is on, as in Galvatron's scripts; its file leaves it out."
        )
    of_ends = {name: _number(document, name, default) for name, default in _OF_ENDS.items()}
    if of_ends != {"vtp": tp, "vsp": 0, "embed_sdp": int(zero[0] == zero[-1] == 3)}:
        words = ", ".join(f"{name} {value}" for name, value in of_ends.items())
        notes.append(f"Embedding and head are priced as the layers beside them, not with {words}.")
    return GalvatronStrategy(fields, {"workload.global_batch_sequences": batch}, tuple(notes))


_OF_ENDS = {"vtp": "1", "vsp": "0", "embed_sdp": "0"}
"""What a file says of embedding and head, and where it is silent."""


def _numbers(
    document: Mapping[str, Any], name: str, count: int, default: str | None, most: int = 10**7
) -> list[int]:
    """Return whole numbers that are joined by commas; one that is left out counts for all."""
    text = str(document.get(name, default))
    require(
        _WHOLE.fullmatch(text),
        f"galvatron.{name}",
        "must be whole numbers joined by commas",
        document.get(name),
        "give the file as the search wrote it",
    )
    numbers = [int(part) for part in text.split(",")]
    if name not in document:
        numbers *= count
    require(
        len(numbers) == count,
        f"galvatron.{name}",
        f"must hold {count} numbers, as this scenario has it",
        len(numbers),
        "give a file that was searched for this model",
    )
    require(
        max(numbers) <= most,
        f"galvatron.{name}",
        f"must not exceed {most}",
        max(numbers),
        "give the file as the search wrote it",
    )
    return numbers


def _number(document: Mapping[str, Any], name: str, default: str | None = None) -> int:
    """Return one whole number, from 1 where it must be there."""
    (number,) = _numbers(document, name, 1, default)
    require(
        number or default,
        f"galvatron.{name}",
        "must be at least 1",
        number,
        "give the file as the search wrote it",
    )
    return number


def _division(document: Mapping[str, Any], blocks: int, pp: int) -> list[int]:
    """Return the blocks of every stage; Galvatron gives the last stage the rest."""
    shortest = blocks // pp
    if "pp_division" not in document:
        return [shortest] * (pp - 1) + [blocks - shortest * (pp - 1)]
    division = _numbers(document, "pp_division", pp, None)
    require(
        min(division) >= 1 and sum(division) == blocks,
        "galvatron.pp_division",
        f"must divide the model's {blocks} blocks among its stages",
        ",".join(map(str, division)),
        "give a file that was searched for this model",
    )
    return division


def _alike(numbers: list[int], name: str, part: str) -> int:
    """Return what all layers of a stage, or of the plan, have."""
    require(
        len(set(numbers)) == 1,
        f"galvatron.{name}",
        f"must be the same for all layers of a {part} to be priced here",
        ",".join(map(str, sorted(set(numbers)))),
        "search with --fine_grained_mode 0",
    )
    return numbers[0]


def _again(flags: list[int]) -> str:
    """Return the recomputation of a stage; its blocks are alike, so that their number is enough."""
    if all(flags):
        return "full"
    return f"block:{sum(flags)}" if any(flags) else "none"


def _word(document: Mapping[str, Any], name: str, default: str, known: Mapping[str, Any]) -> Any:
    word = document.get(name, default)
    if not isinstance(word, str) or word not in known:
        raise InputError(
            f"galvatron.{name}", "must be one of " + ", ".join(known), word, "pick one"
        )
    return known[word]
