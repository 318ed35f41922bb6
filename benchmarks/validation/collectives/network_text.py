"""What words about a node's network say: bytes per second of one device, or why they do not.

A text is one network, as sources write it: ``8x ConnectX-7 IB NDR 400Gb/s``, ``EFA 400 Gb/s per
node (6.25 GB/s/GPU)``, ``4x100Gb/node``, ``CX7 50 GB/s``. Rules:

1. *Parts* are divided by ``+``, ``,``, ``;`` and brackets. Parts called storage, management or
   in-band are left out; where one is called compute, only those that are count.
2. A *rate* is a number and a unit. ``b`` are bits and ``B`` bytes, so the case of that letter
   counts (``Gb/s``, ``GB/s``); ``Gbit`` and ``GbE`` are bits and ``GByte`` bytes in any case.
   ``gb/s`` and ``GBPS``, in one case throughout, say neither; ``gbps`` is bits, as people mean it.
3. A part without a rate has one where it names a generation of InfiniBand: EDR 100, HDR 200, NDR
   400, XDR 800 Gb/s a port, HDR100 and NDR200 as they say. Names of adapters and clouds say none:
   each is sold at several rates.
4. A *count* (``8x``, ``4 x``, ``2×`` before a rate, ``x 4`` behind it, ``4 NICs``) multiplies the
   rate of its part: so many ports. Ports that are counted in a part without a rate are not read.
5. What is *per node* (host, server, instance) is shared by the node's devices, what is *per
   device* (GPU, accelerator, chip) is not, and what is *per 2 devices* is shared by two. Where a
   part says neither, ports that are counted are the node's, and a rate alone is that of every
   device's own port.
6. Parts that come to different rates contradict one another.
7. A number with another unit (``400G``, ``GiB/s``), and a rate of both directions, is not read.

A text without any rate is no error: its source does not state one.
"""

from __future__ import annotations

import re

__all__ = ["UnknownNetwork", "device_rate"]

_PREFIX = {"m": 1e6, "g": 1e9, "t": 1e12}
_GENERATIONS = {"edr": 100.0, "hdr": 200.0, "ndr": 400.0, "xdr": 800.0, "hdr100": 100.0,
                "ndr200": 200.0}  # fmt: skip

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_PARTS = re.compile(r"[+,;()\[\]]")
_APART = re.compile(r"storage|management|in-?band", re.I)
_COMPUTE = re.compile(r"\bcompute\b", re.I)
_RATE = re.compile(
    r"(?<![\w.])(?:\d+\s*[x×*]\s*)?(?P<number>\d+(?:\.\d+)?)[ -]*"
    r"(?P<prefix>[MGT])(?P<unit>bits?|bytes?|be|b)(?P<per>ps|/s(?:ec)?)?(?![a-z])",
    re.I,
)
_PORTS = r"(?:nics?|hcas?|ports?|adapters?|cards?|rails?)\b"
_COUNT = re.compile(r"(?<![\w.])(\d+)\s*[x×*](?=\s*\w)")
_COUNTED = re.compile(rf"(?<![\w.-])(\d+)\s+{_PORTS}", re.I)
_COUNT_BEHIND = re.compile(r"\s*[x×*]\s*(\d+)(?![\w.])")
_OTHER = re.compile(
    r"(?:(?<![\w.-])|(?<=\d[x×*]))\d+(?:\.\d+)?\s*"
    r"(?:[MGT](?:i[bB]\S*)?(?![\w/])|(?i:mega|giga|tera)[bB]|e\d+\s*[bB])"
)
_BOTH_WAYS = re.compile(r"\bbi-?dir", re.I)
_GENERATION = re.compile(r"\b(" + "|".join(_GENERATIONS) + r")\b", re.I)
_NODE = re.compile(r"(?:/|per |a )\s*(?:node|host|server|instance)\b", re.I)
_DEVICE = re.compile(
    r"(?:/|per[ -]|a )\s*(\d*)\s*(?:gpu|device|accelerator|chip|xpu|npu)s?\b", re.I
)


class UnknownNetwork(ValueError):
    """A text that states a rate in a form that no rule reads."""


def device_rate(text: str, per_node: int) -> float:
    """Bytes per second and direction of one device; 0 where no rate is stated.

    Parameters
    ----------
    text : str
    per_node : int
        Devices that share what is stated per node.

    Raises
    ------
    UnknownNetwork
        If a rate is stated that the rules do not read, or two that differ.

    Examples
    --------
    >>> device_rate("CX7 50 GB/s", 8) / 1e9, device_rate("4x100Gb/node", 8) / 1e9
    (50.0, 6.25)
    >>> device_rate("EFA 400 Gb/s per node (6.25 GB/s/GPU)", 8) / 1e9
    6.25
    """
    text = _THOUSANDS.sub("", text)
    parts = [part for part in _PARTS.split(text) if part.strip() and not _APART.search(part)]
    compute = [part for part in parts if _COMPUTE.search(part)]
    rate_of = {part: _part(part, per_node) for part in compute or parts}
    rates = [rate for rate in rate_of.values() if rate]
    for part, rate in rate_of.items():
        if rates and not rate and _COUNTED.search(part):
            raise UnknownNetwork(f"counts ports of a network apart from their rate: {text!r}")
    if rates and max(rates) > min(rates) * 1.01:
        raise UnknownNetwork(f"states network rates that differ: {text!r}")
    return rates[0] if rates else 0.0


def _part(part: str, per_node: int) -> float:
    """One part's bytes per second of a device; 0 where it states none."""
    matches = list(_RATE.finditer(part))
    if len(matches) > 1:
        raise UnknownNetwork(f"states several network rates at once: {part.strip()!r}")
    counts = _COUNT.findall(part) + _COUNTED.findall(part)
    if _BOTH_WAYS.search(part):
        raise UnknownNetwork(f"states a network rate of both directions: {part.strip()!r}")
    if matches:
        rate = (
            float(matches[0]["number"]) * _PREFIX[matches[0]["prefix"].lower()] / _bits(matches[0])
        )
    elif generations := {_GENERATIONS[name.lower()] for name in _GENERATION.findall(part)}:
        if len(generations) > 1:
            raise UnknownNetwork(f"names several network rates at once: {part.strip()!r}")
        rate = generations.pop() * 1e9 / 8
    elif _OTHER.search(part):
        raise UnknownNetwork(f"states a network rate in a unit that is not read: {part.strip()!r}")
    else:
        return 0.0
    stated = max(match.end() for match in (*matches, *_GENERATION.finditer(part)))
    if behind := _COUNT_BEHIND.match(part, stated):
        counts.append(behind[1])
    if len(counts) > 1:
        raise UnknownNetwork(f"counts ports of a network twice: {part.strip()!r}")
    total = rate * (int(counts[0]) if counts else 1)
    if device := _DEVICE.search(part):
        return total / int(device[1] or 1)
    return total / per_node if counts or _NODE.search(part) else total


def _bits(rate: re.Match[str]) -> float:
    """What a unit divides by to be bytes."""
    unit, per = rate["unit"], rate["per"] or ""
    if unit.lower().startswith(("bit", "be")):
        return 8.0
    if unit.lower().startswith("byte"):
        return 1.0
    written = rate["prefix"] + unit + per
    if written == written.lower() and per == "ps":
        return 8.0
    if len(per) == 0 or written not in (written.lower(), written.upper()):
        return 8.0 if unit == "b" else 1.0
    raise UnknownNetwork(f"states a network rate in {written}, which may be bits or bytes")
