"""A pretended CUDA device, for tests on machines without a GPU.

A tensor on this device says that it is on ``cuda:0``, and keeps its values in a tensor on the CPU, where each operation
is computed (:mod:`.tensor`, :mod:`.dispatch`). So ``is_cuda``, autocast, the gradient scaler and the CUDA branches of
models behave as on a GPU. The device finds

- operations on tensors of two devices, which raise :class:`.dispatch.DeviceMismatch`,
- calls that a CUDA kernel refuses, such as flash attention with a head size of 12 (:mod:`.flash`),
- places where the host waits for the device (:mod:`.waits`),
- the number of kernel launches, which is an estimate (:mod:`.launches`).

It does not find wrong or slow kernels, exhausted memory, races between streams, or errors of several processes.

The pretence changes PyTorch for the whole process and cannot be undone. Tests therefore start a process for it:
``python tests/pretended_cuda/run.py COMMAND ...`` runs one command, and ``measure.py`` measures all models.
"""
