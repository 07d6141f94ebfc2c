"""Modules that several modules use and one of them owns."""

from typing import NamedTuple

from torch import nn


class Borrowed(NamedTuple):
    """A reference to a module that another module owns.

    PyTorch registers the modules among a module's attributes, but not those inside a tuple. So a borrowed module is
    registered with its owner alone: checkpoints hold its weights once, under one name.
    """

    module: nn.Module
