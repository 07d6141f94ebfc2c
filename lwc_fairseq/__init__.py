"""Models for machine translation from papers, for fairseq: the layer-wise coordinated Transformer, DeepAtt and its
relatives, asynchronous bidirectional decoding.

``fairseq-train --user-dir lwc_fairseq`` imports this package, which registers its models, task, criterions, optimizers.
"""

import lwc_fairseq_compat

lwc_fairseq_compat.activate()

try:
    import fairseq  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "fairseq":
        raise
    raise ModuleNotFoundError(
        "lwc_fairseq needs fairseq 0.12.2; install it with: pip install --no-deps fairseq==0.12.2", name="fairseq"
    ) from None

from .criterions import bidirectional_cross_entropy, chunked_cross_entropy  # noqa: E402, F401
from .hub import load  # noqa: E402, F401
from .models import abd, deepatt, lwc_ablations, lwc_transformer, nsc, transformer  # noqa: E402, F401
from .optim import fused_adam, rmsprop  # noqa: E402, F401
from .tasks import concat_translation  # noqa: E402, F401

__version__ = "0.1.0"
