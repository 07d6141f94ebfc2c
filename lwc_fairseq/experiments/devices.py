"""The GPUs that jobs run on."""

import os
import sys
from pathlib import Path

import torch


def devices(parallel: int | None) -> list[str | None]:
    """Return one value of CUDA_VISIBLE_DEVICES for each job that may run at the same time; None without GPUs.

    Args:
        parallel: the number of jobs, which share the GPUs; by default one job per GPU, or one job without GPUs.
    """
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if torch.cuda.is_available() else []
    if gpus == [""]:
        gpus = [str(i) for i in range(torch.cuda.device_count())]
    count = parallel or max(1, len(gpus))
    return [gpus[i % len(gpus)] if gpus else None for i in range(count)]


def environment(device: str | None) -> dict[str, str]:
    """Return the environment of a command on a device. Its PATH starts with the folder of this Python."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    chosen = {} if device is None else {"CUDA_VISIBLE_DEVICES": device}
    return {**os.environ, "PATH": path, **chosen}
