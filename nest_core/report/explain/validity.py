"""Which measured runs a plan is like, how far they were off, and what its figures assume.

The error band of a plan is that of the measured runs of its kind
(`nest_core.calibration.training.bands`), in predictions that were fitted to them among others;
where a plan's time will lie is its interval (`nest_core.costs.interval`). Where nothing like a
scenario was measured there is no band, and the nearest kind and what differs from it are named. The
bands hold for what the runs were predicted with: fitted overlap and estimated kernels.

What an answer rests on, in two short sentences.

What a setting was worth where it was measured, in words.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from nest_core.calibration.training.bands import (
    MARGIN,
    ErrorBand,
    Setting,
    band_of,
    cell,
    kind_of,
    load_bands,
    load_settings,
)
from nest_core.calibration.training.machines import accelerator_of, find_machine
from nest_core.costs import Overlap, Plan, spread_of
from nest_core.documents import (
    capital,
    humanise,
    humanise_rate,
    plural,
    signed_percent,
)
from nest_core.hardware import Accelerator, Stack, load_posterior
from nest_core.network import Network, Outline
from nest_core.planner import SearchResult
from nest_core.scenario import ScenarioValues

__all__ = [
    "Validity",
    "calibration_in_words",
    "memory_in_words",
    "overlap_in_words",
    "rests_on",
    "setting_in_words",
    "stack_in_words",
    "validity_of",
    "worth_of",
]

_NETWORK_MARGIN = 2.0
"""How much less bandwidth a device may have between nodes than in the clusters measured."""

_LARGE = {"M": "million", "G": "billion", "T": "trillion", "P": "quadrillion"}


@dataclass(frozen=True, slots=True)
class Validity:
    """What a plan's predicted time stands on.

    Parameters
    ----------
    band : ErrorBand or None
        None where the plan lies outside every validated region.
    nearest : ErrorBand or None
        The region with least that differs, ``band`` itself if there is one; None where no region
        is known at all.
    differs : tuple of str
        What keeps the plan out of ``nearest``; empty inside.
    caveat : str
        What the band leaves out; empty if nothing.
    """

    band: ErrorBand | None
    nearest: ErrorBand | None
    differs: tuple[str, ...]
    caveat: str = ""

    @property
    def in_words(self) -> str:
        """One or two sentences."""
        if self.band is not None:
            band = self.band
            return (
                f"Validated on {band.n} runs of {band.region}: {signed_percent(band.p10)} to "
                f"{signed_percent(band.p90)} (10th to 90th percentile). {self.caveat}"
            ).strip()
        if self.nearest is None:
            return "Outside every validated region: none is known."
        return (
            f"Outside every validated region. What differs from the nearest, {self.nearest.region} "
            f"({self.nearest.n} runs): {'; '.join(self.differs)}."
        )


def validity_of(
    scenario: ScenarioValues,
    network: Network | Outline,
    plan: Plan,
    bands: Iterable[ErrorBand] | None = None,
) -> Validity:
    """What a plan's predicted time stands on.

    Parameters
    ----------
    scenario : ScenarioValues
    network : Network or Outline
        The scenario's fabric, collapsed.
    plan : Plan
    bands : iterable of ErrorBand, optional
        Those that are shipped by default.
    """
    bands_read = load_bands() if bands is None else tuple(bands)
    common = _unlike_every_run(scenario)
    matching = band_of(
        scenario.accelerator.name,
        scenario.model,
        plan,
        scenario.precision,
        scenario.sequence,
        plan.devices_used,
        bands_read,
    )
    if matching is not None and not common:
        return Validity(matching, matching, (), _caveat(scenario.accelerator, network, plan))
    compared = [
        (band, _differences(scenario, network.node_size, plan, band)) for band in bands_read
    ]
    if not compared:
        return Validity(None, None, ())

    device, family = _device(scenario.accelerator), scenario.accelerator.family

    def distance(pair: tuple[ErrorBand, tuple[str, ...]]) -> tuple[bool, bool, int, int]:
        band, differs = pair
        related = family.calibrated and accelerator_of(band.cell[0]).family.name == family.name
        return band.cell[0] != device, not related, len(differs), -band.n

    nearest, differs = min(compared, key=distance)
    return Validity(None, nearest, (*differs, *common))


def _unlike_every_run(scenario: ScenarioValues) -> tuple[str, ...]:
    """How this scenario's times are predicted otherwise than those of the measured runs."""
    overlap = f"overlap {scenario.overlap}, where the runs were predicted with fitted"
    profile = "kernel times from a profile, where the runs were predicted without"
    return (
        *([overlap] if scenario.overlap != "fitted" else []),
        *([profile] if scenario.accelerator.profile is not None else []),
    )


def _device(accelerator: Accelerator) -> str:
    machine = find_machine(accelerator.name)
    return machine.name if machine else accelerator.name


def _differences(
    scenario: ScenarioValues, node: int, plan: Plan, band: ErrorBand
) -> tuple[str, ...]:
    """What keeps a plan out of a region, in words."""
    model, point = scenario.model, plan.point
    device, machine = _device(scenario.accelerator), find_machine(scenario.accelerator.name)
    per_node = machine.per_node if machine and device == band.cell[0] else node
    one_node = plan.devices_used <= per_node
    here = cell(device, kind_of(point.zero, point.pp), model.experts, scenario.precision, one_node)
    words = (
        f"device {scenario.accelerator.name}",
        here[1],
        here[2],
        scenario.precision,
        here[4],
    )
    unlike = [
        word for word, ours, theirs in zip(words, here, band.cell, strict=True) if ours != theirs
    ]
    for name, value, (low, high) in (
        ("devices", plan.devices_used, band.devices),
        ("parameters", model.parameters, band.parameters),
        ("tokens per sequence", scenario.sequence, band.tokens),
        ("tensor-parallel ranks", point.tp, band.tp),
        ("pipeline stages", point.pp, band.pp),
    ):
        if not low / MARGIN <= value <= high * MARGIN:
            measured = _size(low) if low == high else f"{_size(low)} to {_size(high)}"
            unlike.append(f"{_size(value)} {name} (measured {measured})")
    return tuple(unlike)


def _size(value: float) -> str:
    if value < 1e6:
        return f"{value:,.0f}"
    number, prefix = humanise(value).split()
    return f"{number} {_LARGE[prefix]}"


def _caveat(accelerator: Accelerator, network: Network | Outline, plan: Plan) -> str:
    """Says so where devices have much less between nodes than the measured clusters gave them."""
    machine = find_machine(accelerator.name)
    if machine is None or plan.devices_used <= machine.per_node:
        return ""
    outside = [level for level in network.levels if level.group_size > machine.per_node]
    slowest = min(outside, key=lambda level: level.bandwidth_Bps, default=None)
    if slowest is None or slowest.bandwidth_Bps * _NETWORK_MARGIN >= machine.inter_Bps:
        return ""
    return (
        f"Those runs count as having {humanise_rate(machine.inter_Bps)} per device between nodes; "
        f"here it is {humanise_rate(slowest.bandwidth_Bps)}, at {slowest.where}."
    )


def memory_in_words(scenario: ScenarioValues) -> str:
    """How far memory is from what is predicted of a scenario's stack."""
    return spread_of(scenario.stack.framework).in_words(scenario.stack.name)


def overlap_in_words(overlap: Overlap, accelerator: Accelerator) -> str:
    """What is assumed to hide behind compute, in one sentence."""
    if overlap.name == "none":
        return "Overlap: none, communication never hides behind compute."
    if overlap.name == "ideal":
        return "Overlap: ideal, communication hides wherever it finds compute to hide behind."
    family = accelerator.family
    origin = (
        f"family {family.name}" if family.calibrated else "assumed: means of the fitted families"
    )
    shares = (
        (overlap.tp, "within layers"),
        (overlap.pp, "of pipeline transfers"),
        (
            overlap.dp,
            "of gradients, states and experts beside another micro-batch"
            if overlap.experts
            else "of gradients and states",
        ),
    )
    if not any(part for part, _ in shares):
        return f"Overlap: fitted ({origin}), nothing hides behind compute."
    words = ", ".join(f"{100 * part:.0f} % {name}" for part, name in shares)
    slower = f", slowing it by {100 * overlap.slowdown:.0f} % of that" if overlap.slowdown else ""
    return f"Overlap: fitted ({origin}), {words} hide where compute covers them{slower}."


def calibration_in_words(scenario: ScenarioValues) -> str:
    """Under which software times are meant, and how much was measured of it on such devices."""
    return f"Software: {stack_in_words(scenario.stack, scenario.accelerator.family.name)}"


def stack_in_words(stack: Stack, family: str) -> str:
    """Which releases a stack stands for, and how much of it was measured on a family."""
    if stack.parameters:
        return f"{stack.name}, calibrated ({stack.source})."
    rows = load_posterior().sure_rows(family, stack.name)
    sure = f"{plural(rows, 'run')} of it over several nodes measured"
    return f"{stack.name} ({stack.release}), on family {family}: {sure}."


def rests_on(validity: Validity | None, result: SearchResult) -> str:
    """Measured runs like the plan, and the proof.

    Parameters
    ----------
    validity : Validity or None
        Of the best plan; None without one.
    result : SearchResult
    """
    certificate = result.certificate
    proof = (
        f"{capital(certificate.stopped)}: "
        + (f"best so far, {certificate.room}." if result.best else "no plan until then.")
        if not certificate.proven
        else f"None of {certificate.points:,} plans is feasible."
        if result.best is None
        else f"Optimal within the model: none of {certificate.points:,} plans is faster."
    )
    return proof if validity is None else f"{_runs(validity)} {proof}"


def _runs(validity: Validity) -> str:
    band = validity.band
    if band is not None:
        runs = f"{band.n} measured runs like this one ({band.region})"
        words = (
            f"{runs}: {signed_percent(band.p10).removesuffix(' %')} to {signed_percent(band.p90)}."
        )
        return f"{words} {validity.caveat}".strip()
    if validity.nearest is None:
        return "No measured run here: none is known."
    return f"No measured run here: unlike the nearest, {'; '.join(validity.differs)}."


_NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def worth_of(key: str, settings: Iterable[Setting] | None = None) -> str:
    """What was measured of the setting with this dotted key; empty where nothing was.

    Parameters
    ----------
    key : str
    settings : iterable of Setting, optional
        Those that are shipped by default.
    """
    settings_used = load_settings() if settings is None else settings
    sentences = [
        setting_in_words(setting) for setting in settings_used if key and setting.key == key
    ]
    return " ".join(["Measured throughput, with over without:", *sentences]) if sentences else ""


def setting_in_words(setting: Setting) -> str:
    """One sentence: least and largest ratio, of how many experiments, how many of them clean.

    Examples
    --------
    >>> setting_in_words(Setting("expert overlap", "", (1.0375, 1.6349), 4, 1, None, 0, None, ()))
    'Expert overlap: 1.04 to 1.63 in 4 experiments, one of them clean.'
    """
    leave = "leave out part of their" if setting.n_others > 1 else "leaves out part of its"
    parts = [
        *(
            [f"{_span(setting.ratios)} in {_experiments(setting.n)}{_clean(setting)}"]
            if setting.ratios
            else []
        ),
        *(
            [f"{_span(setting.others)} in {_experiments(setting.n_others)} that {leave} plan"]
            if setting.others
            else []
        ),
        *([f"memory {_span(setting.memory)}"] if setting.memory else []),
    ]
    return f"{capital(setting.name)}: {'; '.join(parts)}."


def _span(ratios: tuple[float, float]) -> str:
    low, high = (f"{ratio:.2f}" for ratio in ratios)
    return low if low == high else f"{low} to {high}"


def _experiments(n: int) -> str:
    return "one experiment" if n == 1 else f"{n} experiments"


def _clean(setting: Setting) -> str:
    if setting.n == 1:
        return ", a clean one" if setting.clean else ""
    if setting.clean == setting.n:
        return ", all clean"
    count = _NUMBERS[setting.clean] if setting.clean < len(_NUMBERS) else str(setting.clean)
    return f", {count} of them clean"
