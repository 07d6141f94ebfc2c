"""Base classes of models whose decoder reads a reverse translation: the whole translation, from right to left.

Letters: S sentences, n source tokens, m target tokens, T steps of the reverse translation, D width of its states. True
in a padding mask means padding.
"""

from dataclasses import dataclass, field
from typing import Optional

import torch
from torch import Tensor

from lwc_fairseq_compat import UserError

from ..modules.attention_memory import Memory
from .interface import DecoderAttention, TranslationModel
from .pretrained import Pretrained
from .recurrent import RecurrentConfig


@dataclass
class ReverseContextConfig(RecurrentConfig):
    """The options of these models. The defaults are the papers' sizes."""

    dropout: float = field(default=0.3, metadata={"help": "dropout of the readouts, before the softmax"})
    input_dropout: Optional[float] = field(  # noqa: UP045 (fairseq knows this spelling only)
        default=None,
        metadata={
            "help": "dropout of the word embeddings, and of the encoder states that attention reads and that the "
            "backward decoder of abd begins with (default: the same as --dropout)"
        },
    )
    max_reverse_len_a: float = field(
        default=2.0,
        metadata={"help": "the reverse translation has at most a · n + b tokens for n source tokens; this is a"},
    )
    max_reverse_len_b: int = field(default=0, metadata={"help": "b in --max-reverse-len-a"})

    def check(self) -> None:
        """Raises UserError naming the invalid setting."""
        super().check()
        if self.max_reverse_len_a < 0 or self.max_reverse_len_b < 0:
            raise UserError(
                f"--max-reverse-len-a {self.max_reverse_len_a} --max-reverse-len-b {self.max_reverse_len_b}: "
                "must not be negative"
            )

    def reverse_limits(self, source: Memory) -> Tensor:
        """Return the maximum number of tokens of each reverse translation, (S,), at least 1."""
        lengths = (~source.padding_mask).sum(1)
        return (self.max_reverse_len_a * lengths + self.max_reverse_len_b).long().clamp(min=1)


def reverse_memory(states: Tensor, padding_mask: Tensor) -> Memory:
    """Wrap the states (S, T, D) of a reverse translation as a memory. Its padding (S, T) is on the right."""
    steps = torch.arange(padding_mask.size(1), device=padding_mask.device)
    return Memory(states, padding_mask, steps.expand_as(padding_mask))


class ReverseContextModel(TranslationModel):
    """A model whose decoder reads the source and a reverse translation.

    Its training may start from the checkpoint of another model.
    """

    pretrained: Pretrained
    renamed: dict[str, str] = {}
    """Maps prefixes of parameter names in older checkpoints to the current prefixes."""

    @classmethod
    def read_config(cls, cfg) -> ReverseContextConfig:
        config = super().read_config(cfg)
        if config.input_dropout is None:
            config.input_dropout = config.dropout
        return config

    def reverse_translations(self, src_tokens: Tensor) -> Tensor:
        """Return the reverse translations, (S, T): tokens from right to left, with padding on the right."""
        raise NotImplementedError

    def attention(self, src_tokens: Tensor, prev_output_tokens: Tensor) -> DecoderAttention:
        _, extra = self.decoder(prev_output_tokens, self.encoder(src_tokens))
        source, reverse = (weights[:, None] for weights in extra["attentions"])
        return DecoderAttention([source], reverse=[reverse])

    def load_state_dict(self, *args, **kwargs):
        self.pretrained.forget()
        return super().load_state_dict(*args, **kwargs)

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """fairseq's hook for older checkpoints. It renames parameters as `renamed` says."""
        for key in list(state_dict):
            for old, new in self.renamed.items():
                if key.startswith(old):
                    state_dict[new + key.removeprefix(old)] = state_dict.pop(key)
        super().upgrade_state_dict_named(state_dict, name)
