"""The models, and the base classes for your own. Importing this package registers the models with fairseq."""

import fairseq  # noqa: F401 (registers everything here, before a file of this folder is imported alone)

from . import lwc_ablations, transformer
from .abd import ABDConfig, ABDModel
from .abd_lwc import ABDLWCConfig, ABDLWCModel
from .abd_rnmt import ABDRNMTConfig, ABDRNMTModel, RNMTConfig, RNMTModel
from .deepatt import DeepAttConfig, DeepAttModel
from .interface import BidirectionalModel, DecoderAttention, TranslationModel, register_preset
from .lwc_transformer import CoordinatedLayer, CoordinatedStack, LWCTransformerConfig, LWCTransformerModel
from .nsc import NSCConfig, NSCModel
from .rnnsearch import RecurrentModel, RNNSearchConfig, RNNSearchModel

__all__ = [
    "ABDConfig",
    "ABDLWCConfig",
    "ABDLWCModel",
    "ABDModel",
    "ABDRNMTConfig",
    "ABDRNMTModel",
    "BidirectionalModel",
    "CoordinatedLayer",
    "CoordinatedStack",
    "DecoderAttention",
    "DeepAttConfig",
    "DeepAttModel",
    "LWCTransformerConfig",
    "LWCTransformerModel",
    "NSCConfig",
    "NSCModel",
    "RNMTConfig",
    "RNMTModel",
    "RNNSearchConfig",
    "RNNSearchModel",
    "RecurrentModel",
    "TranslationModel",
    "lwc_ablations",
    "register_preset",
    "transformer",
]
