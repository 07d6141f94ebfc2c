"""``torch.profiler.profile`` on the simulated device: it records the host only."""

import torch
from torch.profiler import ProfilerActivity, profile


class HostProfile(profile):
    """Accepts `ProfilerActivity.CUDA` and ignores it, because there are no kernels to record."""

    def __init__(self, *, activities=None, **settings):
        super().__init__(activities=[ProfilerActivity.CPU], **settings)


def replace_profile() -> None:
    """Let programs that run from now on find this class."""
    torch.profiler.profile = HostProfile
