"""What ``torch.cuda`` answers about the simulated device: one device, with no memory in use."""

import time
from collections.abc import Callable
from types import SimpleNamespace

import torch

from .capability import capability

MEMORY = 2**36
NAME = "pretended CUDA device"


class Context:
    """A context manager for `torch.cuda.device` and `torch.cuda.stream`, which changes nothing."""

    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


class Device(Context):
    """``torch.cuda.device``."""


class Stream(Context):
    """A stream whose work is always done."""

    def synchronize(self):
        """Wait for nothing."""

    wait_stream = wait_event = record_event = lambda self, *_: None
    query = lambda self: True  # noqa: E731


class Event:
    """An event with the host's time."""

    def __init__(self, *_, **__):
        self.time = 0.0

    def record(self, *_):
        self.time = time.perf_counter()

    def elapsed_time(self, other) -> float:
        """Milliseconds from this event to `other`."""
        return 1000 * (other.time - self.time)

    def synchronize(self):
        """Wait for nothing."""

    def query(self) -> bool:
        return True


def always(value=None) -> Callable:
    """A function of its own that returns `value`: PyTorch's compiler wants one object for each name."""
    return lambda *_, **__: value


def properties(*_) -> SimpleNamespace:
    major, minor = capability()
    return SimpleNamespace(name=NAME, major=major, minor=minor, total_memory=MEMORY, multi_processor_count=100)


NOTHING = (
    "_lazy_init init synchronize empty_cache set_device ipc_collect set_stream "
    "manual_seed manual_seed_all seed seed_all reset_peak_memory_stats reset_max_memory_allocated"
).split()
NO_BYTES = "memory_allocated memory_reserved max_memory_allocated max_memory_reserved".split()
ANSWERS = {
    **{name: always() for name in NOTHING},
    **{name: always(0) for name in NO_BYTES},
    "is_available": always(True),
    "is_initialized": always(True),
    "is_bf16_supported": always(True),
    "is_current_stream_capturing": always(False),
    "device_count": always(1),
    "current_device": always(0),
    "get_device_name": always(NAME),
    "mem_get_info": always((MEMORY, MEMORY)),
    "memory_stats": always({}),
    "memory_summary": always(""),
    "current_stream": always(Stream()),
    "default_stream": always(Stream()),
    "get_device_properties": properties,
    "get_device_capability": lambda *_: capability(),
    "get_rng_state": lambda *_: torch.get_rng_state(),  # the simulated device draws with the CPU's generator
    "set_rng_state": lambda state, *_: torch.set_rng_state(state),
    "device": Device,
    "stream": type("StreamContext", (Context,), {}),
    "Stream": Stream,
    "Event": Event,
}
"""The attributes of ``torch.cuda`` that are replaced."""
