"""fairseq 0.12.2 on today's Python, PyTorch and numpy: the only package that patches anything.

PyTorch (2.5 and later) calls :func:`activate` at the end of ``import torch``, because this package names it in the
entry-point group ``torch.backends``. fairseq imports torch before its first dataclass, so this is early enough even
for the plain ``fairseq-train``, which reads ``--user-dir`` only after it has imported fairseq. :func:`activate` only
puts a finder on ``sys.meta_path``. The files with the patches are imported together with fairseq, so a program that
never imports fairseq only pays for one string comparison per import.

Each patch has a decorator that names what the patch replaces (:mod:`.hooks`). The docstring of a patch says why and
when it is needed. fairseq is archived, so most patches stay for as long as 0.12.2 is its last release.
"""

import sys
import warnings

__all__ = ["UserError", "activate"]

__version__ = "0.1.0"

try:
    from .errors import UserError
    from .hooks import Finder
except Exception as error:  # every `import torch` of the environment would fail
    warnings.warn(
        f"lwc_fairseq_compat cannot be imported ({error}): fairseq will not work; install it again", stacklevel=2
    )
    Finder = None  # type: ignore[assignment, misc]

PATCH_FILES = (
    *("stack", "errors", "text", "options", "checkpoints", "saving", "loading", "batches", "data"),
    *("preprocessing", "search_options", "generation", "scoring", "optimizers", "processes", "precision", "validation"),
    *("commands", "dictionaries"),
)
"""The order of the patches. If two patches wrap the same function, the later patch calls the earlier one."""


def activate():
    """Make fairseq importable in this process. It is safe to call this more than once."""
    if Finder is not None and not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder([f"{__name__}.{name}" for name in PATCH_FILES]))
