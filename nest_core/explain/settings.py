"""What a setting was worth where it was measured, in words."""

from __future__ import annotations

from collections.abc import Iterable

from nest_core.calibration.training.settings import Setting, load_settings
from nest_core.documents.units import capital

__all__ = ["setting_in_words", "worth_of"]

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
    parts = []
    if setting.ratios:
        parts.append(f"{_span(setting.ratios)} in {_experiments(setting.n)}{_clean(setting)}")
    if setting.others:
        many = setting.n_others > 1
        parts.append(
            f"{_span(setting.others)} in {_experiments(setting.n_others)} that "
            f"{'leave' if many else 'leaves'} out part of {'their' if many else 'its'} plan"
        )
    if setting.memory:
        parts.append(f"memory {_span(setting.memory)}")
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
