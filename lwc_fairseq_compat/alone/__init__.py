"""What the distribution that holds this compatibility package alone adds to it.

pip deletes every file of the distribution that it removes, even if another distribution has installed the same file.
So this distribution keeps the package in a folder of its own instead of in ``site-packages``, where the distribution of
a plugin may have installed it too.
"""

import sys
from importlib.util import find_spec
from pathlib import Path


def activate():
    """Make fairseq importable in this process, with the package that another distribution has installed, if any."""
    installed = find_spec("lwc_fairseq_compat")
    if installed is None or installed.origin is None:  # a folder without __init__.py has no origin
        bundled = find_spec(f"{__name__}.lwc_fairseq_compat")  # elsewhere in an editable installation
        sys.path.append(str(Path(bundled.origin).parents[1]))
    import lwc_fairseq_compat

    lwc_fairseq_compat.activate()
