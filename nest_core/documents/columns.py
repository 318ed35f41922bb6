"""Names of columns: one for a figure, in every table that a result, a file or a frame holds.

A name is in snake case and ends in its unit; shares, counts and words have none. What it says to
people stands beside it, so that a page's header and the key of a row are of one table.
"""

import re
from collections.abc import Mapping

__all__ = ["COLUMNS", "KEY_UNITS", "RENAMED", "column_of", "column_words"]

COLUMNS: Mapping[str, str] = {
    "iteration_time_s": "iteration time, s",
    "iteration_time_low_s": "iteration time, low, s",
    "iteration_time_high_s": "iteration time, high, s",
    "tokens_per_s": "throughput, tokens/s",
    "samples_per_s": "sequences, 1/s",
    "mfu": "MFU",
    "bubble": "bubble, share of the slowest stage's work",
    "memory_GiB": "memory of the fullest stage, GiB",
    "memory_per_device_GiB": "memory per device, GiB",
    "speedup": "speed-up over the best baseline",
    "micro_batch_sequences": "micro-batch, sequences",
    "zero": "ZeRO",
    "recompute": "recomputation",
    "network_usd": "price of the network, $",
    "network_kW": "power of the network, kW",
    "tokens_per_s_per_network_usd": "throughput per dollar of network, tokens/s per $",
    "tokens_per_s_per_network_W": "throughput per watt of network, tokens/s per W",
    "worst_loss": "throughput that the worst single failure takes, share",
    "price_usd": "price, $",
    "power_kW": "power, kW",
    "days": "days",
    "usd_per_million_tokens": "per million tokens, $",
    "usd_per_gpu_hour": "per accelerator-hour, $",
    "tokens_per_kWh": "tokens per kWh",
    "paired_difference": "throughput against the reference, share",
    "paired_low": "against the reference, low, share",
    "paired_high": "against the reference, high, share",
    "loss": "loss of the mix, share",
    "loss_low": "loss of the mix, low, share",
    "loss_high": "loss of the mix, high, share",
    "chance_below_limit": "how sure it is below the limit, share",
}
"""Figures by their names, as axes and headers have them."""

KEY_UNITS = {
    "GBps": "GB/s",
    "GiB": "GiB",
    "TFLOPs": "TFLOP/s",
    "us": "µs",
    "s": "s",
    "sequences": "sequences",
    "tokens": "tokens",
    "kW": "kW",
    "W": "W",
    "usd": "$",
}
"""Of the last part of a key that people write."""
_UNITS = {
    "tokens_per_s": "tokens/s",
    "tokens_per_s_per_W": "tokens/s/W",
    "per_s": "1/s",
    "Bps": "B/s",
    "bytes": "bytes",
    **KEY_UNITS,
}
"""Ends of names, and the units that they stand for."""

_SUFFIXES = {unit: end for end, unit in _UNITS.items()} | {"USD": "usd", "down : up": ""}
RENAMED = {"iteration_s": "iteration_time_s"}
"""What files that were written before call a column, and its name."""
_NAMES = {words.lower(): name for name, words in COLUMNS.items()} | {
    "iteration, s": "iteration_time_s",
    "pipeline bubble": "bubble",
    "network price, $": "network_usd",
    "network power, kw": "network_kW",
    "fullest stage, gib": "memory_GiB",
    "days to train": "days",
    "zero stage": "zero",
    "micro-batch": "micro_batch_sequences",
    "80 % interval": "tokens_per_s_interval",
    "80% interval": "tokens_per_s_interval",
    "throughput per network watt, tokens/s/w": "tokens_per_s_per_network_W",
}
"""Also as tables of people, and files written before, call them."""


def column_of(words: str, unit: str = "") -> str:
    """Return the name of a figure's column.

    Parameters
    ----------
    words : str
        What people call the figure, with its unit behind a comma where ``unit`` is empty.
    unit : str
        ``1`` of a share.

    Examples
    --------
    >>> column_of("Iteration time", "s"), column_of("leaf oversubscription", "down : up")
    ('iteration_time_s', 'leaf_oversubscription')
    >>> column_of("memory per device, GiB"), column_of("loss of Llama 2 7B")
    ('memory_per_device_GiB', 'loss_of_llama_2_7b')
    """
    label, _, end = words.rpartition(", ")
    if not unit and end in _SUFFIXES:
        words, unit = label, end
    suffix = _SUFFIXES.get(unit, "")
    phrase = f"{words}, {_UNITS[suffix]}" if suffix else words
    plain = re.sub(r"\W+", "_", words.lower()).strip("_")
    column = _NAMES.get(phrase.lower()) or (f"{plain}_{suffix}" if suffix else plain)
    return words if words in COLUMNS else RENAMED.get(column, column)


def column_words(name: str) -> str:
    """Return what a column's header says.

    Examples
    --------
    >>> column_words("mfu"), column_words("ideal_time_s"), column_words("leaf_oversubscription")
    ('MFU', 'ideal time, s', 'leaf oversubscription')
    """
    end = next((end for end in _UNITS if name.endswith(f"_{end}")), "")
    words = name.removesuffix(f"_{end}").replace("_", " ")
    return COLUMNS.get(name) or (f"{words}, {_UNITS[end]}" if end else words)
