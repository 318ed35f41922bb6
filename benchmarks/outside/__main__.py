"""Run the tools, print the table, write ``docs/outside.md``: ``make outside ARGS="torchtitan"``.

With names of tools only these run, and only their rows are written anew.
"""

import argparse
import datetime
import importlib
import platform
import time

from benchmarks.outside.tool import BUILD, ROOT, Missing, Row

TOOLS = (
    "torchtitan", "torchtitan_steps", "maxtext", "maxtext_steps", "deepspeed", "deepspeed_steps",
    "trainer_steps", "megatron", "megatron_ranks", "megatron_steps", "bridge", "pipelining",
    "infiniband", "opensm", "simgrid", "simgrid_iterations", "infragraph", "slurm", "slurm_jobs",
    "openmpi", "netbox", "chakra", "hta", "facts", "galvatron", "perfetto", "tpu",
)  # fmt: skip
"""Modules of this package, in the order of the table."""

HEAD = """# Tools of other people

What `make outside` saw on {date} ({system}, Python {python}; {minutes:.0f} minutes, {gib:.1f} GiB
below `build/outside`). Every tool runs in a virtual environment of its own (or from Debian packages
that are unpacked there), one after another, without an accelerator; `benchmarks/outside` has a
module for each, and one that runs alone writes its rows anew. Drawn plans are the first 60 of a
seeded sequence that we export; those that we refuse before are counted, and why is said in
[Export](export.md).

"""


RULE = "|---|---|---|---|---|---|\n"


def table(rows: list[Row]) -> str:
    """Return rows in Markdown."""
    lines = []
    for row in rows:
        counts = ["–" if n is None else f"{n:,}" for n in (row.tried, row.accepted)]
        remark = row.remark.replace("|", "\\|")
        lines.append(
            f"| {row.tool} | {row.version} | {row.what} | {counts[0]} | {counts[1]} | {remark} |"
        )
    return "| tool | version | what | tried | accepted | |\n" + RULE + "\n".join(lines) + "\n"


def updated(page: str, rows: list[Row]) -> str:
    """Return a page with rows of the same tool and subject replaced, those of a tool together."""
    head, _, old = page.partition(RULE)
    new = {_subject(line): line for line in table(rows).splitlines()[2:]}
    lines = [new.pop(_subject(line), line) for line in old.splitlines()]
    lines = sorted([*lines, *new.values()], key=lambda line: _subject(line)[0].lower())
    return head + RULE + "\n".join(lines) + "\n"


def _subject(line: str) -> tuple[str, ...]:
    """Return the tool and the subject of a row; the line itself where it is none."""
    cells = line.split(" | ")
    return (cells[0], cells[2]) if len(cells) > 2 else (line,)


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tools", nargs="*", help=", ".join(TOOLS))
    asked = parser.parse_args()
    began, rows = time.monotonic(), []
    for name in asked.tools or TOOLS:
        module = importlib.import_module(f"benchmarks.outside.{name}")
        start = time.monotonic()
        try:
            rows += module.rows()
        except Missing as error:
            rows.append(module.TOOL.row("not to be had here", None, None, str(error)))
        print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)
    text = table(rows)
    print(text)
    page = ROOT / "docs" / "outside.md"
    if asked.tools:
        page.write_text(updated(page.read_text(), rows))
    else:
        size = sum(path.lstat().st_size for path in BUILD.rglob("*") if path.is_file())
        head = HEAD.format(
            date=datetime.date.today().isoformat(),
            system=f"{platform.system()} {platform.machine()}",
            python=platform.python_version(),
            minutes=(time.monotonic() - began) / 60,
            gib=size / 2**30,
        )
        page.write_text(head + text)


if __name__ == "__main__":
    main()
