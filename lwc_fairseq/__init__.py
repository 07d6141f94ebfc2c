"""A fairseq plugin with machine translation models from three papers: the layer-wise coordinated Transformer, DeepAtt
and its relatives, and asynchronous bidirectional decoding.

``fairseq-train --user-dir lwc_fairseq`` imports this package, which registers its models, task, criterions and
optimizers. The package itself imports neither fairseq nor PyTorch, because their imports take seconds. It registers
its classes as soon as fairseq is imported.
"""

import importlib
from typing import TYPE_CHECKING

import lwc_fairseq_compat
from lwc_fairseq_compat import __version__ as __version__
from lwc_fairseq_compat.hooks import after_fairseq

if TYPE_CHECKING:
    from .hub import load as load

FAIRSEQ = "0.12.2"
"""The version of fairseq that this package is for."""

lwc_fairseq_compat.activate()


@after_fairseq
def register() -> None:
    """Register everything with fairseq."""
    from lwc_fairseq_compat.loading import HINTS

    from . import models, optim  # noqa: F401
    from .criterions import bidirectional_cross_entropy, chunked_cross_entropy  # noqa: F401
    from .tasks import concat_translation  # noqa: F401

    HINTS["joint_attention"] = "convert it by lwc-fairseq import OLD NEW"


def __getattr__(name: str):
    """Import what is used: the function `load` and the modules of this package."""
    module = f"{__name__}.{'hub' if name == 'load' else name}"
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name == module:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name) from None
        raise ModuleNotFoundError(how_to_install(error), name=error.name) from error
    return imported.load if name == "load" else imported


def how_to_install(error: ModuleNotFoundError) -> str:
    """Return one line that names what is missing and the command that installs it."""
    if error.name == "fairseq":
        return f"lwc_fairseq needs fairseq {FAIRSEQ}; install it with: pip install --no-deps fairseq=={FAIRSEQ}"
    return f"{error}; install what the package needs with: pip install ."
