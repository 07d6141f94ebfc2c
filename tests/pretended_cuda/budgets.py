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
    "lwc": Budget(kernels=949, waits=0),
    "deepatt": Budget(kernels=4408, waits=0),
    "rnnsearch": Budget(kernels=966, waits=0),
    "abd": Budget(kernels=2579, waits=4),
    "abd_lwc": Budget(kernels=3489, waits=13),
}
"""Of one update of the sizes in `large_rows.py`, in fp16.

LWC's residual weight α costs one kernel backward in each of its 28 sums, and ABD's input dropout eight in an update.
To notice an edited batch costs four kernels, and 13 more in LWC's packing. That LWC's last layer returns only target
rows costs three, and saves the feed-forward network of the source's. That recurrent models can be exported costs four,
and that ABD's search returns its states as a memory costs one.
"""

STEPS = {
    "lwc": Budget(kernels=333.8, waits=1.65),
    "deepatt": Budget(kernels=183, waits=1.36),
    "rnnsearch": Budget(kernels=68.6, waits=1.36),
    "abd": Budget(kernels=112.1, waits=1.59),
    "abd_lwc": Budget(kernels=490.5, waits=1.83),
}
"""Of one decoding step of the same. A step waits once; the rest are the waits of a batch, divided by its 17 steps.

That the mask of a step comes from `who_sees_whom` costs LWC two kernels. To join the scores of source and target costs
one in each of its 14 layers. On a CPU, it makes translation a tenth faster. `abd_lwc` reads the backward translation
that it has found in a pass of its own, at the cost of eight, because the search drops sentences that have ended.
"""

TINY_WAITS = {
    "lwc": {"update": 0, "validation": 0, "step": 2.57},
    "deepatt": {"update": 0, "validation": 0, "step": 2.1},
    "rnnsearch": {"update": 0, "validation": 0, "step": 2.29},
    "abd": {"update": 4, "validation": 4, "step": 2.29},
    "rnmt": {"update": 0, "validation": 0, "step": 2.1},
    "abd_rnmt": {"update": 4, "validation": 4, "step": 2.29},
    "abd_lwc": {"update": 13, "validation": 13, "step": 2.48},
    "nsc": {"update": 2, "validation": 106, "step": 7.15},
    "transformer": {"update": 0, "validation": 0, "step": 1.58},
}
"""Waits as in `Budget`, in each row of a tiny model, by its family.

ABD's greedy search has at most 20 steps, twice the 10 tokens of the longest source. It waits for this number, then once
in eight steps, and once more at its end. That of `abd_lwc` does so too, and the model packs two batches on the device,
with five waits each. NSC's update knows the reverse translations of its batch from the one before; validation searches.
"""


def family_of(model: str) -> str:
    """The family of a model in `rows.MODELS`."""
    for family in ("lwc", "abd_lwc", "abd_rnmt", "rnmt", "abd", "nsc", "transformer"):
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
