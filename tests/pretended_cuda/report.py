"""A tally as JSON."""

from .tally import Tally

OURS = ("lwc_fairseq/", "lwc_fairseq_compat/")


def as_json(tally: Tally, times: int = 1) -> dict:
    """Kernels and waits, divided by `times`, the number of decoding steps that the tally covers."""
    ours = {place: count / times for place, count in tally.waits.items() if place.startswith(OURS)}
    others = {place: count / times for place, count in tally.waits.items() if not place.startswith(OURS)}
    return {"kernels": sum(tally.kernels.values()) / times, "ours": ours, "others": others}
