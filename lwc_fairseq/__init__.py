"""A fairseq plugin with machine translation models from three papers: the layer-wise coordinated Transformer, DeepAtt
and its relatives, and asynchronous bidirectional decoding.

``fairseq-train --user-dir lwc_fairseq`` imports this package, which registers its models, task, criterions and
optimizers.
"""

import lwc_fairseq_compat

from .installation import how_to_install

__version__ = "0.1.0"

lwc_fairseq_compat.activate()

try:
    from .criterions import bidirectional_cross_entropy, chunked_cross_entropy  # noqa: F401
    from .hub import load
    from .models import abd, deepatt, lwc_ablations, lwc_transformer, nsc, rnnsearch, transformer  # noqa: F401
    from .optim import fused_adam, rmsprop  # noqa: F401
    from .tasks import concat_translation  # noqa: F401

    lwc_fairseq_compat.loading.HINTS["joint_attention"] = "convert it by lwc-fairseq import OLD NEW"
except ModuleNotFoundError as error:
    if str(error.name).partition(".")[0] == __name__:
        raise
    # `lwc-fairseq doctor` must work even if PyTorch, fairseq or another requirement is missing. Nothing else works
    # then: importing a model raises the same error again, and `--user-dir lwc_fairseq` raises this one.
    missing_requirement = ModuleNotFoundError(how_to_install(error), name=error.name)

    def load(*args, **kwargs):
        """Raises ModuleNotFoundError with a message that says what to install."""
        raise missing_requirement
