"""The validation of collective times as a document, and the provenance of presets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.validation.collectives.errors import SEED, Compared, Group, summarise
from benchmarks.validation.collectives.tables import Skipped
from benchmarks.validation.collectives.training import UNSEEN, curve_name, training_half
from benchmarks.validation.collectives.validation import held_out_groups
from benchmarks.validation.markdown import markdown_table
from nest_core.hardware.collectives.library import POOLED, Library
from nest_core.hardware.collectives.measurements import Measurement

__all__ = ["notes", "report"]

PROMISED_MEDIAN, PROMISED_P90, PROMISED_LEFT_OUT = 0.08, 0.25, 0.20

INTRODUCTION = """\
# Validation

Written by `python -m benchmarks.validation regenerate collectives`; do not edit. Errors are
relative, predicted / measured - 1; "median" and "90 %" are of their absolute value, "bias" is
their mean.

## Collective times

A collective takes the least, over the regimes of a curve, of a base, steps and bytes sent
(`nest_core/hardware/collectives/curves.py`); the figures are in `presets/collectives/`. They were
fitted to one half of the measured rows; the tables below are about the other half. A row's half is
the lowest bit of the first byte of a SHA-256 of the seed and of what was measured (accelerator,
system, collective, devices, nodes, bytes), so repeated runs of one point stay in one half.

A split by rows tests interpolation: neighbouring sizes of the same sweep are in the fit. How far
curves carry to hardware that was never measured is the second test, where whole families are
left out.
"""

LEFT_OUT = """\
### Families and networks never fitted

Each is predicted from the curve pooled over the others and its own facts: link rate, wiring, and
from how many devices its switches reduce. Every row of 64 KiB and more is counted, of both halves.
"""

LIMITS = """\
### What the figures do not say

- Latency differs between families by more than any fact in the presets explains: small messages
  take 1.5 times as long on A100 and B200 as on H100. That is most of the error on a family left
  out.
- Runs that start collectives one by one from a single process are as slow as their host: 45 to
  100 µs up to 4 MiB. The curves are of the collective alone, so they are below such rows (the
  vTrain and ml-engineering sweeps, H20).
- NCCL's choice of protocol is not always the fastest: some sweeps jump by half between 1 and
  32 MiB, which a minimum of affine functions cannot follow.
- Between nodes only all-reduce over two nodes of two clouds was measured. The other collectives,
  more nodes and InfiniBand (whose figures are NCCL's own constants) are extrapolation.
- No AMD or Intel device is in the data. MI300X, whose 4 GiB all-reduce is published at 313 GB/s of
  bus bandwidth on eight devices and 47.7 on two, is predicted at 395 and 56.8.
- V100 was measured on directly wired nodes only, and only for all-reduce.
"""


def report(
    compared: Sequence[Compared],
    left_out: Sequence[Group],
    skipped: Sequence[Skipped],
    fitted: int,
    source: str,
) -> str:
    """The document.

    Parameters
    ----------
    compared : sequence of Compared
        Held-out rows.
    left_out : sequence of Group
        As `left_out_groups` gives them.
    skipped : sequence of Skipped
    fitted : int
        Rows of the training half.
    source : str
        What was read.
    """
    tables = held_out_groups(compared)
    whole = tables["In all"][0]
    together = left_out[0]
    rows = [
        f"| held out: median | under {PROMISED_MEDIAN:.0%} | {whole.median:.1%} |",
        f"| held out: 90 % of rows | under {PROMISED_P90:.0%} | {whole.p90:.1%} |",
        f"| left out, {together.name}: median | under {PROMISED_LEFT_OUT:.0%} "
        f"| {together.median:.1%} |",
    ]
    rows += [
        f"| left out, {group.name}: median | under {PROMISED_LEFT_OUT:.0%} | {group.median:.1%} |"
        for group in left_out[1:]
    ]
    lines = [
        INTRODUCTION,
        f"Data: {source}. Seed {SEED}; {fitted} rows fitted, {len(compared)} held out, "
        f"of which {whole.n} of 64 KiB and more"
        + (f" (without {', '.join(UNSEEN)})." if UNSEEN else "."),
        "",
        "| messages of 64 KiB and more | promised | found |",
        "|---|---|---|",
        *rows,
        "",
    ]
    for heading, groups in tables.items():
        lines += [f"### {heading}", "", *_table(groups), ""]
    lines += [LEFT_OUT, *_table(left_out), "", LIMITS, "### Rows without a prediction", ""]
    lines += [f"- {row.id}: {row.reason}" for row in skipped] or ["None."]
    return "\n".join(lines) + "\n"


def _table(groups: Sequence[Group]) -> list[str]:
    return markdown_table(
        ["", "rows", "median", "90 %", "mean", "bias", "rank correlation"],
        (
            [
                group.name,
                group.n,
                f"{group.median:.1%}",
                f"{group.p90:.1%}",
                f"{group.mape:.1%}",
                f"{group.bias:+z.1%}",
                "–" if group.spearman is None else f"{group.spearman:.3f}",
            ]
            for group in groups
        ),
    )


def notes(
    name: str,
    rows: Sequence[Measurement],
    compared: Sequence[Compared],
    library: Library,
    source: str,
    date: str,
) -> Mapping[str, object] | None:
    """Provenance of a fitted preset; None for one that no row was fitted to."""
    link = library[name].link
    same = library[name].regimes == library[POOLED[link]].regimes
    pooled = same and bool(library[name].bandwidths or name == POOLED[link])
    own = [
        row
        for row in training_half(rows)
        if (curve := curve_name(row, library))
        and (curve == name or (pooled and library[curve].link == link))
    ]
    if not own:
        return None
    fields: dict[str, object] = {
        "status": "fitted" if not pooled else "fitted to all families, for those never measured",
        "source": source,
        "systems": sorted({f"{row.accelerator}: {row.system}" for row in own}),
        "collectives": sorted({row.op for row in own}),
        "devices": [min(row.devices for row in own), max(row.devices for row in own)],
        "rows_fitted": len(own),
        "seed": SEED,
        "date": date,
    }
    tested = [item for item in compared if item.curve == name and item.large]
    tested = [item for item in tested if item.row.accelerator not in UNSEEN]
    if tested and not pooled:
        group = summarise(name, tested)
        fields |= {
            "held_out_rows": group.n,
            "held_out_median": group.median,
            "held_out_p90": group.p90,
        }
    return fields
