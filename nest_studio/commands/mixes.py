"""The command ``mix``: jobs that share a fabric."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from nest_core.documents import plural, table
from nest_studio.commands.output import JsonFlag, emit
from nest_studio.jobs.kernels import build_kernels

__all__ = ["mix"]


def mix(
    file: Annotated[str, typer.Argument(help="Mix preset or file (TOML).")],
    as_json: JsonFlag = False,
) -> None:
    """Play jobs that share a fabric: who slows whom, and on which links."""
    from nest_core.studies.mixes import load_mix, play_mix

    loaded = load_mix(file, Path())
    build_kernels()
    emit(play_mix(*loaded).to_json(), as_json, _text)


def _text(fields: Mapping[str, Any]) -> str:
    jobs = [
        [
            job["name"],
            f"{len(job['devices']):,}",
            *(f"{job[name]:.4g}" for name in ("alone_iteration_time_s", "iteration_time_s")),
            f"{job['slowdown']:.3f}",
            f"{job['bound_slowdown']:.3f}",
        ]
        for job in fields["jobs"]
    ]
    links = [
        [
            link["link"] + (f" and {plural(link['alike'] - 1, 'other')}" * (link["alike"] > 1)),
            ", ".join(f"{name} {100 * share:.1f} %" for name, share in link["users"].items()),
        ]
        for link in fields["contended_links"]
    ]
    heads = ["job", "devices", "undisturbed, s", "here, s", "slowdown", "at most"]
    tables = [table(heads, jobs), table(["link of several jobs", "busy with"], links)]
    return "\n\n".join([f"{fields['placement']} placement", *tables[: 2 if links else 1]])
