"""What is measured: each model in each precision, in training and in generation."""

from dataclasses import dataclass

CHUNKED = ("--criterion", "chunked_cross_entropy", "--label-smoothing", "0.1")
BOTH_DIRECTIONS = ("--criterion", "bidirectional_cross_entropy", "--label-smoothing", "0.1")
SMOOTHED = ("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1")

LWC = ("--arch", "lwc_transformer_small", "--layers", "2", "--embed-dim", "32", "--ffn-embed-dim", "32")
LWC += ("--attention-heads", "4", *CHUNKED)
ABD_LWC = ("--arch", "abd_lwc_small", *LWC[2:], *BOTH_DIRECTIONS)
RECURRENT = ("--embed-dim", "12", "--hidden-dim", "16", "--init-std", "0.3")
DEEP = (*RECURRENT, "--attention-layers", "2", *CHUNKED)
FLAT = (*RECURRENT, *CHUNKED)
RNMT = ("--embed-dim", "32", "--decoder-layers", "2", "--attention-heads", "4")
TRANSFORMER = ("--encoder-layers", "2", "--decoder-layers", "2", *SMOOTHED)
for side in ("encoder", "decoder"):
    TRANSFORMER += (f"--{side}-embed-dim", "16", f"--{side}-ffn-embed-dim", "16", f"--{side}-attention-heads", "2")

MODELS: dict[str, tuple[str, ...]] = {
    "lwc": LWC,
    "lwc, stock criterion": (*LWC, *SMOOTHED),
    "lwc --unshared-weights": (*LWC, "--unshared-weights"),
    "lwc --separate-attention": (*LWC, "--separate-attention"),
    "lwc --windows": (*LWC, "--windows", "3,2"),
    "lwc --no-side-embedding": (*LWC, "--no-side-embedding"),
    "lwc --no-position-embedding": (*LWC, "--no-position-embedding"),
    "lwc --layer-norm before": (*LWC, "--layer-norm", "before"),
    "lwc --attention-dropout": (*LWC, "--attention-dropout", "0.1"),
    "lwc --checkpoint-activations": (*LWC, "--checkpoint-activations"),
    "lwc, heads of 12": (*LWC, "--embed-dim", "48"),
    "deepatt": ("--arch", "deepatt", *DEEP),
    "udeepatt": ("--arch", "udeepatt", *DEEP),
    "vdeepatt": ("--arch", "vdeepatt", *DEEP),
    "wideatt": ("--arch", "wideatt", *DEEP),
    "deepnmt": ("--arch", "deepnmt", *DEEP),
    "rnnsearch": ("--arch", "rnnsearch", *FLAT),
    "mheadnmt": ("--arch", "mheadnmt", *FLAT),
    "abd": ("--arch", "abd", *RECURRENT, *BOTH_DIRECTIONS),
    "abd --reverse-context reference": (
        *("--arch", "abd", *RECURRENT, *BOTH_DIRECTIONS),
        *("--reverse-context", "reference"),
    ),
    "rnmt": ("--arch", "rnmt", *RNMT, *CHUNKED),
    "abd_rnmt": ("--arch", "abd_rnmt", *RNMT, *BOTH_DIRECTIONS),
    "abd_lwc": ABD_LWC,
    "abd_lwc --windows": (*ABD_LWC, "--windows", "3,2"),
    "nsc_rt": ("--arch", "nsc_rt", *FLAT),
    "nsc_hs": ("--arch", "nsc_hs", *FLAT),
    "transformer_small": ("--arch", "transformer_small", *TRANSFORMER),
    "transformer_context_gate": ("--arch", "transformer_context_gate", *TRANSFORMER),
}
"""The flags of each model, with tiny widths."""

PRECISIONS = {
    "fp32": (),
    "fp16": ("fp16",),
    "bf16": ("bf16",),
    "amp": ("amp",),
    "memory-efficient fp16": ("fp16", "memory_efficient_fp16"),
}
"""The fields of fairseq's common configuration that are set in training."""

DTYPES = ("fp32", "fp16", "bf16")  # the precisions of generation
SEARCHES = ("own", "stock", "alignment")  # the last one is fairseq's, with alignments
OF_TRAINING = (
    *("lwc, stock criterion", "lwc --attention-dropout", "lwc --checkpoint-activations"),
    "abd --reverse-context reference",
)
"""Models that generate as another one does, because their options have an effect in training alone."""
CAPABILITIES = ("7.0", "7.5", "8.0")  # and 9.0, which all other rows have


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes:
        search: one of `SEARCHES`; None for training, which includes the validation of a batch.
    """

    model: str
    precision: str
    search: str | None = None
    capability: str = "9.0"

    @property
    def name(self) -> str:
        phase = "train" if self.search is None else f"generate with {self.search} search"
        return f"{self.model}: {phase}, {self.precision}, capability {self.capability}"

    @property
    def flags(self) -> tuple[str, ...]:
        """Options of fairseq-train."""
        optimizer = ("--optimizer", "adam") if self.precision.startswith("memory") else ()
        return (*MODELS[self.model], *optimizer)

    @property
    def common(self) -> tuple[str, ...]:
        return PRECISIONS[self.precision] if self.search is None else ()


def short_rows() -> list[Row]:
    """LWC in training with all precisions, DeepAtt and ABD with three, each other model with one. These three models in
    generation with each search, each other model with one. LWC, whose kernels depend on the capability, trains with
    each of them."""
    rows = []
    searches = [("fp32", "own"), ("fp16", "stock"), ("bf16", "alignment")]
    for i, model in enumerate(MODELS):
        if model in ("lwc", "deepatt", "abd"):
            rows += [Row(model, precision) for precision in (PRECISIONS if model == "lwc" else ("fp16", "bf16", "amp"))]
            rows += [Row(model, *search) for search in searches]
        else:
            rows.append(Row(model, ("fp16", "amp")[i % 2]))
            rows += [] if model in OF_TRAINING else [Row(model, *searches[i % 3])]
    for capability, precision in zip(CAPABILITIES, ("fp16", "bf16", "fp16"), strict=True):
        rows.append(Row("lwc", precision, capability=capability))
    return [*rows, Row("lwc", "fp16", "own", CAPABILITIES[0])]


def all_rows() -> list[Row]:
    """Every combination, on every capability."""
    rows = []
    for capability in (*CAPABILITIES, "9.0"):
        for model in MODELS:
            rows += [Row(model, precision, None, capability) for precision in PRECISIONS]
            if model not in OF_TRAINING:
                rows += [Row(model, precision, search, capability) for precision in DTYPES for search in SEARCHES]
    return rows
