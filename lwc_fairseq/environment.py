"""The hardware and the software versions of a measurement."""

import os
import platform
import re
from pathlib import Path

import fairseq
import torch

import lwc_fairseq


def hardware() -> str:
    """Describe the GPUs or, without GPUs, the processor."""
    if torch.cuda.is_available():
        return f"{torch.cuda.device_count()} × {torch.cuda.get_device_name()}"
    try:
        names = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        names = []
    return f"{os.cpu_count()} cores, {names[0] if names else platform.processor() or 'CPU'}, no GPU"


def versions() -> str:
    """Return the versions of Python, PyTorch, fairseq and this package in one line."""
    python = f"Python {platform.python_version()}, PyTorch {torch.__version__}"
    return f"{python}, fairseq {fairseq.__version__}, lwc_fairseq {lwc_fairseq.__version__}"
