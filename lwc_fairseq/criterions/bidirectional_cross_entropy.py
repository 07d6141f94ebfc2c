"""The criterion of asynchronous bidirectional decoding: a weighted sum of both directions' losses."""

import math
from dataclasses import dataclass, field

from fairseq import utils
from fairseq.criterions import register_criterion
from fairseq.dataclass import ChoiceEnum
from fairseq.logging import metrics
from torch import Tensor

from lwc_fairseq_compat import UserError

from ..data.reverse import reverse_targets
from ..models.interface import BidirectionalModel, unwrap
from ..modules.chunked_cross_entropy import target_slots
from .chunked_cross_entropy import ChunkedCrossEntropyConfig, ChunkedCrossEntropyCriterion


@dataclass
class BidirectionalCrossEntropyConfig(ChunkedCrossEntropyConfig):
    forward_weight: float = field(
        default=0.7,
        metadata={"help": "λ of eq. 14; the paper uses 0.7 for Chinese-English and 0.8 for English-German"},
    )

    backward_target: ChoiceEnum(["reference", "translations"]) = field(  # type: ignore[valid-type]
        default="reference",
        metadata={
            "help": "what the backward decoder learns to write: the reversed reference, as in eq. 14, or the "
            "`translations` of `--reverse-context translations`, as in the authors' program in PyTorch"
        },
    )

    def check(self) -> None:
        """Raises UserError naming the invalid setting."""
        if not 0 <= self.forward_weight <= 1:
            raise UserError(f"--forward-weight {self.forward_weight}: λ must be in [0, 1]")
        super().check()


@register_criterion("bidirectional_cross_entropy", dataclass=BidirectionalCrossEntropyConfig)
class BidirectionalCrossEntropy(ChunkedCrossEntropyCriterion):
    """Eq. 14 of Zhang et al., *Asynchronous Bidirectional Decoding for NMT* (AAAI 2018), as a loss:

        -λ Σ_j log P(y_j | y_<j, x, s̃) - (1 - λ) Σ_j log P(y_j | y_>j, x)

    The second term is teacher-forced on the reversed target or, with --backward-target translations, on the reverse
    translation that stands beside the data; both sums are divided by the same number of target tokens. λ is
    --forward-weight. In the authors' published code, λ is the weight of the other term. A term of weight 0 is still
    logged. --label-smoothing applies to both terms (paper: none).

    The model returns the inputs of both output layers, and the criterion computes the logits in chunks
    (:mod:`~lwc_fairseq.modules.chunked_cross_entropy`).
    """

    config = BidirectionalCrossEntropyConfig

    def __init__(self, task, cfg: BidirectionalCrossEntropyConfig):
        super().__init__(task, cfg)
        if self.over_translations and not getattr(task, "reads_translations", False):
            raise UserError(
                "--backward-target translations needs the reverse translations of the data: add --reverse-context "
                "translations and --task concat_translation, or leave it out"
            )

    @property
    def over_translations(self) -> bool:
        return self.cfg.backward_target == "translations"

    def forward(self, model, sample: dict, reduce: bool = True) -> tuple[Tensor, int, dict]:
        """Return the loss (in nats, summed over the batch), its denominator, and the logging output.

        Without `reduce`, the loss is that of each word of the padded targets in reading order, (B · m,): the weighted
        sum of what both directions give it. Padding has 0.

        Raises:
            UserError: the model has no backward decoder. Or `reduce` is false, and the backward target has other words.
        """
        if not isinstance(unwrap(model), BidirectionalModel):
            raise UserError(
                "--criterion bidirectional_cross_entropy needs a model with a backward decoder, but this has none: "
                "train --arch abd, abd_rnmt or abd_lwc, or use --criterion cross_entropy"
            )
        target = sample["target"]
        slots = target_slots(target, self.padding_idx, sample["ntokens"])
        arguments = {"backward": True, "features_only": True, "over_translations": self.over_translations}
        features, extra = model(**sample["net_input"], **arguments)
        forward_loss, forward_nll = self.term(features, extra, target, slots, reduce)
        features, extra = extra["backward"]
        if self.over_translations:
            if not reduce:
                raise UserError("--backward-target translations gives no loss for each word of the target")
            backward_target, count = sample["net_input"]["reverse_tokens"], sample["reverse_ntokens"]
            slots = target_slots(backward_target, self.padding_idx, count)
        else:
            # it has its padding where the target has it
            backward_target, count = reverse_targets(target, self.padding_idx), sample["ntokens"]
        backward_loss, backward_nll = self.term(features, extra, backward_target, slots, reduce)
        if not reduce:
            backward_loss, backward_nll = (
                reverse_targets(target, self.padding_idx, of_word.view_as(target)).flatten()
                for of_word in (backward_loss, backward_nll)
            )
        # A term of weight 0 stays in the sum, because distributed training needs a gradient for every parameter.
        loss = self.cfg.forward_weight * forward_loss + (1 - self.cfg.forward_weight) * backward_loss
        loss, size, log = self.with_log(sample, loss, nll_loss=forward_nll, backward_nll_loss=backward_nll)
        return loss, size, {**log, "backward_ntokens": count}

    @staticmethod
    def reduce_metrics(logging_outputs: list[dict]) -> None:
        """Log both terms in bits per token, and their perplexities. The forward term has fairseq's usual names."""

        def total(name):
            return sum(log.get(name, 0) for log in logging_outputs)

        sample_size = total("sample_size")
        metrics.log_scalar("loss", total("loss") / sample_size / math.log(2), sample_size, round=3)
        for prefix in ("", "backward_"):
            name, tokens = f"{prefix}nll_loss", total(f"{prefix}ntokens")
            metrics.log_scalar(name, total(name) / tokens / math.log(2), tokens, round=3)
            metrics.log_derived(f"{prefix}ppl", lambda meters, name=name: utils.get_perplexity(meters[name].avg))
