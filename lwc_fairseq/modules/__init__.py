"""What the models are built of."""

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
