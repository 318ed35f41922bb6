"""What leaves the device for its host: shares of activations and of optimizer states.

*Activations* of blocks are copied out after their layer's forward pass and back before its backward
pass (Megatron-LM's ``--cpu-offloading-num-layers``, Transformer Engine); *optimizer* states live
on the host, which updates their share of the weights (``--optimizer-cpu-offload``, DeepSpeed's
``offload_optimizer``).
"""

from dataclasses import asdict, dataclass
from typing import Any

from nest_core.documents.errors import require

__all__ = ["NO_OFFLOAD", "Offload", "offloading"]


@dataclass(frozen=True, slots=True, order=True)
class Offload:
    """Shares from 0 to 1.

    Parameters
    ----------
    activations, optimizer : float

    Examples
    --------
    >>> Offload(optimizer=1.0).spelled, Offload().spelled
    ('optimizer:1', 'none')
    """

    activations: float = 0.0
    optimizer: float = 0.0

    @property
    def shares(self) -> dict[str, float]:
        """Those above 0."""
        return {name: share for name, share in asdict(self).items() if share}

    @property
    def words(self) -> str:
        """For people; empty for nothing.

        Examples
        --------
        >>> Offload(0.5, 1.0).words
        '50 % of activations and 100 % of optimizer states'
        """
        names = {"activations": "activations", "optimizer": "optimizer states"}
        return " and ".join(
            f"{100 * share:g} % of {names[name]}" for name, share in self.shares.items()
        )

    @property
    def spelled(self) -> str:
        """In a word, as `offloading` reads it."""
        return "+".join(f"{name}:{share:g}" for name, share in self.shares.items()) or "none"


NO_OFFLOAD = Offload()


def offloading(value: Any, field: str = "offload") -> Offload:
    """Return what a plan or a file offloads: none, ``optimizer:1``, or a table of shares.

    Raises
    ------
    InputError
        If it is none of these, or a share is not between 0 and 1.
    """
    if isinstance(value, Offload):
        return value
    if value == "none":
        return NO_OFFLOAD
    table = value
    if isinstance(value, str):
        parts = [part.partition(":")[::2] for part in value.split("+")]
        table = dict(parts)
        require(
            len(table) == len(parts),
            field,
            "must name each share once",
            value,
            "drop what stands twice",
        )
    require(
        isinstance(table, dict) and table and (set(table) <= {"activations", "optimizer"}),
        field,
        "must be none, or name shares of activations or optimizer",
        value,
        "write optimizer:1, or {optimizer = 1.0} in a file",
    )
    return Offload(**{name: _share(field, name, share) for name, share in table.items()})


def _share(field: str, name: str, value: Any) -> float:
    try:
        share = float(value) if not isinstance(value, bool) else -1.0
    except (TypeError, ValueError):
        share = -1.0
    require(
        0.0 <= share <= 1.0,
        f"{field}.{name}",
        "must be a share from 0 to 1",
        value,
        "write 0.5 for half",
    )
    return share
