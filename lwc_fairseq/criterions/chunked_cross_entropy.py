"""Cross entropy, with or without label smoothing, that never holds all logits in memory."""

from dataclasses import dataclass, field

from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    label_smoothed_nll_loss,
)
from fairseq.dataclass import FairseqDataclass
from omegaconf import II
from torch import Tensor
from torch.nn import functional as F

from lwc_fairseq_compat import UserError

from ..models.interface import forward_features
from ..modules.chunked_cross_entropy import chunked_cross_entropy, target_slots


@dataclass
class ChunkedCrossEntropyConfig(FairseqDataclass):
    label_smoothing: float = field(default=0.0, metadata={"help": "ε of label smoothing; 0 is none"})
    sentence_avg: bool = II("optimization.sentence_avg")

    def check(self) -> None:
        """Raises UserError naming the invalid setting."""
        if not 0 <= self.label_smoothing < 1:
            raise UserError(f"--label-smoothing {self.label_smoothing}: must be in [0, 1)")


@register_criterion("chunked_cross_entropy", dataclass=ChunkedCrossEntropyConfig)
class ChunkedCrossEntropyCriterion(FairseqCriterion):
    """Computes and logs the loss of fairseq's `label_smoothed_cross_entropy` or, with ε = 0, of its `cross_entropy`. It
    is faster and needs less memory (:mod:`~lwc_fairseq.modules.chunked_cross_entropy`).

    It works with every model of this plugin, and with models of fairseq whose decoder takes `features_only` and ends in
    a linear layer, such as `transformer`.
    """

    config = ChunkedCrossEntropyConfig

    def __init__(self, task, cfg: ChunkedCrossEntropyConfig):
        super().__init__(task)
        cfg = self.config.from_namespace(cfg)
        cfg.check()
        self.cfg = cfg

    def forward(self, model, sample: dict, reduce: bool = True) -> tuple[Tensor, int, dict]:
        """Return the loss (in nats, summed over the batch), its denominator, and the logging output.

        Without `reduce`, the loss is that of each token of the padded targets, (B · m,), with 0 for padding.

        Raises:
            UserError: the model cannot return the input of its output layer.
        """
        slots = target_slots(sample["target"], self.padding_idx, sample["ntokens"])
        features, extra = forward_features(model, sample["net_input"])
        loss, nll = self.term(features, extra, sample["target"], slots, reduce)
        return self.with_log(sample, loss, nll_loss=nll)

    def term(self, features: Tensor, extra: dict, target: Tensor, slots: Tensor, reduce: bool) -> tuple[Tensor, Tensor]:
        """Compute the smoothed and the plain negative log-likelihood of the tokens of targets (B, m) at `slots`: their
        sums or, without `reduce`, (B · m,). `features` and `extra` are what a model returns with `features_only`."""
        rows, words = features.flatten(0, 1).index_select(0, slots), target.flatten().index_select(0, slots)
        weight, bias = extra["output_layer"]
        if reduce:
            return chunked_cross_entropy(rows, weight, bias, words, self.cfg.label_smoothing)
        log_p = F.linear(rows, weight, bias).float().log_softmax(-1)
        terms = label_smoothed_nll_loss(log_p, words, self.cfg.label_smoothing, reduce=False)
        loss, nll = (term.new_zeros(target.numel()).index_copy(0, slots, term) for term in terms)
        return loss, nll

    def with_log(self, sample: dict, loss: Tensor, **others: Tensor) -> tuple[Tensor, int, dict]:
        """Return the loss, its denominator, and the logging output with the loss and `others`."""
        sentences = sample["target"].size(0)
        sample_size = sentences if self.cfg.sentence_avg else sample["ntokens"]
        sums = {name: value.data for name, value in {"loss": loss, **others}.items()}
        counts = {"ntokens": sample["ntokens"], "nsentences": sentences, "sample_size": sample_size}
        return loss, sample_size, {**sums, **counts}

    reduce_metrics = LabelSmoothedCrossEntropyCriterion.reduce_metrics

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True
