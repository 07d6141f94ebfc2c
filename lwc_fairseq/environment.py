"""The hardware and the versions that a number was measured with."""

import os
import platform
import re
from pathlib import Path

import fairseq
import torch

import lwc_fairseq


def hardware() -> str:
    """The GPUs, or the processor."""
    if torch.cuda.is_available():
        return f"{torch.cuda.device_count()} × {torch.cuda.get_device_name()}"
    try:
        names = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        names = []
    return f"{os.cpu_count()} cores, {names[0] if names else platform.processor() or 'CPU'}, no GPU"


def versions() -> str:
    """The versions of Python, PyTorch, fairseq and this package."""
    python = f"Python {platform.python_version()}, PyTorch {torch.__version__}"
    return f"{python}, fairseq {fairseq.__version__}, lwc_fairseq {lwc_fairseq.__version__}"
