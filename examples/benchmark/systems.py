"""The systems to compare: models of this plugin and of fairseq, as flags of fairseq's commands."""

from dataclasses import dataclass
from pathlib import Path

import lwc_fairseq

USER_DIR = ("--user-dir", str(Path(lwc_fairseq.__file__).parent))

SMALL_TRANSFORMER = (
    *("--arch", "transformer", "--encoder-layers", "6", "--decoder-layers", "6", "--share-all-embeddings"),
    *("--encoder-embed-dim", "256", "--encoder-ffn-embed-dim", "1024", "--encoder-attention-heads", "4"),
    *("--decoder-embed-dim", "256", "--decoder-ffn-embed-dim", "1024", "--decoder-attention-heads", "4"),
)
LSTM = (
    *("--arch", "lstm", "--encoder-bidirectional", "--encoder-layers", "1", "--decoder-layers", "1"),
    *("--encoder-embed-dim", "620", "--encoder-hidden-size", "1000"),
    *("--decoder-embed-dim", "620", "--decoder-hidden-size", "1000", "--decoder-out-embed-dim", "620"),
)
SMOOTHED = ("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1")
PLAIN = ("--criterion", "cross_entropy")


@dataclass(frozen=True)
class System:
    """A model, and how it trains and translates."""

    name: str
    task: str
    model: tuple[str, ...]
    criterion: tuple[str, ...]
    plain_criterion: tuple[str, ...]  # that of fairseq with the same loss, to compare with; equal if there is none
    generate: tuple[str, ...] = ()
    plain_generate: tuple[str, ...] = ()  # fairseq's search, to compare with
    adam: str = "adam"


@dataclass(frozen=True)
class Family:
    """Our system, and the systems it is compared with: fairseq's, and others of ours."""

    types: int  # V
    ours: System
    peers: tuple[System, ...]


def stock(name: str, model: tuple[str, ...], criterion: tuple[str, ...]) -> System:
    return System(name, "translation", model, criterion, criterion)


def ours(name: str, model: tuple[str, ...], criterion: tuple[str, ...], plain: tuple[str, ...]) -> System:
    return System(name, "concat_translation", model, criterion, plain, (), ("--stock-search",), "fused_adam")


CHUNKED = ("--criterion", "chunked_cross_entropy")
BOTH = ("--criterion", "bidirectional_cross_entropy")
SPREAD = ("--init-std", "0.1")  # with smaller weights all types are almost equally likely, and rounding picks the best
AS_LONG = ("--max-reverse-len-a", "1")  # an untrained model does not end its reverse translation: limit it
RNNSEARCH = ours("RNNSearch", ("--arch", "rnnsearch", *SPREAD), CHUNKED, PLAIN)
LSTM_PEER = stock("fairseq's lstm", LSTM, PLAIN)

R2L = ours("RNNSearch(R2L)", (*RNNSEARCH.model, "--reverse-target"), CHUNKED, PLAIN)
ABD = ours("ABD", ("--arch", "abd", *SPREAD, *AS_LONG), BOTH, BOTH)


def combined(name: str, arch: str) -> System:
    """A model of system combination, whose right-to-left model is the checkpoint that replaces {r2l}."""
    return ours(name, ("--arch", arch, *SPREAD, *AS_LONG, "--reverse-model", "{r2l}"), CHUNKED, PLAIN)


LWC = ours(
    "LWC small, 14 layers",
    ("--arch", "lwc_transformer_small", "--dropout", "0.1"),
    (*CHUNKED, "--label-smoothing", "0.1"),
    SMOOTHED,
)
SMOOTHED_BOTH = (*BOTH, "--label-smoothing", "0.1")
ABD_LWC = ours(
    "ABD within LWC small, 14 layers",
    ("--arch", "abd_lwc_small", "--dropout", "0.1", *AS_LONG),
    SMOOTHED_BOTH,
    SMOOTHED_BOTH,
)

FAMILIES = {
    "lwc": Family(
        31000,
        LWC,
        (stock("fairseq's transformer, 6 + 6", (*SMALL_TRANSFORMER, "--dropout", "0.1"), SMOOTHED),),
    ),
    "deepatt": Family(30000, ours("DeepAtt, K = 5", ("--arch", "deepatt", *SPREAD), CHUNKED, PLAIN), (LSTM_PEER,)),
    "abd": Family(30000, ABD, (LSTM_PEER, RNNSEARCH)),
    "abd_lwc": Family(31000, ABD_LWC, (LWC,)),
    # the models whose speed Zhang et al. (AAAI 2018) give in batches an hour
    "abd_paper": Family(30000, ABD, (RNNSEARCH, R2L, combined("NSC(RT)", "nsc_rt"), combined("NSC(HS)", "nsc_hs"))),
}
"""Transformers have widths of 256 and 1024 and 4 heads; recurrent models have widths of 620 and 1000."""

OPTIMIZER = ("--lr", "1e-4", "--clip-norm", "5", "--seed", "1")
