"""BLEU in training (``--eval-bleu``): its options, and patches of how fairseq computes it."""

import functools
import json
from argparse import Namespace
from dataclasses import fields
from traceback import walk_tb

import numpy as np

from .errors import UserError
from .hooks import mends
from .search_options import check_names


def check_bleu(options):
    """Check the options of ``--eval-bleu`` other than the values of ``--eval-bleu-args``.

    Args:
        options: the values of the options by name.

    Raises:
        UserError: an option is malformed, or names what does not exist.
    """
    from fairseq.data.data_utils import post_process

    try:
        post_process("", options.get("eval_bleu_remove_bpe"))
    except NotImplementedError as error:
        raise UserError(
            f"--eval-bleu-remove-bpe {options['eval_bleu_remove_bpe']}: there is no such kind of sub-words; for "
            "subword-nmt give the option without a value, for sentencepiece give sentencepiece"
        ) from error
    check_detokenizer(options.get("eval_bleu_detok"), read_json(options, "eval_bleu_detok_args", {"target_lang": "de"}))


def check_detokenizer(name, settings):
    """Raises UserError if the tokenizer of ``--eval-bleu-detok`` does not exist or cannot be built."""
    from fairseq.data.encoders import TOKENIZER_REGISTRY, build_tokenizer
    from fairseq.registry import REGISTRIES

    if name is None:
        return
    if name not in TOKENIZER_REGISTRY:
        raise UserError(f"--eval-bleu-detok {name}: no such tokenizer; give {', '.join(sorted(TOKENIZER_REGISTRY))}")
    config = REGISTRIES["tokenizer"]["dataclass_registry"].get(name)
    if config is not None:
        check_names("--eval-bleu-detok-args", settings, [field.name for field in fields(config)])
    try:
        build_tokenizer(Namespace(tokenizer=name, **settings))
    except ImportError as error:
        raise UserError(f"--eval-bleu-detok {name}: {' '.join(str(error).split())}") from error


def read_json(options, name, example):
    """Return an option that is written as an object of JSON.

    Raises:
        UserError: it cannot be read.
    """
    text = options.get(name, "{}")
    try:
        values = json.loads(text)
    except (TypeError, ValueError):
        values = None
    if not isinstance(values, dict):
        raise UserError(f"--{name.replace('_', '-')} {text}: give JSON, such as '{json.dumps(example)}'")
    return values


@mends("fairseq.tasks.translation", "TranslationTask.build_model")
def name_refused_search(build_model):
    """Say in one line why fairseq cannot search with ``--eval-bleu-args``.

    Why: fairseq ends with a traceback. Needed: always.
    """

    @functools.wraps(build_model)
    def build_model_and_search(self, *args, **kwargs):
        try:
            return build_model(self, *args, **kwargs)
        except (AssertionError, ValueError) as error:
            is_of_search = any(frame.f_code.co_name == "build_generator" for frame, _ in walk_tb(error.__traceback__))
            if not is_of_search or not str(error) or isinstance(error, UserError):
                raise
            raise UserError(f"--eval-bleu-args {self.cfg.eval_bleu_args}: {error}") from error

    return build_model_and_search


@mends("fairseq.tasks.translation", "TranslationTask.reduce_metrics")
def count_empty_translations(reduce_metrics):
    """Let batches whose translations are all empty count in BLEU, which is 0 if there are no others.

    Why: fairseq leaves them out. Without other batches there is no BLEU, and the training that chooses its best
    checkpoint by it ends; otherwise BLEU is too high, because their references do not count. Needed: always.
    """
    from fairseq import metrics
    from sacrebleu.metrics import BLEU

    def compute(meters):
        counts = {"correct": meters["_bleu_counts"].sum, "total": meters["_bleu_totals"].sum}
        lengths = {"sys_len": int(meters["_bleu_sys_len"].sum), "ref_len": int(meters["_bleu_ref_len"].sum)}
        return round(BLEU.compute_bleu(**counts, **lengths, smooth_method="exp").score, 2)

    @functools.wraps(reduce_metrics)
    def reduce_all_metrics(self, logging_outputs, criterion):
        reduce_metrics(self, logging_outputs, criterion)
        logs = [log for log in logging_outputs if "_bleu_sys_len" in log]
        if logs and not sum(log["_bleu_totals_0"] for log in logs):
            metrics.log_scalar("_bleu_counts", np.zeros(4, dtype=np.int64))
            metrics.log_scalar("_bleu_totals", np.zeros(4, dtype=np.int64))
            metrics.log_scalar("_bleu_sys_len", 0)
            metrics.log_scalar("_bleu_ref_len", sum(log["_bleu_ref_len"] for log in logs))
            metrics.log_derived("bleu", compute)

    return reduce_all_metrics
