"""Cross entropy, with or without label smoothing, that never holds all logits."""

import inspect
from dataclasses import dataclass, field

from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.dataclass import FairseqDataclass
from omegaconf import II
from torch import Tensor, nn

from lwc_fairseq_compat import UserError

from ..modules.chunked_cross_entropy import chunked_cross_entropy


@dataclass
class ChunkedCrossEntropyConfig(FairseqDataclass):
    label_smoothing: float = field(default=0.0, metadata={"help": "ε of label smoothing, 0 for none"})
    sentence_avg: bool = II("optimization.sentence_avg")

    def check(self) -> None:
        """Raises UserError, a ValueError, that names the setting which cannot be."""
        if not 0 <= self.label_smoothing < 1:
            raise UserError(f"--label-smoothing {self.label_smoothing}: must be in [0, 1)")


@register_criterion("chunked_cross_entropy", dataclass=ChunkedCrossEntropyConfig)
class ChunkedCrossEntropyCriterion(FairseqCriterion):
    """The loss of fairseq's `label_smoothed_cross_entropy` (and with ε = 0 of its `cross_entropy`), logged alike:
    faster, in less memory (:mod:`~lwc_fairseq.modules.chunked_cross_entropy`).

    It works with every model of this plugin, and with those of fairseq whose decoder takes `features_only` and ends
    in a linear layer, such as `transformer`.
    """

    config = ChunkedCrossEntropyConfig

    def __init__(self, task, cfg: ChunkedCrossEntropyConfig):
        super().__init__(task)
        cfg = self.config.from_namespace(cfg)
        cfg.check()
        self.cfg = cfg

    @classmethod
    def build_criterion(cls, cfg: ChunkedCrossEntropyConfig, task):
        return cls(task, cfg)

    def forward(self, model, sample: dict, reduce: bool = True) -> tuple[Tensor, int, dict]:
        """Loss (in nats, summed over the batch), its denominator, and what is logged.

        Raises:
            UserError: the model does not give what goes into its output layer.
        """
        features, projection = self.output_features(model, sample)
        loss, nll = self.term(features, projection, sample["target"])
        return self.with_log(sample, loss, nll_loss=nll)

    def output_features(self, model, sample: dict) -> tuple[Tensor, tuple[Tensor, Tensor | None]]:
        """States of the real target positions (Σm, d) before the output layer, and that layer's W and b."""
        if getattr(model, "gives_features", False):
            features, extra = model(**sample["net_input"], features_only=True)
            return features, extra["projection"]
        output = linear_output_layer(model)
        features, _ = model(**sample["net_input"], features_only=True)
        return features[sample["target"].ne(self.padding_idx)], (output.weight, output.bias)

    def term(self, features: Tensor, projection: tuple[Tensor, Tensor | None], target: Tensor) -> tuple[Tensor, Tensor]:
        """Smoothed and plain negative log-likelihood of the targets (B, m), padded, whose features are (Σm, d)."""
        real = target[target.ne(self.padding_idx)]
        return chunked_cross_entropy(features, *projection, real, self.cfg.label_smoothing)

    def with_log(self, sample: dict, loss: Tensor, **others: Tensor) -> tuple[Tensor, int, dict]:
        """The loss, its denominator, and what is logged: it and `others`."""
        sentences = sample["target"].size(0)
        sample_size = sentences if self.cfg.sentence_avg else sample["ntokens"]
        sums = {name: value.data for name, value in {"loss": loss, **others}.items()}
        counts = {"ntokens": sample["ntokens"], "nsentences": sentences, "sample_size": sample_size}
        return loss, sample_size, {**sums, **counts}

    reduce_metrics = LabelSmoothedCrossEntropyCriterion.reduce_metrics

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def linear_output_layer(model) -> nn.Linear:
    """The output layer of a model of fairseq that can be called with `features_only`.

    Raises:
        UserError: there is none.
    """
    decoder = getattr(model, "decoder", None)
    output = getattr(decoder, "output_projection", None)
    gives_features = decoder is not None and "features_only" in inspect.signature(decoder.forward).parameters
    if gives_features and isinstance(output, nn.Linear) and getattr(decoder, "adaptive_softmax", None) is None:
        return output
    raise UserError(
        f"--criterion chunked_cross_entropy does not work with this model ({type(decoder or model).__name__} gives no "
        "features for a linear output layer): use label_smoothed_cross_entropy or cross_entropy, which give the same "
        "loss"
    )
