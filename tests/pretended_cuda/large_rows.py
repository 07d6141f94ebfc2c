"""Measure one update and one decoding step of each family, for the budgets.

Launches do not depend on widths or on the number of sentences, so these are small; they depend on lengths, which are 16
tokens. (The loss of 50 such pairs with 30,000 types takes one chunk, as that of these does.)
"""

from functools import partial
from pathlib import Path

from .data import make_data
from .report import as_json
from .rows import BOTH_DIRECTIONS, CHUNKED, SMOOTHED
from .session import Session

PAIRS, TYPES, LENGTH = 8, 4000, 16
RECURRENT = ("--embed-dim", "62", "--hidden-dim", "100", "--init-std", "0.1")
STOCK = ("--task", "translation", "--optimizer", "adam")
TRANSFORMER = ("--arch", "transformer", "--share-all-embeddings", *SMOOTHED, *STOCK)
for side in ("encoder", "decoder"):
    TRANSFORMER += (f"--{side}-embed-dim", "64", f"--{side}-ffn-embed-dim", "64", f"--{side}-attention-heads", "4")
LSTM = ("--arch", "lstm", "--criterion", "cross_entropy", *STOCK, "--encoder-bidirectional")
LSTM += ("--encoder-embed-dim", "62", "--encoder-hidden-size", "100", "--decoder-embed-dim", "62")
LSTM += ("--decoder-hidden-size", "100", "--decoder-out-embed-dim", "62")

MODELS = {
    "lwc": (
        *("--arch", "lwc_transformer_small", "--embed-dim", "64", "--ffn-embed-dim", "64", "--attention-heads", "4"),
        *CHUNKED,
    ),
    "deepatt": ("--arch", "deepatt", *RECURRENT, *CHUNKED),
    "rnnsearch": ("--arch", "rnnsearch", *RECURRENT, *CHUNKED),
    "abd": ("--arch", "abd", *RECURRENT, *BOTH_DIRECTIONS, "--max-reverse-len-a", "1"),
    "abd_lwc": (
        *("--arch", "abd_lwc_small", "--embed-dim", "64", "--ffn-embed-dim", "64", "--attention-heads", "4"),
        *(*BOTH_DIRECTIONS, "--max-reverse-len-a", "1"),
    ),
    "transformer": TRANSFORMER,
    "lstm": LSTM,
}
"""The families, and the two of fairseq's models that they are compared with."""


def measurements(folder: Path) -> list:
    """Names of rows and the functions that measure them."""
    data = make_data(folder, TYPES, (LENGTH - 1, LENGTH - 1), PAIRS)
    return [(name, partial(measure, data, flags)) for name, flags in MODELS.items()]


def measure(data: Path, flags: tuple[str, ...]) -> dict:
    """An update and a decoding step, both in half precision."""
    trained = Session(data, flags, PAIRS, ["fp16"]).train()
    batch, steps = Session(data, flags, PAIRS).generate("fp16", "own", LENGTH)
    return {**{part: as_json(tally) for part, tally in trained.items()}, "step": as_json(batch, steps)}
