"""Pages that are made, not written: the reference from the sources, the gallery from notebooks."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
import plotly.io
from nbclient import NotebookClient

import nest_core

__all__ = ["executed", "gallery", "reference"]

LONGEST_S = 300
"""What one cell of an example may take."""


def reference(folder: Path) -> None:
    """One page for each public name of `nest_core` and for each result of its functions.

    Files of results are named apart: systems that ignore case take Levels and levels for one.
    """
    functions = {name: getattr(nest_core, name) for name in nest_core.__all__}
    returned = {
        cls.__name__: cls
        for function in functions.values()
        if inspect.isclass(cls := _returned(function))
        and cls.__module__.startswith("nest_core.api.")
        if cls.__name__ not in functions
    }
    pages = {f"{name}.md": _page(f"nest_core.{name}", one) for name, one in functions.items()}
    pages |= {
        f"result-{name}.md": _page(f"{cls.__module__}.{name}", cls)
        for name, cls in returned.items()
    }
    pages["index.md"] = _listed(functions, {f"result-{name}": returned[name] for name in returned})
    _write(folder, pages)


def _returned(function: Any) -> Any:
    """The class that a function's annotation names as what it returns, if it names one."""
    annotation = getattr(function, "__annotations__", {}).get("return")
    name = annotation and annotation.partition("[")[0]
    return vars(sys.modules[function.__module__]).get(name)


def _page(path: str, shown: Any) -> str:
    directive = "autofunction"
    options = ""
    if inspect.isclass(shown):
        directive, options = "autoclass", "\n   :members:"
    name = path.rpartition(".")[2]
    return f"# {name}\n\n```{{eval-rst}}\n.. {directive}:: {path}{options}\n```\n"


def _listed(names: Mapping[str, Any], returned: Mapping[str, Any]) -> str:
    """The page that lists all others."""
    here, further = (
        "\n".join(
            f"| [`{one.__name__}`]({n}.md) | {inspect.getdoc(one).splitlines()[0]} |"
            for n, one in part
        )
        for part in (names.items(), sorted(returned.items()))
    )
    return (
        "# API reference\n\n"
        "`import nest_core as nest`. These names keep their meaning from version to version;\n"
        "every other module of `nest_core` is private by convention.\n\n"
        f"| name | what it is |\n|---|---|\n{here}\n\n"
        "What the functions return, with figures, tables and text of its own:\n\n"
        f"| result | what it is |\n|---|---|\n{further}\n\n"
        "```{toctree}\n:hidden:\n\n" + "\n".join([*names, *sorted(returned)]) + "\n```\n"
    )


def gallery(notebooks: Path, folder: Path) -> None:
    """One page for each notebook, executed, and the page that lists them."""
    pages, names, rows = {}, [], []
    paths = sorted(notebooks.glob("*.ipynb"))
    with ThreadPoolExecutor(2) as threads:  # each has a process of its own to wait for
        done = list(threads.map(executed, paths))
    for path, notebook in zip(paths, done, strict=True):
        title, _, rest = notebook.cells[0].source.partition("\n")
        names.append(path.stem)
        rows.append(f"* [{title.lstrip('# ')}]({path.stem}.md): {rest.strip().splitlines()[0]}")
        pages[f"{path.stem}.md"] = "\n\n".join(_as_markdown(notebook)) + "\n"
    pages["index.md"] = (
        "# Gallery\n\n"
        "Notebooks from `examples/`, executed when this site was built.\n\n"
        + "\n".join(rows)
        + "\n\n```{toctree}\n:hidden:\n\n"
        + "\n".join(names)
        + "\n```\n"
    )
    _write(folder, pages)


def executed(path: Path) -> Any:
    """A notebook with what its cells bring.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=LONGEST_S, resources={"metadata": {"path": str(path.parent)}}
    )
    client.execute()
    return notebook


def _as_markdown(notebook: Any) -> Iterator[str]:
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield cell.source
        elif cell.cell_type == "code":
            yield f"```python\n{cell.source}\n```"
            printed = [one.text for one in cell.outputs if one.output_type == "stream"]
            if printed:
                yield _text("".join(printed))
            yield from (_shown(one.data) for one in cell.outputs if one.output_type != "stream")


def _shown(data: Any) -> str:
    """What a cell brought: a picture, a table, or text."""
    if figure := data.get("application/vnd.plotly.v1+json"):
        drawn = plotly.io.to_html(
            {key: figure[key] for key in ("data", "layout")},
            include_plotlyjs=False,
            full_html=False,
            validate=False,
        )
        return _raw(drawn)
    if "text/html" in data:
        return _raw(f'<div class="output">{data["text/html"]}</div>')
    return _text(data["text/plain"])


def _text(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


def _raw(html: str) -> str:
    return f"````{{raw}} html\n{html}\n````"


def _write(folder: Path, pages: dict[str, str]) -> None:
    """Write pages as they should be; those that are so already keep their date."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
