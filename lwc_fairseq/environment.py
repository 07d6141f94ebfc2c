"""Where a command runs: its hardware, the versions of its software, and the user's own plugins."""

import os
import platform
import re
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from . import __version__


def hardware() -> str:
    """Describe the GPUs or, without GPUs, the processor."""
    import torch

    if torch.cuda.is_available():
        return f"{torch.cuda.device_count()} × {torch.cuda.get_device_name()}"
    cpuinfo = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else []
    return f"{os.cpu_count()} cores, {names[0] if names else platform.processor() or 'CPU'}, no GPU"


def versions() -> str:
    """Return the versions of Python, PyTorch, fairseq and this package in one line."""
    import fairseq
    import torch

    python = f"Python {platform.python_version()}, PyTorch {torch.__version__}"
    return f"{python}, fairseq {fairseq.__version__}, lwc_fairseq {__version__}"


def import_plugins(user_dirs: Iterable[str]) -> None:
    """Import packages that register models, as ``fairseq-train --user-dir`` does, by their folders or names.

    Raises:
        UserError: there is no such folder or package.
    """
    from fairseq.utils import import_user_module

    for user_dir in user_dirs:
        import_user_module(Namespace(user_dir=user_dir))


def absolute(user_dir: str) -> str:
    """Return the full path of a folder, which commands in other folders find, too, or the name of a package."""
    return str(Path(user_dir).resolve()) if Path(user_dir).exists() else user_dir
