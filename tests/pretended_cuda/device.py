"""Turn the pretence on."""

import torch

from .capability import set_capability
from .dispatch import PretendedDevice
from .functions import replace_functions
from .profiling import replace_profile
from .queries import ANSWERS


def pretend(capability: str = "9.0") -> None:
    """From here on, this process has one CUDA device.

    `guard.load_guard` must have been called before torch was imported.

    Args:
        capability: compute capability.
    """
    set_capability(capability)
    for name, answer in ANSWERS.items():
        setattr(torch.cuda, name, answer)
    replace_profile()
    replace_functions()
    torch.version.cuda = "13.0"
    torch.backends.cudnn.enabled = False  # no kernel of it is simulated
    torch.Tensor.pin_memory = lambda self, *_: self  # also in the threads of data loaders, where no mode is active
    torch.autograd.set_multithreading_enabled(False)  # the modes belong to this thread
    torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(..., device="cuda") copies from the CPU, as on a GPU
    PretendedDevice().__enter__()
