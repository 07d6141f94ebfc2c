"""fairseq 0.12.2 on today's Python, PyTorch and numpy: the only module that patches anything.

PyTorch (2.5 and later) calls :func:`activate` at the end of ``import torch``, because ``setup.py`` names it in the
entry-point group ``torch.backends``. fairseq imports torch before its first dataclass, so this is early enough for
the plain ``fairseq-train``, which reads ``--user-dir`` only after fairseq is imported. :func:`activate` does nothing
but hang a finder on ``sys.meta_path``; the patches are applied when a module of fairseq is imported, so a program
that never imports fairseq pays for one look at each import and nothing else.

Each patch is one function that names its reason, the fairseq file it mends and when it stops being needed
(``fairseq`` is archived, so most of them stay as long as 0.12.2 is its last release).
"""

import contextlib
import functools
import sys
from importlib.machinery import PathFinder


class UserError(ValueError):
    """Bad input that the user can mend: the message says what, which value and what to do.

    The ``fairseq-*`` commands print it as one line, without a traceback (:func:`print_user_errors_in_one_line`).
    """


def activate():
    """Make fairseq importable in this process; safe to call more than once."""
    if not any(isinstance(finder, _FairseqFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _FairseqFinder())


class _FairseqFinder:
    """Applies the patches: the general ones before any module of fairseq runs, the others right after their module."""

    def __init__(self):
        self.fairseq_seen = False

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] != "fairseq":
            return None
        if not self.fairseq_seen:
            self.fairseq_seen = True
            for patch in GENERAL_PATCHES:
                patch()
        patches = PATCHES.get(name)
        return patches and _spec_with_patches(PathFinder.find_spec(name, path), patches)


def _spec_with_patches(spec, patches):
    if spec is None:
        return None
    run_module = spec.loader.exec_module

    def exec_module(module):
        run_module(module)
        for patch in patches:
            patch(module)

    spec.loader.exec_module = exec_module
    return spec


# ---------------------------------------------------------------- Python


def make_dataclass_defaults_hashable():
    """Let fairseq's configuration classes be default values of dataclass fields.

    Why: since Python 3.11 a dataclass refuses unhashable defaults (``mutable default ... is not allowed``), and an
    instance of a dataclass with ``eq`` is unhashable. fairseq reads such defaults as class attributes (``hydra_init``
    looks at ``field.default``), so a ``default_factory`` would not do. Identity is the right hash here: nobody
    compares these instances.
    Mends: ``fairseq/dataclass/configs.py``, ``fairseq/models/transformer/transformer_config.py`` and others.
    Needed: on every Python from 3.11.
    """
    import dataclasses

    process_class = dataclasses._process_class

    @functools.wraps(process_class)
    def process_fairseq_class(cls, *args, **kwargs):
        cls = process_class(cls, *args, **kwargs)
        if cls.__module__.partition(".")[0] == "fairseq" and cls.__hash__ is None:
            cls.__hash__ = object.__hash__
        return cls

    dataclasses._process_class = process_fairseq_class


# ---------------------------------------------------------------- torch.load


def trust_checkpoint_classes():
    """Let ``torch.load`` read fairseq's checkpoints in its weights-only mode.

    Why: since torch 2.6 ``torch.load`` builds no object of a class that was not named as harmless. fairseq writes a
    ``Namespace`` (models registered without a dataclass) and, with ``--eval-bleu``, numpy arrays of counts. None of
    these runs code when built, so the safe mode stays on.
    Mends: ``fairseq/checkpoint_utils.py``. Needed: from torch 2.6.
    """
    import argparse
    import codecs

    import numpy
    import numpy.dtypes
    import torch.serialization

    reconstruct = numpy.array(0).__reduce__()[0]
    torch.serialization.add_safe_globals(
        [
            argparse.Namespace,
            codecs.encode,
            numpy.ndarray,
            numpy.dtype,
            numpy.dtypes.Int64DType,
            numpy.dtypes.Float64DType,
            # the module that held this function was renamed in numpy 2: checkpoints bear either name
            (reconstruct, "numpy.core.multiarray._reconstruct"),
            (reconstruct, "numpy._core.multiarray._reconstruct"),
        ]
    )


def broadcast_configurations(module):
    """Let the ranks of a job receive the configuration that rank 0 sends on resume.

    Why: the receiving side calls ``torch.load``, which is weights-only since torch 2.6, on a checkpoint whose
    ``cfg`` is an omegaconf ``DictConfig``. The classes are named as harmless only during this call: the bytes come
    from the job's own rank 0.
    Mends: ``fairseq/distributed/utils.py::_broadcast_object_slow``. Needed: from torch 2.6.
    """
    import collections
    import typing

    import omegaconf
    import torch.serialization
    from omegaconf import base, nodes

    classes = [
        omegaconf.DictConfig,
        omegaconf.ListConfig,
        base.ContainerMetadata,
        base.Metadata,
        *(value for value in vars(nodes).values() if isinstance(value, type) and issubclass(value, base.Node)),
        collections.defaultdict,
        module._TensorPlaceholder,
        typing.Any,
        *(dict, list, tuple, int, float, str, bool),
    ]
    broadcast = module._broadcast_object_slow

    @functools.wraps(broadcast)
    def broadcast_object_slow(*args, **kwargs):
        with torch.serialization.safe_globals(classes):
            return broadcast(*args, **kwargs)

    module._broadcast_object_slow = broadcast_object_slow


# ---------------------------------------------------------------- stock Transformer

_FUSED_KERNEL_WEIGHTS = (
    *("in_proj_weight", "in_proj_bias", "out_proj_weight", "out_proj_bias"),
    *("fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"),
)


def drop_fused_kernel(module):
    """Take the old fused kernel, and the eight dead weights it carries, out of the stock Transformer's encoder layer.

    Why: in generation the layer calls ``torch._transformer_encoder_layer_fwd`` in a form that torch no longer has
    (``Mask Type should be defined``); and the kernel's copies of the weights are parameters that never get a
    gradient, which stops the default distributed training (``Expected to have finished reduction``) and inflates
    the parameter count. Checkpoints that hold the copies load; what is saved here loads in unpatched fairseq, which
    makes its copies while loading.
    Mends: ``fairseq/modules/transformer_layer.py::TransformerEncoderLayerBase``. Needed: from torch 2.0.
    """
    from torch import nn

    layer = module.TransformerEncoderLayerBase
    init = layer.__init__

    @functools.wraps(init)
    def init_without_copies(self, *args, **kwargs):
        init(self, *args, **kwargs)
        for name in _FUSED_KERNEL_WEIGHTS:
            delattr(self, name)

    def load_without_copies(self, state_dict, prefix, *args):
        for name in _FUSED_KERNEL_WEIGHTS:
            state_dict.pop(prefix + name, None)
        nn.Module._load_from_state_dict(self, state_dict, prefix, *args)

    layer.__init__ = init_without_copies
    layer._load_from_state_dict = load_without_copies


# ---------------------------------------------------------------- generation


def block_repeated_ngrams(module):
    """Let ``--no-repeat-ngram-size`` block what it says.

    Why: without fairseq's CUDA extension, the last tokens of a hypothesis are looked for at the end of a row that is
    padded to the greatest length, where padding is, so nothing is ever blocked; and of a size of 1 in any case.
    Mends: ``fairseq/ngram_repeat_block.py::NGramRepeatBlock._no_repeat_ngram``. Needed: always.
    """
    import math

    block = module.NGramRepeatBlock._no_repeat_ngram

    @functools.wraps(block)
    def block_in_what_is_there(self, tokens, lprobs, bsz, beam_size, step):
        if self.no_repeat_ngram_size == 1:
            return lprobs.scatter_(1, tokens[:, 1 : step + 1], -math.inf)
        return block(self, tokens[:, : step + 1], lprobs, bsz, beam_size, step)

    module.NGramRepeatBlock._no_repeat_ngram = block_in_what_is_there


def replace_unknown_words(module):
    """Let ``--replace-unk`` find the source word that an unknown one is aligned to.

    Why: it wants a source position for each target token. fairseq gives pairs of source and target (``--print-alignment
    hard``), rows of weights (``soft``), or nothing.
    Mends: ``fairseq/utils.py::replace_unk``. Needed: always.
    """
    replace_unk = module.replace_unk

    def position(link):
        return link[0] if isinstance(link, tuple) else max(range(len(link)), key=lambda i: float(link[i]))

    @functools.wraps(replace_unk)
    def replace_unk_by_links(hypo_str, src_str, alignment, align_dict, unk):
        if not len(alignment) and unk in hypo_str.split():
            raise UserError("--replace-unk needs an alignment: add --print-alignment hard")
        return replace_unk(hypo_str, src_str, [position(link) for link in alignment], align_dict, unk)

    module.replace_unk = replace_unk_by_links


def generate_one_shard(module):
    """Let ``fairseq-generate --num-shards 4 --shard-id 0`` translate a quarter of the batches.

    Why: the command reads the size of a distributed job in their place, and translates everything.
    Mends: ``fairseq/options.py::get_generation_parser``, since ``fairseq_cli/generate.py`` may be imported before
    PyTorch, and with it this module. Needed: always.
    """
    get_generation_parser = module.get_generation_parser

    @functools.wraps(get_generation_parser)
    def get_generation_parser_with_shards(interactive=False, **settings):
        parser = get_generation_parser(interactive=interactive, **settings)
        if not interactive:  # which translates one text
            parser._option_string_actions["--num-shards"].dest = "distributed_world_size"
            parser._option_string_actions["--shard-id"].dest = "distributed_rank"
        return parser

    module.get_generation_parser = get_generation_parser_with_shards


def name_missing_shard(module):
    """Say which shards there are.

    Mends: ``fairseq/data/iterators.py::ShardedIterator``. Needed: always.
    """
    init = module.ShardedIterator.__init__

    @functools.wraps(init)
    def init_of_known_shard(self, iterable, num_shards, shard_id, **settings):
        if not 0 <= shard_id < num_shards:
            raise UserError(
                f"--shard-id {shard_id}: with --num-shards {num_shards} it must be from 0 to {num_shards - 1}"
            )
        init(self, iterable, num_shards, shard_id, **settings)

    module.ShardedIterator.__init__ = init_of_known_shard


def copy_unknown_words(module):
    """Let a bare ``--replace-unk`` copy the source word.

    Why: its value is then ``"@@ "``, of which fairseq opens a file. The empty string means what is wanted.
    Mends: ``fairseq/utils.py::load_align_dict``. Needed: always.
    """
    load_align_dict = module.load_align_dict

    @functools.wraps(load_align_dict)
    def load_align_dict_if_named(replace_unk):
        return load_align_dict("" if replace_unk == "@@ " else replace_unk)

    module.load_align_dict = load_align_dict_if_named


def print_soft_alignments(module):
    """Let ``fairseq-interactive --print-alignment soft`` print what ``fairseq-generate`` prints.

    Why: it takes each row of weights for a pair of positions, and fails. Here a row is a pair, of the weights and of a
    mark, and the mark goes where the line is printed.
    Mends: ``fairseq/utils.py::post_process_prediction`` and, in the module of the command, ``print``. Needed: always.
    """
    post_process_prediction = module.post_process_prediction
    mark = "\0"

    def print_without_marks(text, **settings):
        print(text.replace(f"-{mark}", ""), **settings)

    @functools.wraps(post_process_prediction)
    def post_process_with_rows_as_pairs(*args, **kwargs):
        tokens, text, alignment = post_process_prediction(*args, **kwargs)
        command = sys._getframe(1).f_globals
        if "buffered_read" in command and isinstance(alignment, list) and alignment and isinstance(alignment[0], list):
            command["print"] = print_without_marks
            alignment = [(",".join(row), mark) for row in alignment]
        return tokens, text, alignment

    module.post_process_prediction = post_process_with_rows_as_pairs


def translate_long_lines_alone(module):
    """Translate a line that is longer than ``--max-tokens`` alone, with a warning, instead of ending the command.

    Only where there are no targets, as in ``fairseq-interactive``: a training or test set is refused as before.
    Mends: ``fairseq/data/fairseq_dataset.py::FairseqDataset.batch_by_size``. Needed: always.
    """
    import logging

    batch_by_size = module.FairseqDataset.batch_by_size
    logger = logging.getLogger(module.__name__)

    @functools.wraps(batch_by_size)
    def batch_by_size_or_alone(self, indices, max_tokens=None, **limits):
        if max_tokens is None or getattr(self, "tgt", self) is not None:
            return batch_by_size(self, indices, max_tokens=max_tokens, **limits)
        lengths = {index: self.num_tokens(index) for index in indices}
        alone = [index for index in indices if lengths[index] > max_tokens]
        for index in alone:
            logger.warning(f"a line of {lengths[index]} tokens, more than --max-tokens {max_tokens}: translated alone")
        rest = module.np.array([index for index in indices if lengths[index] <= max_tokens], dtype=module.np.int64)
        batches = batch_by_size(self, rest, max_tokens=max_tokens, **limits) if len(rest) else []
        return [*batches, *(module.np.array([index]) for index in alone)]

    module.FairseqDataset.batch_by_size = batch_by_size_or_alone


# ---------------------------------------------------------------- text


def read_lines_as_they_are(module):
    """End a line of training data at a line feed and nowhere else, and read any bytes.

    Why: a carriage return inside a line would end it, and with it the correspondence of source and target; bytes that
    are not UTF-8 would stop ``fairseq-preprocess`` with a negative seek position. They become U+FFFD.
    Mends: ``fairseq/file_chunker_utils.py``, whose ``open`` this is. Needed: always.
    """
    module.open = functools.partial(open, errors="replace", newline="\n")


def read_input_as_it_is(module):
    """The same for ``fairseq-interactive``, from its standard input or from ``--input``.

    Mends: ``fairseq/options.py::get_interactive_generation_parser``, which that command alone calls; what reads its
    lines is Python's. Needed: always.
    """
    import fileinput

    get_parser = module.get_interactive_generation_parser

    def hook_any_bytes(encoding):
        return functools.partial(open, encoding=encoding, errors="replace", newline="\n")

    @functools.wraps(get_parser)
    def get_parser_and_set_input(*args, **kwargs):
        if hasattr(sys.stdin, "reconfigure"):
            sys.stdin.reconfigure(encoding="utf-8", errors="replace", newline="\n")
        fileinput.hook_encoded = hook_any_bytes
        return get_parser(*args, **kwargs)

    module.get_interactive_generation_parser = get_parser_and_set_input


# ---------------------------------------------------------------- shutting down


def stop_reading_ahead_at_exit(module):
    """Let a command that ends in the middle of an epoch keep its own last words and exit status.

    Why: a daemon thread reads batches ahead. If Python shuts down while that thread is inside torch, the thread is
    ended by force there, and C++ then aborts the whole process: ``terminate called without an active exception``,
    status 134.
    Mends: ``fairseq/data/iterators.py::BackgroundConsumer``. Needed: always.
    """
    import atexit
    import queue
    import threading
    import time

    @atexit.register
    def stop_reading_ahead():
        readers = [thread for thread in threading.enumerate() if isinstance(thread, module.BackgroundConsumer)]
        give_up = time.monotonic() + 5  # seconds; a reader may wait for a disk that does not answer
        for reader in readers:
            reader._max_len = 0  # it stops after the batch in hand, once there is room in the queue for it
        while any(reader.is_alive() for reader in readers) and time.monotonic() < give_up:
            for reader in readers:
                with contextlib.suppress(queue.Empty):
                    reader._queue.get(timeout=0.01)


def save_when_terminated(module):
    """Let training that is told to end (SIGTERM, which schedulers send some time before they kill) save first.

    The checkpoint is written after the update at hand, or, where fairseq is about to validate and save by itself, after
    the next one; so resuming is exact. The status is 143, which no script takes for success. A second signal ends
    the process at once, but not within a second of the first: a scheduler signals all processes, and who has started
    them passes its own signal on. Several processes agree on the update after which all of them stop.
    Mends: ``fairseq/trainer.py::Trainer``. Needed: always.
    """
    import signal
    import threading
    import time

    import torch

    trainer = module.Trainer
    get_train_iterator, train_step = trainer.get_train_iterator, trainer.train_step
    signals = []  # when they came, in seconds

    def remember(number, _):
        signals.append(time.monotonic())
        if signals[-1] - signals[0] > 1:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    def told_to_end():
        if not torch.distributed.is_initialized():
            return bool(signals)
        device = "cuda" if torch.distributed.get_backend() == "nccl" else "cpu"
        anyone = torch.tensor(len(signals), device=device)
        torch.distributed.all_reduce(anyone, op=torch.distributed.ReduceOp.MAX)
        return bool(anyone)

    def fairseq_saves_here(self):
        updates = self.get_num_updates()
        intervals = (self.cfg.checkpoint.save_interval_updates, self.cfg.dataset.validate_interval_updates)
        at_interval = any(interval > 0 and updates % interval == 0 for interval in intervals)
        is_last = 0 < self.cfg.optimization.max_update <= updates
        return self._train_iterator.end_of_epoch() or at_interval or is_last

    @functools.wraps(get_train_iterator)
    def get_train_iterator_and_listen(self, *args, **kwargs):
        is_main_thread = threading.current_thread() is threading.main_thread()
        if is_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, remember)
        self._train_iterator = get_train_iterator(self, *args, **kwargs)
        return self._train_iterator

    @functools.wraps(train_step)
    def train_step_and_end(self, *args, **kwargs):
        logging_output = train_step(self, *args, **kwargs)
        if told_to_end() and not fairseq_saves_here(self):
            module.checkpoint_utils.save_checkpoint(self.cfg.checkpoint, self, self._train_iterator, None)
            if torch.distributed.is_initialized():
                torch.distributed.barrier()  # whoever starts the processes ends all of them after the first
            module.logger.info(f"terminated after update {self.get_num_updates()}; the same command goes on there")
            sys.exit(128 + signal.SIGTERM)
        return logging_output

    trainer.get_train_iterator, trainer.train_step = get_train_iterator_and_listen, train_step_and_end


def keep_data_workers_when_terminated(module):
    """Let the processes that read data outlive a SIGTERM that is not their loader's.

    Why: a scheduler signals all processes of a job. A worker that ends while training waits for its batch ends the
    training, too ("DataLoader worker exited unexpectedly"), before it can save. The loader ends its workers by the
    same signal, so they look at who has sent it. They begin with the signal blocked, which leaves no moment at which
    it could end them.
    Mends: ``fairseq/data/iterators.py::EpochBatchIterator._get_iterator_for_epoch``. Needed: always, where the system
    can tell the sender (not on macOS).
    """
    import signal

    if not hasattr(signal, "sigwaitinfo"):
        return
    iterator, data = module.EpochBatchIterator, module.torch.utils.data
    get_iterator_for_epoch = iterator._get_iterator_for_epoch

    class DataLoader(data.DataLoader):
        def __iter__(self):
            old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            try:
                return super().__iter__()  # starts the workers
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, old)

    @functools.wraps(get_iterator_for_epoch)
    def get_iterator_with_lasting_workers(self, *args, **kwargs):
        loader = data.DataLoader
        data.DataLoader = functools.partial(DataLoader, worker_init_fn=end_when_the_parent_says)
        try:
            return get_iterator_for_epoch(self, *args, **kwargs)
        finally:
            data.DataLoader = loader

    iterator._get_iterator_for_epoch = get_iterator_with_lasting_workers


def end_when_the_parent_says(_):
    """Called in a data worker, in which SIGTERM is blocked: a thread takes each one and heeds the parent's alone."""
    import os
    import signal
    import threading

    def heed_parent():
        while signal.sigwaitinfo({signal.SIGTERM}).si_pid != os.getppid():
            pass
        os._exit(0)

    threading.Thread(target=heed_parent, daemon=True).start()


def terminate_spawned_processes(module):
    """Let a training whose processes fairseq itself has started end as above.

    Why: the process that waits for them would die at the signal, and they with it, in the middle of saving.
    Mends: ``fairseq/distributed/utils.py::call_main``. Needed: always.
    """
    import multiprocessing
    import signal

    from torch.multiprocessing import ProcessExitedException

    call_main = module.call_main

    def pass_on(*_):
        for process in multiprocessing.active_children():
            process.terminate()

    @functools.wraps(call_main)
    def call_main_and_pass_signals_on(cfg, main, **kwargs):
        training = cfg.distributed_training
        module.infer_init_method(training)
        if training.distributed_init_method is None or training.distributed_no_spawn:
            return call_main(cfg, main, **kwargs)
        signal.signal(signal.SIGTERM, pass_on)
        try:
            call_main(cfg, main, **kwargs)
        except ProcessExitedException as error:
            if error.exit_code != 128 + signal.SIGTERM:
                raise
            sys.exit(error.exit_code)

    module.call_main = call_main_and_pass_signals_on


# ---------------------------------------------------------------- finding the plugin


def import_plugins_by_name(module):
    """Let ``--user-dir lwc_fairseq`` mean the installed package where there is no such folder, and let a plugin that
    is imported already be named by any path.

    Why: fairseq looks beside itself, which does not find an editable installation, and takes another spelling of the
    path of an imported package for another package of the same name.
    Mends: ``fairseq/utils.py::import_user_module``. Needed: always.
    """
    import argparse
    import importlib.util
    import os

    import_user_module = module.import_user_module

    def plugin_folder(user_dir):
        name = os.path.basename(os.path.normpath(user_dir))
        if os.path.exists(user_dir):
            inner = os.path.join(user_dir, name)
            if os.path.exists(os.path.join(inner, "__init__.py")):
                raise UserError(f"--user-dir {user_dir} holds the package, but is not the package: give {inner}")
            imported = getattr(sys.modules.get(name), "__path__", [])
            return next((folder for folder in imported if os.path.samefile(folder, user_dir)), user_dir)
        spec = importlib.util.find_spec(name) if name == user_dir and name.isidentifier() else None
        return next(iter((spec and spec.submodule_search_locations) or []), user_dir)

    @functools.wraps(import_user_module)
    def import_user_module_by_name(common):
        user_dir = getattr(common, "user_dir", None)
        if user_dir is not None:
            import_user_module(argparse.Namespace(user_dir=plugin_folder(user_dir)))

    module.import_user_module = import_user_module_by_name


# ---------------------------------------------------------------- checkpoints


def copy_whole_files(module):
    """Copy a file so that it is there as a whole or not at all.

    Why: fairseq writes a checkpoint with care and then copies it to ``checkpoint_last.pt`` in place. Killed meanwhile,
    training leaves half a file there, and cannot resume.
    Mends: ``fairseq/file_io.py::PathManager.copy``. Needed: unless iopath, which has a copy of its own, is installed.
    """
    import os
    import shutil

    if module.IOPathManager:
        return

    def copy(src_path, dst_path, overwrite=False):
        making = f"{dst_path}.making"
        try:
            shutil.copyfile(src_path, making)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.remove(making)
            raise unwritten_checkpoint(dst_path, error) from error
        os.replace(making, dst_path)
        return True

    module.PathManager.copy = staticmethod(copy)


# ---------------------------------------------------------------- clear messages


def check_precision(common):
    """Refuse half precision without a GPU: ``common`` is fairseq's group of common options, as a whole or in part."""
    import torch

    options = ("memory_efficient_fp16", "fp16", "memory_efficient_bf16", "bf16", "amp")  # each implies the next
    chosen = [name for name in options if getattr(common, name, False)]
    if chosen and (getattr(common, "cpu", False) or not torch.cuda.is_available()):
        why = "--cpu is given" if getattr(common, "cpu", False) else "no CUDA device was found"
        flag = "--" + chosen[0].replace("_", "-")
        raise UserError(f"{flag} needs a CUDA device, but {why}: leave out {flag} to compute in 32 bits")


def check_precision_of_every_command(module):
    """Refuse half precision without a GPU where every command passes first.

    Why: on a CPU ``--fp16``, ``--bf16`` and ``--amp`` die deep inside with unrelated messages.
    Mends: ``fairseq/utils.py::import_user_module``. Needed: always.
    """
    import_user_module = module.import_user_module

    @functools.wraps(import_user_module)
    def import_user_module_after_check(common):
        check_precision(common)
        import_user_module(common)

    module.import_user_module = import_user_module_after_check


def run_bf16_on_gpus(module):
    """Do not take ``--bf16`` for a wish for a TPU.

    Why: ``fairseq/options.py`` sets ``tpu`` with ``bf16``, and the commands then ask for ``torch_xla``, also where
    there is a GPU. ``--bf16 --tpu`` still means a TPU where ``torch_xla`` is installed.
    Mends: ``fairseq/distributed/utils.py::call_main``. Needed: always. Read, and tried without a GPU only.
    """
    import importlib.util

    call_main = module.call_main

    @functools.wraps(call_main)
    def call_main_without_tpu(cfg, main, **kwargs):
        check_precision(cfg.common)
        if cfg.common.bf16 and importlib.util.find_spec("torch_xla") is None:
            cfg.common.tpu = cfg.distributed_training.tpu = False
        call_main(cfg, main, **kwargs)

    module.call_main = call_main_without_tpu


# ---------------------------------------------------------------- several processes


def count_devices_before_starting(module):
    """Say how several processes start where there are too few GPUs for them.

    Mends: ``fairseq/distributed/utils.py::_infer_single_node_init``, which fails an assertion. Needed: always.
    """
    infer_single_node_init = module._infer_single_node_init

    @functools.wraps(infer_single_node_init)
    def infer_single_node_init_with_devices(cfg):
        import torch

        wanted, found = cfg.distributed_world_size, torch.cuda.device_count()
        if wanted > found:
            raise UserError(
                f"--distributed-world-size {wanted} starts a process for each GPU, and there are {found}: lower it; or "
                f"start the processes by `torchrun --nproc_per_node {wanted} --no-python` before the command, which "
                "works on a CPU too (there with --cpu)"
            )
        infer_single_node_init(cfg)

    module._infer_single_node_init = infer_single_node_init_with_devices


def connect_cpus(module):
    """Let processes with ``--cpu`` talk to each other without further flags.

    Why: the default, NCCL, connects GPUs alone.
    Mends: ``fairseq/distributed/utils.py::distributed_init``. Needed: always.
    """
    distributed_init = module.distributed_init

    @functools.wraps(distributed_init)
    def distributed_init_with_backend(cfg):
        if cfg.common.cpu and cfg.distributed_training.distributed_backend == "nccl":
            cfg.distributed_training.distributed_backend = "gloo"
        return distributed_init(cfg)

    module.distributed_init = distributed_init_with_backend


def refuse_backends_of_fairscale(module):
    """Say at once that ``--ddp-backend fully_sharded`` and ``slowmo`` need a package that is not there.

    Mends: ``fairseq/distributed/utils.py::call_main``; fairseq finds out later, with a traceback. Needed: always.
    """
    import importlib.util

    call_main = module.call_main

    @functools.wraps(call_main)
    def call_main_with_known_backend(cfg, main, **kwargs):
        backend = cfg.distributed_training.ddp_backend
        if backend in ("fully_sharded", "slowmo") and importlib.util.find_spec("fairscale") is None:
            raise UserError(
                f"--ddp-backend {backend} needs fairscale, which is archived and with which these models were never "
                "tried: use pytorch_ddp or legacy_ddp"
            )
        call_main(cfg, main, **kwargs)

    module.call_main = call_main_with_known_backend


def wrap_models_on_cpus(module):
    """Let ``--ddp-backend pytorch_ddp``, the default, wrap a model on a CPU.

    Why: fairseq tells it a device, which PyTorch refuses for a CPU.
    Mends: ``fairseq/models/distributed_fairseq_model.py``. Needed: always.
    """
    distribute = module.DistributedDataParallel

    def distribute_without_device(module, device_ids, output_device, **settings):
        if not any(parameter.is_cuda for parameter in module.parameters()):
            device_ids = output_device = None
        return distribute(module, device_ids=device_ids, output_device=output_device, **settings)

    module.DistributedDataParallel = distribute_without_device


def resume_with_other_number_of_processes(module):
    """Go on in the middle of an epoch after the batches that were read, however many processes read them.

    Why: the position that is saved counts the batches of one process. With another number of processes, training
    would leave batches out or repeat them. Where the new number does not divide what was read, the few batches of
    the last round are repeated.
    Mends: ``fairseq/data/iterators.py::EpochBatchIterator``. Needed: always.
    """
    iterator = module.EpochBatchIterator
    state_dict, load_state_dict = iterator.state_dict, iterator.load_state_dict

    @functools.wraps(state_dict)
    def state_dict_with_shards(self):
        return {**state_dict(self), "num_shards": self.num_shards}

    @functools.wraps(load_state_dict)
    def load_state_dict_of_shards(self, state):
        shards = state.get("num_shards", self.num_shards)  # checkpoints of plain fairseq do not say
        position = state.get("iterations_in_epoch", 0) * shards // self.num_shards
        load_state_dict(self, {**state, "iterations_in_epoch": position})

    iterator.state_dict, iterator.load_state_dict = state_dict_with_shards, load_state_dict_of_shards


TRANSLATION_MODELS = (
    "of translation models fairseq-validate gives the perplexity, and fairseq-generate --score-reference the score of "
    "each reference"
)


def name_missing_dictionary(module):
    """Say what a missing dictionary means.

    Mends: ``fairseq/data/dictionary.py::Dictionary.add_from_file``. Needed: always.
    """
    add_from_file = module.Dictionary.add_from_file

    @functools.wraps(add_from_file)
    def add_from_named_file(self, f):
        try:
            add_from_file(self, f)
        except FileNotFoundError as error:
            hint = (
                "Give the folder that fairseq-preprocess wrote (its --destdir) and the language pair that it was made "
                "for (-s, -t)"
            )
            if str(error.filename).endswith("/dict.txt"):
                hint = f"It is part of the data of a language model; {TRANSLATION_MODELS}"
            raise UserError(f"dictionary not found: {error.filename}. {hint}") from error

    module.Dictionary.add_from_file = add_from_named_file


def name_missing_pair(module):
    """Say that there is no data folder, or nothing in it by which its languages could be known.

    Mends: ``fairseq/data/data_utils.py::infer_language_pair``. Needed: always.
    """
    infer = module.infer_language_pair

    @functools.wraps(infer)
    def infer_named_pair(path):
        hint = "give the folder that fairseq-preprocess wrote (its --destdir)"
        try:
            pair = infer(path)
        except OSError as error:
            raise UserError(f"data folder {path}: {error.strerror}; {hint}") from error
        if None in pair:
            raise UserError(f"data folder {path}: no data of a language pair in it; {hint}")
        return pair

    module.infer_language_pair = infer_named_pair


def name_missing_split(module):
    """Say which splits there are, where one is not.

    Mends: ``fairseq/tasks/translation.py::load_langpair_dataset``. Needed: always.
    """
    from pathlib import Path

    load = module.load_langpair_dataset

    @functools.wraps(load)
    def load_named_dataset(data_path, split, *args, **kwargs):
        try:
            return load(data_path, split, *args, **kwargs)
        except FileNotFoundError as error:
            splits = sorted({file.name.partition(".")[0] for file in Path(data_path).glob("*.idx")})
            raise UserError(f"data folder {data_path}: no {split} in it, only {', '.join(splits) or 'none'}") from error

    module.load_langpair_dataset = load_named_dataset


def refuse_scores_of_a_language_model(module):
    """Say that ``fairseq-eval-lm`` is not for translation.

    Mends: ``fairseq/tasks/translation.py::TranslationTask``, which lacks the method. Needed: always.
    """

    def eval_lm_dataloader(self, *args, **kwargs):
        raise UserError(f"fairseq-eval-lm is for language models; {TRANSLATION_MODELS}")

    module.TranslationTask.eval_lm_dataloader = eval_lm_dataloader


def count_primary_data_once(module):
    """Let several training sets (``train``, ``train1``, …) be one without ``--upsample-primary``.

    Why: its default is -1, with which lengths are repeated -1 times: an error, or in older numpy no data.
    Mends: ``fairseq/tasks/translation.py::load_langpair_dataset``. Needed: always.
    """
    load_langpair_dataset = module.load_langpair_dataset

    @functools.wraps(load_langpair_dataset)
    def load_with_primary_data(*args, upsample_primary=1, **kwargs):
        return load_langpair_dataset(*args, upsample_primary=max(1, upsample_primary), **kwargs)

    module.load_langpair_dataset = load_with_primary_data


def name_unreadable_checkpoint(module):
    """Name the checkpoint that cannot be read, whatever is wrong inside it, and refuse one that has changed.

    Why: PyTorch stores checksums in a checkpoint, but does not compare them when it reads.
    Mends: ``fairseq/checkpoint_utils.py::load_checkpoint_to_cpu``. Needed: always.
    """
    load = module.load_checkpoint_to_cpu

    @functools.wraps(load)
    def load_named_checkpoint_to_cpu(path, *args, **kwargs):
        try:
            check_sums(path)
            state = load(path, *args, **kwargs)
            check_contents(state)
        except (FileNotFoundError, MemoryError):
            raise
        except Exception as error:
            reason = (str(error).splitlines() or [""])[0]
            raise UserError(
                f"cannot read checkpoint {path} ({type(error).__name__}: {reason[:200]}): it is truncated or damaged, "
                "or no checkpoint of fairseq. Take another one, such as checkpoint_best.pt or an earlier epoch's"
            ) from error
        return state

    module.load_checkpoint_to_cpu = load_named_checkpoint_to_cpu


def check_sums(path):
    """Compare a checkpoint's parts with the checksums in it; checkpoints of PyTorch before 1.6 have none.

    Raises:
        zipfile.BadZipFile: they differ.
    """
    import zipfile

    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            changed = archive.testzip()
        if changed is not None:
            raise zipfile.BadZipFile(f"{changed} is not what was written")


def check_contents(state):
    """Whether what a file holds is a checkpoint of fairseq.

    Raises:
        TypeError: it is not.
    """
    import argparse

    import torch
    from omegaconf import DictConfig

    if not isinstance(state, dict):
        raise TypeError(f"it holds a {type(state).__name__}, not a dictionary")
    weights = state.get("model")
    tensors = list(weights.values()) if isinstance(weights, dict) else [None]
    if not all(isinstance(value, torch.Tensor) and not value.is_complex() for value in tensors):
        raise TypeError("its 'model' is not a dictionary of real tensors")
    cfg = state.get("cfg")
    if isinstance(cfg, DictConfig):
        if not all(isinstance(cfg.get(part), (DictConfig, argparse.Namespace)) for part in ("model", "task")):
            raise TypeError("its 'cfg' does not describe a model and a task")
    elif cfg is not None or not isinstance(state.get("args"), argparse.Namespace):
        raise TypeError("neither its 'cfg' nor its 'args' are options of fairseq")
    history = state.get("optimizer_history")
    if not isinstance(history, list) or not all(isinstance(entry, dict) for entry in history):
        raise TypeError("its 'optimizer_history' is not a list of dictionaries")


def write_whole_checkpoints(module):
    """Say that a checkpoint could not be written, such as onto a full disk, and leave nothing of it behind.

    Why: fairseq writes to a name that ends in ``.tmp``, and tries three times into the same open file; where the first
    attempt fails halfway and the second does not, what is renamed to a checkpoint cannot be read.
    Mends: ``fairseq/checkpoint_utils.py::torch_persistent_save``, ``_torch_persistent_save``. Needed: always.
    """
    import os

    save = module.torch_persistent_save

    @functools.wraps(save)
    def save_or_say_why(obj, filename, *args, **kwargs):
        try:
            save(obj, filename, *args, **kwargs)
        except (OSError, RuntimeError) as error:
            with contextlib.suppress(OSError):
                os.remove(f"{filename}.tmp")
            raise unwritten_checkpoint(filename, error) from error

    def save_once(obj, file):
        module.torch.save(obj, file)

    module.torch_persistent_save, module._torch_persistent_save = save_or_say_why, save_once


def unwritten_checkpoint(path, error):
    """The error that a user sees where a checkpoint could not be written."""
    import os
    import shutil

    reason = getattr(error, "strerror", None) or (str(error).splitlines() or [type(error).__name__])[0]
    free = shutil.disk_usage(os.path.dirname(path) or ".").free // 2**20
    return UserError(
        f"cannot write checkpoint {path} ({reason}; {free} MiB are free there). Those written before are whole: make "
        "room and give the same command again"
    )


def name_misfit_checkpoint(module):
    """Say that a checkpoint belongs to another model or dictionary instead of listing every weight.

    Mends: ``fairseq/models/fairseq_model.py::BaseFairseqModel.load_state_dict``. Needed: always.
    """
    load_state_dict = module.BaseFairseqModel.load_state_dict

    @functools.wraps(load_state_dict)
    def load_fitting_state_dict(self, *args, **kwargs):
        try:
            return load_state_dict(self, *args, **kwargs)
        except RuntimeError as error:
            reason = (str(error).splitlines()[1:] or [str(error)])[0].strip()
            raise UserError(
                f"the checkpoint does not fit this {type(self).__name__}, to begin with: {reason[:200]} ... "
                "Use the data folder and the model options that it was trained with"
            ) from error

    module.BaseFairseqModel.load_state_dict = load_fitting_state_dict


def keep_user_errors(module):
    """Let the message above through where training restores a checkpoint.

    Why: the trainer replaces whatever goes wrong by an exception of its own.
    Mends: ``fairseq/trainer.py::Trainer.load_checkpoint``. Needed: always.
    """
    load_checkpoint = module.Trainer.load_checkpoint

    @functools.wraps(load_checkpoint)
    def load_checkpoint_or_say_why(self, filename, *args, **kwargs):
        try:
            return load_checkpoint(self, filename, *args, **kwargs)
        except Exception as error:
            if isinstance(error.__context__, UserError):
                raise UserError(f"{filename}: {error.__context__}") from None
            raise

    module.Trainer.load_checkpoint = load_checkpoint_or_say_why


def leave_no_crash_of_a_refusal(module):
    """Leave no ``crash.pt`` where training is refused for a cause that the user can mend.

    Mends: ``fairseq/trainer.py::Trainer.save_checkpoint``, as called by ``train_step`` after any error. Needed: always.
    """
    import os

    save_checkpoint = module.Trainer.save_checkpoint

    @functools.wraps(save_checkpoint)
    def save_checkpoint_unless_refused(self, filename, *args, **kwargs):
        if os.path.basename(filename) != "crash.pt" or not isinstance(sys.exc_info()[1], UserError):
            save_checkpoint(self, filename, *args, **kwargs)

    module.Trainer.save_checkpoint = save_checkpoint_unless_refused


def name_batch_in_trouble(module):
    """Name the sentences of the batch whose gradients are not finite, and the size of one that is too large.

    Mends: ``fairseq/trainer.py::Trainer``, which says neither. Needed: always.
    """
    trainer = module.Trainer
    train_step, prepare_sample, log_oom = trainer.train_step, trainer._prepare_sample, trainer._log_oom

    @functools.wraps(train_step)
    def train_step_on_named_batch(self, samples, *args, **kwargs):
        try:
            return train_step(self, samples, *args, **kwargs)
        except FloatingPointError as error:
            numbers = ", ".join(str(number) for sample in samples if sample for number in sample["id"].tolist())
            raise UserError(
                f"update {self.get_num_updates() + 1}: {error}. Its batch is the training sentences {numbers} (from 0, "
                "in the order of the training set). If they are sound, lower --lr, or set --clip-norm"
            ) from error

    @functools.wraps(prepare_sample)
    def prepare_and_remember_sample(self, sample, *args, **kwargs):
        self._sample_at_hand = sample
        return prepare_sample(self, sample, *args, **kwargs)

    @functools.wraps(log_oom)
    def log_oom_and_batch(self, error):
        log_oom(self, error)
        if sample := self._sample_at_hand:
            rows, length = sample["net_input"]["src_tokens"].shape
            module.logger.warning(
                f"the batch has {rows} sentences of {length} source tokens at most and {sample['ntokens']} target "
                "tokens in all: if this happens often, lower --max-tokens"
            )

    trainer.train_step = train_step_on_named_batch
    trainer._prepare_sample, trainer._log_oom = prepare_and_remember_sample, log_oom_and_batch


def name_invalid_size(module):
    """Say which sentence is too long in one line.

    Mends: ``fairseq/tasks/fairseq_task.py::FairseqTask.filter_indices_by_size``. Needed: always.
    """
    filter_indices_by_size = module.FairseqTask.filter_indices_by_size

    @functools.wraps(filter_indices_by_size)
    def filter_indices_by_named_size(self, *args, **kwargs):
        try:
            return filter_indices_by_size(self, *args, **kwargs)
        except Exception as error:
            if "is invalid" not in str(error):
                raise
            raise UserError(f"{error}, or raise --max-source-positions and --max-target-positions") from error

    module.FairseqTask.filter_indices_by_size = filter_indices_by_named_size


def print_user_errors_in_one_line():
    """End a command with one line, not a traceback, when the user can mend the cause.

    Mends: the commands of ``fairseq_cli``, which let every exception through. Needed: always.
    """
    excepthook = sys.excepthook

    def hook(kind, error, traceback):
        if issubclass(kind, UserError):
            print(f"{sys.argv[0].rpartition('/')[2]}: error: {error}", file=sys.stderr)
        else:
            excepthook(kind, error, traceback)

    sys.excepthook = hook


def silence_deprecations():
    """Keep quiet about calls that fairseq makes in a way hydra and torch now discourage, and about a package that its
    speech tasks would like.

    Why: nobody will change these calls, every command repeats some twenty lines about them, and they bury the
    messages that matter.
    Mends: ``fairseq/dataclass/utils.py``, ``fairseq_cli/hydra_train.py``, ``fairseq/tasks/fairseq_task.py``,
    ``fairseq/tasks/text_to_speech.py``. Needed: with hydra-core from 1.1, torch from 2.4.
    """
    import logging
    import warnings

    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", category=UserWarning, module="hydra")
    warnings.filterwarnings("ignore", category=UserWarning, message=r"\s*'config' is validated against ConfigStore")
    warnings.filterwarnings("ignore", category=UserWarning, message=r"\s*The version_base parameter is not specified")
    warnings.filterwarnings("ignore", category=UserWarning, message="'pin_memory' argument is set as true but no acc")
    warnings.filterwarnings("ignore", category=UserWarning, message="Support for mismatched key_padding_mask")
    warnings.filterwarnings("ignore", category=FutureWarning, module="fairseq")


# ---------------------------------------------------------------- the command lwc-fairseq


def run_lwc_fairseq():
    """The command ``lwc-fairseq``. It stands here since the package, its doctor included, needs fairseq to import."""
    try:
        from lwc_fairseq.cli import main
    except ModuleNotFoundError as error:
        mend = "" if error.name == "fairseq" else "; install what the package needs with: pip install ."
        sys.exit(f"lwc-fairseq: error: {error}{mend}")
    main()


GENERAL_PATCHES = (
    make_dataclass_defaults_hashable,
    trust_checkpoint_classes,
    print_user_errors_in_one_line,
    silence_deprecations,
)
PATCHES = {
    "fairseq.checkpoint_utils": (name_unreadable_checkpoint, write_whole_checkpoints),
    "fairseq.data.data_utils": (name_missing_pair,),
    "fairseq.data.dictionary": (name_missing_dictionary,),
    "fairseq.data.fairseq_dataset": (translate_long_lines_alone,),
    "fairseq.data.iterators": (
        stop_reading_ahead_at_exit,
        keep_data_workers_when_terminated,
        resume_with_other_number_of_processes,
        name_missing_shard,
    ),
    "fairseq.distributed.utils": (
        broadcast_configurations,
        run_bf16_on_gpus,
        refuse_backends_of_fairscale,
        count_devices_before_starting,
        connect_cpus,
        terminate_spawned_processes,
    ),
    "fairseq.file_chunker_utils": (read_lines_as_they_are,),
    "fairseq.file_io": (copy_whole_files,),
    "fairseq.models.distributed_fairseq_model": (wrap_models_on_cpus,),
    "fairseq.models.fairseq_model": (name_misfit_checkpoint,),
    "fairseq.modules.transformer_layer": (drop_fused_kernel,),
    "fairseq.ngram_repeat_block": (block_repeated_ngrams,),
    "fairseq.options": (generate_one_shard, read_input_as_it_is),
    "fairseq.tasks.fairseq_task": (name_invalid_size,),
    "fairseq.tasks.translation": (name_missing_split, refuse_scores_of_a_language_model, count_primary_data_once),
    "fairseq.trainer": (keep_user_errors, leave_no_crash_of_a_refusal, name_batch_in_trouble, save_when_terminated),
    "fairseq.utils": (
        import_plugins_by_name,
        check_precision_of_every_command,
        replace_unknown_words,
        copy_unknown_words,
        print_soft_alignments,
    ),
}
