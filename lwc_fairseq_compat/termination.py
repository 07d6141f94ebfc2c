"""Training saves a checkpoint before it ends on SIGTERM, which schedulers send some time before they kill a job, or on
Ctrl-C (SIGINT)."""

import functools
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

from .hooks import mends

SIGNALS = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
"""The signals on which training saves, with the handlers that programs begin with."""


SAME_REQUEST_S = 1.0
"""Seconds in which a second signal counts as a copy of the first: a scheduler signals every process of a job, and the
process that started the others also passes its own signal on."""


UPDATES_BETWEEN_QUESTIONS = 8
"""On GPUs, several processes ask each other after this many updates whether one of them received a signal, because each
question waits for all GPUs. On CPUs they ask after each update."""


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

    def is_requested(self, updates):
        """Return whether any process of the job received a signal.

        Args:
            updates: the number of updates so far. All processes call this after the same update.
        """
        requested = self.requested_at is not None
        if not torch.distributed.is_initialized():
            return requested
        on_gpus = torch.distributed.get_backend() == "nccl"
        if on_gpus and updates % UPDATES_BETWEEN_QUESTIONS:
            return False
        anywhere = torch.tensor(int(requested), device="cuda" if on_gpus else "cpu")
        torch.distributed.all_reduce(anywhere, op=torch.distributed.ReduceOp.MAX)
        return bool(anywhere)


termination = Termination()


def put_back(handlers):
    """Handle signals as before.

    Args:
        handlers: the handler of each signal.
    """
    for number, handler in handlers.items():
        signal.signal(number, handler)


@mends("fairseq_cli.train", "main")
def stop_listening_when_training_ends(main):
    """Give a program that trains its own handlers back, unless training ends the program.

    The commands import this module before the patches can reach it. For them, :func:`terminate_spawned_processes` does
    the same.
    Needed: always.
    """

    @functools.wraps(main)
    def main_and_stop_listening(*args, **kwargs):
        try:
            return main(*args, **kwargs)
        finally:
            if not isinstance(sys.exc_info()[1], SystemExit):  # then a copy of the signal may still come
                termination.stop_listening()

    return main_and_stop_listening


@mends("fairseq.trainer", "Trainer.get_train_iterator")
def listen_when_training_begins(get_train_iterator):
    """Handle the signals, and keep the iterator for :func:`save_when_terminated`.

    Needed: always.
    """

    @functools.wraps(get_train_iterator)
    def get_train_iterator_and_listen(self, *args, **kwargs):
        termination.listen()
        self._train_iterator = get_train_iterator(self, *args, **kwargs)
        return self._train_iterator

    return get_train_iterator_and_listen


@mends("fairseq.trainer", "Trainer.train_step")
def save_when_terminated(train_step):
    """Save after the current update and exit with status 143 (130 after Ctrl-C), which scripts treat as a failure.

    Several processes agree on whether all of them stop.
    Why: fairseq dies at the signal, and loses what it has learned since the last checkpoint. Needed: always.
    """
    from fairseq import checkpoint_utils

    logger = logging.getLogger("fairseq.trainer")

    @functools.wraps(train_step)
    def train_step_and_end(self, *args, **kwargs):
        logging_output = train_step(self, *args, **kwargs)
        if ends_now(self):
            checkpoint = self.cfg.checkpoint
            checkpoint_utils.save_checkpoint(checkpoint, self, self._train_iterator, None)
            if torch.distributed.is_initialized():
                torch.distributed.barrier()  # the launcher terminates all processes as soon as one exits
            is_unsaved = checkpoint.no_save or checkpoint.no_last_checkpoints
            what = "there is no checkpoint_last.pt to go on from" if is_unsaved else "the same command goes on there"
            logger.info(f"terminated after update {self.get_num_updates()}; {what}")
            sys.exit(128 + (termination.number or signal.SIGTERM))  # another process may have received it
        return logging_output

    return train_step_and_end


def ends_now(trainer):
    """Return whether training ends after the update that the trainer has just made.

    If fairseq itself validates or saves after this update, training goes on to the next one, because a checkpoint from
    before would resume without the validation. It waits only once: fairseq may do so after each update.
    """
    updates = trainer.get_num_updates()
    is_last = 0 < trainer.cfg.optimization.max_update <= updates
    if is_last:
        return False
    if termination.has_waited:
        return True
    if not termination.is_requested(updates):
        return False
    termination.has_waited = fairseq_saves_now(trainer)
    return not termination.has_waited


def fairseq_saves_now(trainer):
    """Return whether fairseq itself validates or saves after the update that the trainer has just made."""
    updates = trainer.get_num_updates()
    intervals = (trainer.cfg.checkpoint.save_interval_updates, trainer.cfg.dataset.validate_interval_updates)
    at_interval = any(interval > 0 and updates % interval == 0 for interval in intervals)
    return trainer._train_iterator.end_of_epoch() or at_interval


@mends("fairseq.data.iterators", "EpochBatchIterator._get_iterator_for_epoch")
def keep_data_workers_when_terminated(get_iterator_for_epoch):
    """Let the processes that read data survive Ctrl-C, and a SIGTERM that their loader did not send.

    Why: a scheduler signals all processes of a job. A worker that ends while training waits for its batch ends the
    training too ("DataLoader worker exited unexpectedly"), before it can save. The loader ends its workers by the same
    signal, so a worker looks at the sender.
    Needed: always, where the system tells the sender (not on macOS).
    """
    if not hasattr(signal, "sigwaitinfo"):
        return get_iterator_for_epoch

    @functools.wraps(get_iterator_for_epoch)
    def get_iterator_with_lasting_workers(self, *args, **kwargs):
        loader = data.DataLoader
        data.DataLoader = functools.partial(LoaderOfLastingWorkers, worker_init_fn=end_when_the_parent_says)
        try:
            return get_iterator_for_epoch(self, *args, **kwargs)
        finally:
            data.DataLoader = loader

    return get_iterator_with_lasting_workers


class LoaderOfLastingWorkers(data.DataLoader):
    """Starts its workers with the signals blocked, so that these cannot end them at any moment."""

    def __iter__(self):
        old = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            return super().__iter__()  # starts the workers
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, old)


def end_when_the_parent_says(_):
    """Start a thread in a data worker, where SIGTERM is blocked, that obeys the signal only if the parent sent it."""

    def obey_parent():
        while signal.sigwaitinfo({signal.SIGTERM}).si_pid != os.getppid():
            pass
        os._exit(0)

    threading.Thread(target=obey_parent, daemon=True).start()


@mends("fairseq.distributed.utils", "call_main")
def terminate_spawned_processes(call_main):
    """Pass the signals on to the processes that fairseq has started, and wait until they have saved.

    Why: the process that waits for them would die at the signal, and they with it while they save. Needed: always.
    """
    from fairseq.distributed.utils import infer_init_method

    @functools.wraps(call_main)
    def call_main_and_pass_signals_on(cfg, main, **kwargs):
        training = cfg.distributed_training
        infer_init_method(training)
        if training.distributed_init_method is None or training.distributed_no_spawn:
            return stop_listening_when_training_ends(call_main)(cfg, main, **kwargs)
        previous = {number: signal.signal(number, pass_signal_on) for number in SIGNALS}
        try:
            call_main(cfg, main, **kwargs)
        except ProcessExitedException as error:
            if error.exit_code - 128 not in SIGNALS:
                raise
            sys.exit(error.exit_code)
        finally:
            put_back(previous)

    return call_main_and_pass_signals_on


def pass_signal_on(number, frame):
    for process in multiprocessing.active_children():
        process.terminate()
