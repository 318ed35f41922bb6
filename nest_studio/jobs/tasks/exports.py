"""What worker processes do to take a plan along: its files for every framework, or why not."""

import io
import stat
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass

from nest_core.costs.price import Report
from nest_core.interop.exporters import RELEASES, ExportRefused, export_plan
from nest_core.scenario import Scenario
from nest_studio.jobs.tasks.requests import announced

__all__ = ["OFFERED", "PlanExport", "plan_exports", "zipped"]

OFFERED = tuple(target for target in RELEASES if target != "astra-sim")
"""Targets that a page offers; ASTRA-sim's traces may be of a million nodes."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Of every file in an archive: the same plan has the same bytes."""


@dataclass(frozen=True, slots=True)
class PlanExport:
    """A plan for one target.

    Parameters
    ----------
    target : str
        One of `OFFERED`.
    files : mapping of str to str or bytes
        Contents by name; none where it is refused.
    refused : str
        Why the target cannot express the plan; empty where it can.
    notes : tuple of str
        What stays with the framework.
    """

    target: str
    files: Mapping[str, str | bytes]
    refused: str = ""
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Return the program and its release."""
        return RELEASES[self.target]


@announced("writing it for every framework")
def plan_exports(scenario: Scenario, best: Report) -> tuple[PlanExport, ...]:
    """Return a scenario's plan for every target of `OFFERED`, in their order."""
    values, exports = scenario.values, []
    for target in OFFERED:
        try:
            bundle = export_plan(target, values, best)
        except ExportRefused as error:
            exports.append(PlanExport(target, {}, str(error)))
        else:
            exports.append(PlanExport(target, dict(bundle.files), "", tuple(bundle.notes)))
    return tuple(exports)


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """Files in one archive, scripts of the shell executable; the same files, the same bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            mode = 0o755 if name.endswith((".sh", ".sbatch")) else 0o644
            entry.external_attr = (stat.S_IFREG | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, text)
    return content.getvalue()
