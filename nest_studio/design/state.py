"""What Design keeps of a session."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from nest_core.calibration.collectives.sweep import CollectiveSweep
from nest_core.documents.errors import InputError
from nest_core.report.picture import Drawn
from nest_core.scenario import Scenario
from nest_studio.jobs.tasks.fabrics import CollectiveRequest, FabricAnswer
from nest_studio.session.states import session_value

__all__ = ["DesignPage", "design_page"]


@dataclass
class DesignPage:
    """What Design keeps of a session.

    Parameters
    ----------
    answer : (Scenario, FabricAnswer) or None
        The last fabric that was one, and what it comes to.
    drawn : (Scenario, Drawn) or None
        The last picture, and of what.
    sweep : tuple or None
        The last collective: of what, what was asked, times, what it waits for.
    library_scenario : Scenario or None
        What the library's button saves.
    problems : dict of str to str
        What the last callbacks could not do, by the part of the page that says it.
    imported_revision : int or None
        Of the own fabric as it was read from a file.
    prices : dict
        What differs from the listed prices, by dotted key; widgets are gone on other pages.
    """

    answer: tuple[Scenario, FabricAnswer] | None = None
    drawn: tuple[Scenario, Drawn] | None = None
    sweep: tuple[Scenario, CollectiveRequest, CollectiveSweep, tuple[str, str]] | None = None
    library_scenario: Scenario | None = None
    problems: dict[str, str] = field(default_factory=dict)
    imported_revision: int | None = None
    prices: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def noting(self, part: str) -> Iterator[None]:
        """Note what is refused in this block, for the part of the page that says it."""
        self.problems.pop(part, None)
        try:
            yield
        except InputError as error:
            self.problems[part] = str(error)


def design_page() -> DesignPage:
    """Return what this session's Design keeps."""
    return session_value(DesignPage)
