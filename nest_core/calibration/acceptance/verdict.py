"""Logs of nccl-tests beside what a fabric should reach, and the tier that is at fault.

A log belongs to the command that runs the same collective on as many ranks, spread over as many
hosts, and, for a rail, on the same device of each. Of several logs of one command the slowest
counts. The tier at fault is the innermost one of which a command stays below its threshold, if
every command of the tiers inside it was run and reached its own: what is outside it is slow because
of it, and what is inside it is not the reason.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nest_core.calibration.acceptance.expected import MESSAGE_BYTES, Expected
from nest_core.calibration.collectives.nccl_log import NcclRun, complete_run
from nest_core.documents import humanise, humanise_bytes, plural, require, shortened
from nest_core.network.collective import bus_factor

__all__ = ["CommandOutcome", "Verdict", "judge", "read_runs"]

ROUNDED = 0.01
"""By which a message differs from the one asked for: whole elements per rank."""
_WORDS = {"all_reduce": "all-reduce", "all_to_all": "all-to-all"}


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """One command and what was measured of it; None where no log is of it.

    Parameters
    ----------
    expected : Expected
    measured_busbw_Bps : float or None
        The slowest.
    log : str
        Of the slowest; empty without one.
    """

    expected: Expected
    measured_busbw_Bps: float | None = None
    log: str = ""

    @property
    def passed(self) -> bool | None:
        """Return whether the threshold was reached; None without a log."""
        measured = self.measured_busbw_Bps
        return None if measured is None else measured >= self.expected.threshold_Bps


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the logs say of a fabric.

    Parameters
    ----------
    outcomes : tuple of CommandOutcome
        From the inside out.
    fault : str or None
        The tier at fault.
    finding : str
        The same as a sentence.
    unmatched : tuple of str
        Logs that are of no command, one sentence each.
    """

    outcomes: tuple[CommandOutcome, ...]
    fault: str | None
    finding: str
    unmatched: tuple[str, ...]


def read_runs(files: Iterable[tuple[str, str]]) -> tuple[NcclRun, ...]:
    """Return runs from the names and texts of files.

    Raises
    ------
    InputError
        For what is no output of nccl-tests, is cut off or failed, or does not say what ran.
    """
    return tuple(_run(shortened(name, 60) or "file", text) for name, text in files)


def judge(expected: Sequence[Expected], runs: Iterable[NcclRun]) -> Verdict:
    """Return which commands passed, and which tier is at fault."""
    slowest: dict[int, tuple[float, str]] = {}
    unmatched = []
    for run in runs:
        place = next((place for place, test in enumerate(expected) if _fits(test, run)), None)
        near = [row for row in run.rows if abs(row[0] / MESSAGE_BYTES - 1) <= ROUNDED]
        words = (
            f"{run.name} holds an {_WORDS.get(run.op or '', run.op)} on {len(run.ranks):,} ranks"
            f" of {plural(len(run.hosts), 'host')}"
        )
        if place is None:
            unmatched.append(f"{words}, which no command here asks for: it was left out.")
        elif not near:
            largest = humanise_bytes(max(size for size, _ in run.rows))
            message = humanise_bytes(MESSAGE_BYTES)
            unmatched.append(
                f"{words} with messages of up to {largest}, the command's is {message}: it was "
                "left out."
            )
        else:
            factor = bus_factor(expected[place].scope.op, len(run.ranks))
            rate = min(factor * size / seconds for size, seconds in near)
            slowest[place] = min(slowest.get(place, (rate, run.name)), (rate, run.name))
    outcomes = tuple(
        CommandOutcome(test, *slowest.get(place, ())) for place, test in enumerate(expected)
    )
    return Verdict(outcomes, *_fault(outcomes), tuple(unmatched))


def _run(name: str, text: str) -> NcclRun:
    run = complete_run(text, name)
    require(
        run.op is not None,
        name,
        "must say which collective ran",
        "silent",
        "keep the line that names the program",
    )
    require(
        len(run.ranks) >= 2 and len(set(run.hosts.values())) <= 1,
        name,
        "must list two ranks or more, as many on every host",
        f"{len(run.ranks)} on {plural(len(run.hosts), 'host')}",
        "run it as the command says, and save its whole output",
    )
    return run


def _fits(test: Expected, run: NcclRun) -> bool:
    """Return whether a run is of a command."""
    scope = test.scope
    same = (scope.op, len(scope.devices), scope.hosts) == (run.op, len(run.ranks), len(run.hosts))
    return same and (
        scope.device is None or {number for _, number, _ in run.ranks} == {scope.device}
    )


def _fault(outcomes: Sequence[CommandOutcome]) -> tuple[str | None, str]:
    tiers = list(dict.fromkeys(outcome.expected.scope.tier for outcome in outcomes))
    measured = [outcome for outcome in outcomes if outcome.passed is not None]
    if not measured:
        return None, "Nothing was measured yet: run the commands from the first to the last."
    missing = ""
    for tier in tiers:
        of_tier = [outcome for outcome in outcomes if outcome.expected.scope.tier == tier]
        failed = [outcome for outcome in of_tier if outcome.passed is False]
        if failed and missing:
            return None, (
                f"{_slow(failed)}, but {missing} inside it was not run in full: the fault may be "
                "there; run it first."
            )
        if failed:
            inside = ", and all inside it reach theirs" if tiers.index(tier) else ""
            return tier, f"The {tier} tier is at fault: {_slow(failed)}{inside}."
        if not missing and any(outcome.passed is None for outcome in of_tier):
            missing = tier
    count = plural(len(measured), "command")
    return (
        (None, f"No fault in what was run ({count} of {len(outcomes)}); {missing} is to come.")
        if missing
        else (None, f"Accepted: every one of {count} reached its threshold.")
    )


def _slow(failed: Sequence[CommandOutcome]) -> str:
    worst = min(
        failed,
        key=lambda outcome: (outcome.measured_busbw_Bps or 0.0) / outcome.expected.threshold_Bps,
    )
    names = " and ".join(dict.fromkeys(outcome.expected.scope.name for outcome in failed))
    return (
        f"{names} stays below its threshold, in {worst.log} "
        f"{humanise(worst.measured_busbw_Bps or 0.0, 'B/s')} of "
        f"{humanise(worst.expected.threshold_Bps, 'B/s')}"
    )
