"""Tables of the documents that validation writes."""

from collections.abc import Iterable, Sequence

__all__ = ["markdown_table"]


def markdown_table(
    header: Sequence[str], rows: Iterable[Sequence[object]], words: int = 1
) -> list[str]:
    """Lines of a table in Markdown: the first columns are words, the rest figures at the right.

    Examples
    --------
    >>> markdown_table(["", "runs"], [["all", 3]])
    ['| | runs |', '|---|---:|', '| all | 3 |']
    """
    lines = ["|".join(["", *(f" {name} " if name else " " for name in header), ""])]
    lines.append("|" + "---|" * words + "---:|" * (len(header) - words))
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    return lines
