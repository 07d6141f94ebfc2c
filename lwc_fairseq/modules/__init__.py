"""What the models are built of."""

import fairseq  # noqa: F401 (registers everything here, before a file of this folder is imported alone)

from .mixed_attention import MixedAttention
from .recurrent import (
    AdditiveAttention,
    ConditionalGRU,
    Memory,
    MultiHeadAttention,
    ProjectedMemory,
    RecurrentDecoder,
    RecurrentEncoder,
    initialize_recurrent,
)

__all__ = [
    "AdditiveAttention",
    "ConditionalGRU",
    "Memory",
    "MixedAttention",
    "MultiHeadAttention",
    "ProjectedMemory",
    "RecurrentDecoder",
    "RecurrentEncoder",
    "initialize_recurrent",
]
