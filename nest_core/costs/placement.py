"""Placements: which device plays which part in a plan, as a table that people read and write.

A *rank mapping* gives every device its rank number and its coordinates on every axis, all from 0.
Ranks are numbered along the plan's axis order, innermost first; the device order says where they
sit. What `RankMapping.rows` writes, `read_placement` reads back, so that a placement can be changed
by hand: its result is a device order, the devices of ranks 0, 1, 2, …

``replica`` is the data-parallel rank and ``stage`` the pipeline's; ``ep`` numbers the neighbours
among a stage's ``dp * cp`` ranks that share the experts. Idle devices have no rank.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nest_core.costs.layout import AXES, device_order
from nest_core.costs.plan import Plan
from nest_core.documents import InputError, csv_text, parsed_json, require
from nest_core.network import IntArray, Network

__all__ = ["COLUMNS", "RankMapping", "rank_mapping_of", "read_placement"]

COLUMNS = ("device", "rank", "replica", "stage", "tp", "cp", "dp", "ep", "pp")
_ALIASES = {"replica": "dp", "stage": "pp"}
_IDLE = -1


@dataclass(frozen=True, slots=True, eq=False)
class RankMapping:
    """The parts of all devices of a fabric, in the order of the devices; −1 where idle.

    Every array has shape (devices,).
    """

    rank: IntArray
    tp: IntArray
    cp: IntArray
    dp: IntArray
    ep: IntArray
    pp: IntArray

    @property
    def columns(self) -> dict[str, IntArray]:
        """Everything by the names of `COLUMNS`."""
        arrays: dict[str, IntArray] = {
            "device": np.arange(len(self.rank)),
            "replica": self.dp,
            "stage": self.pp,
            "rank": self.rank,
            "tp": self.tp,
            "cp": self.cp,
            "dp": self.dp,
            "ep": self.ep,
            "pp": self.pp,
        }
        return {name: arrays[name] for name in COLUMNS}

    def rows(self) -> list[dict[str, int | None]]:
        """One row per device; None where it is idle."""
        columns = [column.tolist() for column in self.columns.values()]
        return [
            {
                name: None if value == _IDLE else value
                for name, value in zip(COLUMNS, row, strict=True)
            }
            for row in zip(*columns, strict=True)
        ]

    def to_csv(self) -> str:
        """Return the rows with a header; cells of idle devices are empty."""
        return csv_text(COLUMNS, (list(row.values()) for row in self.rows()))


def rank_mapping_of(network: Network, plan: Plan) -> RankMapping:
    """Who sits where under a plan; stages with strategies of their own have their own axes.

    Raises
    ------
    InputError
        If the device order does not place the plan's ranks, or stages of a mixed plan overlap.
    """
    where = device_order(network, plan.point.device_order)
    parts = _parts(plan)
    require(
        len(parts["rank"]) <= network.devices,
        "plan",
        f"must use at most the fabric's {network.devices} devices",
        len(parts["rank"]),
        "lower a degree",
    )
    result = {name: np.full(network.devices, _IDLE) for name in parts}
    for name, values in parts.items():
        result[name][where[parts["rank"]]] = values
    return RankMapping(**result)


def _parts(plan: Plan) -> dict[str, IntArray]:
    """Rank number and coordinates of every rank, flat arrays of the same length."""
    columns: dict[str, list[IntArray]] = {name: [] for name in ("rank", *AXES, "ep")}
    for stage in range(plan.point.pp):
        point = plan.stage_point(stage)
        ranks = plan.ranks[stage]
        middle = np.arange(ranks.shape[0])
        expert = np.empty_like(middle)
        expert[point.layout.nearest] = middle % point.ep
        for name, values in (
            ("rank", ranks),
            ("tp", np.arange(ranks.shape[1])[None, :]),
            ("cp", (middle % point.cp)[:, None]),
            ("dp", (middle // point.cp)[:, None]),
            ("pp", np.array([[stage]])),
            ("ep", expert[:, None]),
        ):
            columns[name].append(np.broadcast_to(values, ranks.shape).reshape(-1))
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    require(
        len(np.unique(joined["rank"])) == len(joined["rank"]),
        "plan.order",
        "must keep the stages of a mixed plan apart",
        list(plan.point.order),
        "place pp outside tp and cp",
    )
    return joined


def read_placement(text: str, plan: Plan, devices: int, name: str = "placement") -> tuple[int, ...]:
    """Return a device for every rank of a plan: its device order, as a person wrote it.

    Parameters
    ----------
    text : str
        CSV with a header, or JSON: rows that name ``device`` and ``rank``, or ``device`` and the
        coordinates tp, cp, dp (or replica) and pp (or stage), of which those of degree 1 may be
        left out; rows without a rank stand for idle devices. JSON may also be a list of devices
        in the order of ranks, or an object that maps ranks to devices.
    devices : int
        Of the fabric.
    name : str
        What errors call the text.

    Raises
    ------
    InputError
        For the first fault, in one sentence.
    """
    text = text.lstrip("\ufeff")
    rows = _json_rows(text, name) if text.lstrip()[:1] in ("[", "{") else _csv_rows(text, name)
    rank_mapping = _rank_of_coordinates(plan)
    device_of: dict[int, int] = {}
    holder: dict[int, int] = {}
    for number, row in enumerate(rows, start=1):
        at = f"{name} row {number}"
        rank = _rank(row, plan, rank_mapping, at)
        if rank is None:
            continue
        device = _whole(row.get("device"), f"{at}, device")
        for field, value, count in (("rank", rank, len(rank_mapping)), ("device", device, devices)):
            require(
                0 <= value < count,
                f"{at}, {field}",
                f"must lie between 0 and {count - 1}",
                value,
                "correct it",
            )
        require(
            rank not in device_of,
            at,
            "must not place a rank that has a device already",
            f"rank {rank}",
            "give every rank one device",
        )
        require(
            device not in holder,
            f"{at}, device",
            f"must differ from that of rank {holder.get(device)}",
            device,
            "give every rank a device of its own",
        )
        device_of[rank], holder[device] = device, rank
    missing = next((rank for rank in range(len(rank_mapping)) if rank not in device_of), None)
    require(
        missing is None,
        name,
        f"must place all {len(rank_mapping)} ranks of the plan",
        f"without rank {missing}",
        "add its device",
    )
    return tuple(device_of[rank] for rank in range(len(rank_mapping)))


def _rank_of_coordinates(plan: Plan) -> dict[tuple[int, ...], int]:
    parts = _parts(plan)
    keys = zip(*(parts[name].tolist() for name in AXES), strict=True)
    return dict(zip(keys, parts["rank"].tolist(), strict=True))


def _rank(
    row: Mapping[str, Any], plan: Plan, rank_mapping: Mapping[tuple[int, ...], int], at: str
) -> int | None:
    """Return the rank that a row places; None for an idle device."""
    stated = {name: value for name, value in row.items() if value not in (None, "")}
    if "rank" in row:
        return _whole(row["rank"], f"{at}, rank") if "rank" in stated else None
    for other, axis in _ALIASES.items():
        if other in stated:
            stated.setdefault(axis, stated[other])
    if not set(AXES) & set(stated):
        if set(row) - {"device"}:
            return None
        raise InputError(at, "must name a rank, or tp, cp, dp and pp", dict(row), "add a column")
    place = []
    for axis in AXES:
        degrees = {getattr(plan.stage_point(s), axis) for s in range(plan.point.pp)}
        require(
            axis in stated or max(degrees) == 1,
            f"{at}, {axis}",
            f"must be given, since {axis} is {max(degrees)}",
            None,
            "add a column",
        )
        place.append(_whole(stated.get(axis, 0), f"{at}, {axis}"))
    if tuple(place) not in rank_mapping:
        words = ", ".join(f"{axis} {at}" for axis, at in zip(AXES, place, strict=True))
        raise InputError(at, "must name a rank that the plan has", words, "count from 0")
    return rank_mapping[tuple(place)]


def _whole(value: Any, field: str) -> int:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal():
        value = int(value) if len(value) < 10 else value
    require(type(value) is int, field, "must be a whole number from 0", value, "correct it")
    return int(value)


def _csv_rows(text: str, name: str) -> Iterable[Mapping[str, Any]]:
    try:
        reader = csv.DictReader(io.StringIO(text), skipinitialspace=True, strict=True)
        header = [column.strip() for column in reader.fieldnames or ()]
        _check_columns(header, name)
        reader.fieldnames = header
        rows = list(reader)
    except csv.Error as error:
        raise InputError(name, "must be valid CSV", str(error), "correct the file") from error
    for number, row in enumerate(rows, start=1):
        require(
            None not in row,
            f"{name} row {number}",
            "must have as many cells as the header",
            row.get(None),
            "correct it",
        )
    return rows


def _check_columns(header: Sequence[str], name: str) -> None:
    for column in header:
        require(
            column in COLUMNS,
            name,
            "must have known columns",
            column,
            "use " + ", ".join(COLUMNS),
        )
    require("device" in header, name, "must have a column device", list(header), "add it")
    require(
        len(set(header)) == len(header), name, "must name a column once", list(header), "drop one"
    )


def _json_rows(text: str, name: str) -> Iterable[Mapping[str, Any]]:
    document = parsed_json(text, name, "correct the file")
    if isinstance(document, dict):
        document = document.get("placement", document)
    if isinstance(document, dict):
        return [{"rank": rank, "device": device} for rank, device in document.items()]
    if not isinstance(document, list):
        raise InputError(name, "must hold a list of rows or devices", document, "correct the file")
    if all(not isinstance(row, dict) for row in document):
        return [{"rank": rank, "device": device} for rank, device in enumerate(document)]
    for number, row in enumerate(document, start=1):
        if not isinstance(row, dict):
            raise InputError(f"{name} row {number}", "must be an object", row, "correct it")
        _check_columns(list(row), f"{name} row {number}")
    return document
