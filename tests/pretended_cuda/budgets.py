"""How many kernels and waits of the host each family may take: at most what it took when the numbers were written.

A change that takes more must raise the number here, and so knowingly. One that takes fewer lowers it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """The most that one update, one validation batch or one decoding step may take.

    Attributes:
        kernels: estimated kernel launches.
        waits: waits of the host in lines of this project, an average over the steps of a batch.
    """

    kernels: float
    waits: float


UPDATES = {
    "lwc": Budget(kernels=1471, waits=2),
    "deepatt": Budget(kernels=23304, waits=2),
    "rnnsearch": Budget(kernels=5730, waits=2),
    "abd": Budget(kernels=12410, waits=45),
}
"""Of one update of the sizes in `large_rows.py`, in fp16."""

STEPS = {
    "lwc": Budget(kernels=440, waits=3.4),
    "deepatt": Budget(kernels=268, waits=3.3),
    "rnnsearch": Budget(kernels=108, waits=3.3),
    "abd": Budget(kernels=163, waits=4.3),
}
"""Of one decoding step of the same."""

TINY_WAITS = {
    "lwc": {"update": 2, "validation": 2, "step": 4.2},
    "deepatt": {"update": 2, "validation": 2, "step": 3.4},
    "rnnsearch": {"update": 2, "validation": 2, "step": 4},
    "abd": {"update": 19, "validation": 19, "step": 4.3},
    "nsc": {"update": 108, "validation": 108, "step": 8.3},
    "transformer": {"update": 0, "validation": 0, "step": 1.8},
}
"""Waits as in `Budget`, in each row of a tiny model, by its family."""


def family_of(model: str) -> str:
    """The family of a model in `rows.MODELS`."""
    for family in ("lwc", "abd", "nsc", "transformer"):
        if model.startswith(family):
            return family
    return "rnnsearch" if model in ("rnnsearch", "mheadnmt") else "deepatt"


def excess(measured: dict, budget: Budget) -> list[str]:
    """Say what a measurement, as `report.as_json` makes it, takes beyond its budget."""
    waits = sum(measured["ours"].values())
    found = []
    if measured["kernels"] > budget.kernels:
        found.append(f"{measured['kernels']:.1f} kernels, more than {budget.kernels}")
    if waits > budget.waits + 1e-9:
        found.append(f"{waits:.2f} waits, more than {budget.waits}: {measured['ours']}")
    return found
