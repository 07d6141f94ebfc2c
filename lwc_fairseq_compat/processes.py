"""Processes: their devices, and how training saves before it ends on SIGTERM or Ctrl-C (SIGINT).

Schedulers send SIGTERM some time before they kill a job.
"""

import functools
import importlib.util
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time

import torch
from torch.multiprocessing import ProcessExitedException
from torch.utils import data

from .errors import UserError, is_for_user
from .hooks import replaces
from .saving import is_unsaved, save_if_unsaved

SIGNALS = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
"""The signals on which training saves, with the handlers that programs begin with."""

SAME_REQUEST_S = 1.0
"""Seconds in which a second signal counts as a copy of the first: a scheduler signals every process of a job, and the
process that started the others also passes its own signal on."""

STEPS_BETWEEN_QUESTIONS = 8
"""On GPUs, several processes ask each other after this many updates, or steps of validation, whether one of them
received a signal, because each question waits for all GPUs. On CPUs they ask after each step."""


@replaces("fairseq.distributed.utils", "call_main")
def call_main_on_devices(call_main, cfg, main, **kwargs):
    """Refuse what cannot run here, and run the rest: ``--bf16`` on a GPU, several processes on CPUs.

    The process that has started others passes signals on to them, and waits until they have saved.
    Why: fairseq finds out later, with a traceback, that a GPU or a package is missing. ``fairseq/options.py`` sets
    ``tpu`` together with ``bf16``, so the commands ask for ``torch_xla`` even where there is a GPU; ``--bf16 --tpu``
    still means a TPU where ``torch_xla`` is installed. The default backend, NCCL, connects only GPUs. With ``--cpu``,
    too, a process for each GPU starts, and all of them share the same cores. (``--distributed-world-size`` still starts
    fewer.) The process that waits for the others would die at the signal, and they with it while they save. Needed:
    always.
    """
    from fairseq.distributed.utils import infer_init_method

    training = cfg.distributed_training
    if importlib.util.find_spec("fairscale") is None:
        if training.ddp_backend in ("fully_sharded", "slowmo"):
            raise UserError(
                f"--ddp-backend {training.ddp_backend} needs fairscale, which is archived and with which these models "
                "were never tried: use pytorch_ddp or legacy_ddp"
            )
        if training.zero_sharding != "none":
            raise UserError(
                f"--zero-sharding {training.zero_sharding} needs fairscale, which is archived: leave the option out"
            )
    if cfg.common.bf16 and importlib.util.find_spec("torch_xla") is None:
        cfg.common.tpu = training.tpu = False
    has_address = training.distributed_init_method is not None or training.distributed_port > 0  # that of SLURM
    is_one_for_each_gpu = training.distributed_world_size == torch.cuda.device_count() and not has_address
    infer_init_method(training)
    if cfg.common.cpu and is_one_for_each_gpu and not training.distributed_no_spawn:  # nor has torchrun started it
        training.distributed_init_method, training.distributed_world_size = None, 1
    if training.distributed_init_method and cfg.common.cpu and training.distributed_backend == "nccl":
        training.distributed_backend = "gloo"
    if training.distributed_init_method is None or training.distributed_no_spawn:
        return stop_listening_when_training_ends(call_main, cfg, main, **kwargs)
    if not (torch.cuda.device_count() or cfg.common.tpu):
        raise UserError(
            "--distributed-init-method starts a process for each GPU, and there is none: start the processes by "
            "`torchrun --nproc_per_node N --no-python` before the command, which works on a CPU too (there with --cpu)"
        )
    handlers = {number: signal.signal(number, pass_signal_on) for number in SIGNALS}
    try:
        call_main(cfg, functools.partial(main_in_one_line, main), **kwargs)
    except ProcessExitedException as error:
        if error.exit_code != 1 and error.exit_code - 128 not in SIGNALS:
            raise
        sys.exit(error.exit_code)
    finally:
        put_back(handlers)


def main_in_one_line(main, cfg, **kwargs):
    """Run `main` in a process that another one has started. Print an error that the user can fix here, in one line,
    and exit with status 1: the other process would print a traceback as text."""
    try:
        main(cfg, **kwargs)
    except Exception as error:
        if not is_for_user(error):
            raise
        print(f"{os.path.basename(sys.argv[0])}: error: {error}", file=sys.stderr)
        sys.exit(1)


def pass_signal_on(number, frame):
    for process in multiprocessing.active_children():
        process.terminate()


def put_back(handlers):
    """Handle signals as before. `handlers` has the handler of each signal."""
    for number, handler in handlers.items():
        signal.signal(number, handler)


@replaces("fairseq.distributed.utils", "_infer_single_node_init")
def count_devices_before_starting(infer_single_node_init, cfg):
    """Say how to start several processes if there are fewer GPUs than processes.

    Why: fairseq fails an assertion. Needed: always.
    """
    wanted, devices = cfg.distributed_world_size, torch.cuda.device_count()
    if wanted > devices:
        raise UserError(
            f"--distributed-world-size {wanted} starts a process for each GPU, and there are {devices}: lower it; or "
            f"start the processes by `torchrun --nproc_per_node {wanted} --no-python` before the command, which "
            "works on a CPU too (there with --cpu)"
        )
    infer_single_node_init(cfg)


@replaces("fairseq.models.distributed_fairseq_model", "DistributedDataParallel")
def wrap_models_on_cpus(distribute, module, device_ids, output_device, **settings):
    """Let ``--ddp-backend pytorch_ddp``, the default, wrap a model on a CPU.

    Why: fairseq passes a device number, which PyTorch refuses for a CPU. Needed: always.
    """
    if not any(parameter.is_cuda for parameter in module.parameters()):
        device_ids = output_device = None
    return distribute(module, device_ids=device_ids, output_device=output_device, **settings)


@replaces("fairseq.distributed.utils", "all_gather_list")
def gather_through_pytorch(all_gather_list, data, group=None, max_size=16384):
    """Gather what the processes have logged on CPUs too, and whatever its size.

    Why: fairseq's buffer is on a GPU, and holds no more than ``--all-gather-list-size``. ``fairseq-validate`` and tasks
    whose results cannot be summed use it. Needed: always.
    """
    from fairseq import utils
    from fairseq.distributed.utils import get_global_group, get_world_size, use_xla

    if use_xla():
        return all_gather_list(data, group, max_size)
    group = get_global_group() if group is None else group
    gathered = [None] * get_world_size(group)
    torch.distributed.all_gather_object(gathered, utils.move_to_cpu(data), group)
    return gathered


@replaces("fairseq.tasks.fairseq_task", "FairseqTask.valid_step")
@replaces("fairseq.tasks.translation", "TranslationTask.valid_step")
def skip_empty_batch(valid_step, self, sample, model, criterion):
    """Let ``fairseq-validate`` run in several processes, some of which get one batch less than the others.

    Why: fairseq gives them an empty batch, and fails in the criterion. Needed: always.
    """
    return valid_step(self, sample, model, criterion) if sample else (0, 0, {})


@replaces("fairseq.distributed.distributed_timeout_wrapper", "DistributedTimeoutWrapper.__init__")
def kill_a_hung_process(init, self, module, timeout, signal=signal.SIGKILL):
    """Let ``--heartbeat-timeout`` end a process that hangs.

    Why: fairseq sends SIGINT, at which training would save after the next update, which never comes. Needed: always.
    """
    init(self, module, timeout, signal)


class Termination:
    """Records that this process received one of `SIGNALS`. A second request ends the process immediately."""

    def __init__(self):
        self.forget()
        self.previous = {}  # the handlers that are set aside, by signal

    def forget(self):
        """Forget a request."""
        self.requested_at = None  # in seconds of the monotonic clock
        self.number = None  # of the signal
        self.has_waited = False  # for fairseq to validate or save; all processes of the job then know of the signal

    def listen(self):
        """Handle the signals from now on, except those that the program handles in its own way."""
        if threading.current_thread() is threading.main_thread():
            for number, handler in SIGNALS.items():
                if signal.getsignal(number) is handler:
                    self.previous[number] = signal.signal(number, self._request)

    def stop_listening(self):
        """Put the handlers back that were there before, and forget a request that came too late."""
        if threading.current_thread() is threading.main_thread():
            put_back(self.previous)
            self.previous = {}
        self.forget()

    def _request(self, number, frame):
        now = time.monotonic()
        if self.requested_at is None:
            self.requested_at, self.number = now, number
            if number == signal.SIGINT:
                print("saving after the next update; Ctrl-C again ends at once, unsaved", file=sys.stderr, flush=True)
        elif now - self.requested_at > SAME_REQUEST_S:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    def is_requested(self, steps):
        """Return whether any process of the job received a signal.

        Args:
            steps: the number of updates or steps of validation so far. All processes call this after the same step.
        """
        requested = self.requested_at is not None
        if not torch.distributed.is_initialized():
            return requested
        on_gpus = torch.distributed.get_backend() == "nccl"
        if on_gpus and steps % STEPS_BETWEEN_QUESTIONS:
            return False
        anywhere = torch.tensor(int(requested), device="cuda" if on_gpus else "cpu")
        torch.distributed.all_reduce(anywhere, op=torch.distributed.ReduceOp.MAX)
        return bool(anywhere)

    def ends(self, trainer):
        """Return whether training ends after the update that the trainer has just made.

        If fairseq itself validates or saves after this update, training ends after the next one. A checkpoint from
        before the validation would resume without it. Training waits only once, because fairseq may validate or save
        after each update.
        """
        updates = trainer.get_num_updates()
        if 0 < trainer.cfg.optimization.max_update <= updates:  # it ends anyway
            return False
        if self.has_waited:
            return True
        if not self.is_requested(updates):
            return False
        intervals = (trainer.cfg.checkpoint.save_interval_updates, trainer.cfg.dataset.validate_interval_updates)
        at_interval = any(interval > 0 and updates % interval == 0 for interval in intervals)
        self.has_waited = trainer._train_iterator.end_of_epoch() or at_interval
        return not self.has_waited


termination = Termination()


@replaces("fairseq_cli.train", "main")
def stop_listening_when_training_ends(main, *args, **kwargs):
    """Restore the signal handlers of a program that calls fairseq's training, unless training ends the program.

    The commands import ``main`` before the patches can reach it. For them, :func:`call_main_on_devices` does the
    same. Needed: always.
    """
    try:
        return main(*args, **kwargs)
    finally:
        if not isinstance(sys.exception(), SystemExit):  # before such an exit, a copy of the signal may still come
            termination.stop_listening()


@replaces("fairseq.trainer", "Trainer.get_train_iterator")
def listen_when_training_begins(get_train_iterator, self, *args, **kwargs):
    """Handle the signals from now on, and keep the iterator for the functions that save. Needed: always."""
    termination.listen()
    self._train_iterator = get_train_iterator(self, *args, **kwargs)
    return self._train_iterator


@replaces("fairseq.trainer", "Trainer.train_step")
def save_when_terminated(train_step, self, *args, **kwargs):
    """After a signal, save after the current update and exit with status 143 (130 for Ctrl-C), a failure for scripts.

    Several processes agree on whether all of them stop.
    Why: fairseq dies at the signal, and loses what it has learned since the last checkpoint. Needed: always.
    """
    logging_output = train_step(self, *args, **kwargs)
    if termination.ends(self):
        from fairseq import checkpoint_utils

        checkpoint = self.cfg.checkpoint
        checkpoint_utils.save_checkpoint(checkpoint, self, self._train_iterator, None)
        if torch.distributed.is_initialized():
            torch.distributed.barrier()  # the launcher terminates all processes as soon as one exits
        is_unsaved = checkpoint.no_save or checkpoint.no_last_checkpoints
        what = "there is no checkpoint_last.pt to go on from" if is_unsaved else "the same command goes on there"
        logging.getLogger("fairseq.trainer").info(f"terminated after update {self.get_num_updates()}; {what}")
        sys.exit(128 + (termination.number or signal.SIGTERM))  # another process may have received it
    return logging_output


@replaces("fairseq.trainer", "Trainer.valid_step")
def save_during_validation(valid_step, self, *args, **kwargs):
    """After a signal, save during validation, which goes on. Training ends after it, and after one more update.

    Why: a validation that translates may take longer than the scheduler waits. Needed: always.
    """
    # This is so in all processes or in none. But one whose memory was full calls this again for the same batch.
    if is_unsaved(self) and not kwargs.get("raise_oom"):
        self.steps_of_validation = getattr(self, "steps_of_validation", -1) + 1
        if termination.is_requested(self.steps_of_validation):
            save_if_unsaved(self, None)
    return valid_step(self, *args, **kwargs)


@replaces("fairseq.data.iterators", "EpochBatchIterator._get_iterator_for_epoch")
def keep_data_workers_when_terminated(get_iterator_for_epoch, self, *args, **kwargs):
    """Let the processes that read data survive Ctrl-C, and a SIGTERM that their loader did not send.

    Why: a scheduler signals all processes of a job. A worker that ends while training waits for its batch ends the
    training too ("DataLoader worker exited unexpectedly"), before it can save. The loader ends its workers by the same
    signal, so a worker checks who sent it.
    Needed: always, where the system tells the sender (not on macOS).
    """
    if not hasattr(signal, "sigwaitinfo"):
        return get_iterator_for_epoch(self, *args, **kwargs)
    loader = data.DataLoader
    data.DataLoader = functools.partial(LoaderOfLastingWorkers, worker_init_fn=end_when_the_parent_says)
    try:
        return get_iterator_for_epoch(self, *args, **kwargs)
    finally:
        data.DataLoader = loader


class LoaderOfLastingWorkers(data.DataLoader):
    """Starts its workers with `SIGNALS` blocked, so that a signal cannot end a worker at any moment."""

    def __iter__(self):
        old = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            return super().__iter__()  # starts the workers
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, old)


def end_when_the_parent_says(_):
    """Start a thread that ends a data worker on SIGTERM if the parent sent it. The worker blocks the signal."""

    def obey_parent():
        while signal.sigwaitinfo({signal.SIGTERM}).si_pid != os.getppid():
            pass
        os._exit(0)

    threading.Thread(target=obey_parent, daemon=True).start()
