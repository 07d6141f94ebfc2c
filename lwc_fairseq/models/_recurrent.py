"""The settings that all recurrent models have."""

from dataclasses import dataclass, field

from fairseq.dataclass import FairseqDataclass

from lwc_fairseq_compat import UserError


@dataclass
class RecurrentConfig(FairseqDataclass):
    """The papers' sizes."""

    embed_dim: int = field(default=620, metadata={"help": "width of word embeddings and of the readout"})
    hidden_dim: int = field(default=1000, metadata={"help": "width of recurrent states and of attention, d"})
    dropout: float = field(default=0.2, metadata={"help": "dropout of the readout, before the softmax"})
    init_std: float = field(
        default=0.01,
        metadata={
            "help": "standard deviation of the first weights, but for the recurrent ones, which are orthogonal; the "
            "default suits the papers' widths. Narrow models learn little with it: take 0.1 for a width of 128"
        },
    )

    def check(self) -> None:
        """Raises UserError, a ValueError, that names the setting which cannot be."""
        for name in ("embed_dim", "hidden_dim"):
            if getattr(self, name) < 1:
                raise UserError(f"--{name.replace('_', '-')} {getattr(self, name)}: must be at least 1")
        if not 0 <= self.dropout < 1:
            raise UserError(f"--dropout {self.dropout}: must be in [0, 1)")
        if not self.init_std > 0:  # nor is it a number, perhaps
            raise UserError(f"--init-std {self.init_std}: must be above 0")
