"""Scores of translations: those of ``fairseq-generate``, ``fairseq-score``, and BLEU in training (``--eval-bleu``)."""

import functools
import json
import sys
from argparse import Namespace
from dataclasses import fields

import numpy as np

from .errors import UserError, flag
from .hooks import mends, replaces
from .search_options import check_names

UNKNOWN_IN_REFERENCE, UNKNOWN_IN_TRANSLATION = "\ue000", "\ue001"
"""Two private-use characters. No text has them, no tokenizer splits them off, and they do not match each other."""


@replaces("fairseq.scoring", "build_scorer")
def count_unknown_words_once(build_scorer, choice, tgt_dict):
    """Count an unknown word in a reference or a translation as one word, of one letter, that is always wrong.

    Why: it reaches the scorers of text as ``<<unk>>`` or ``<unk>``, which sacrebleu splits into several tokens, and
    whose letters count in chrF. Needed: always.
    """
    try:
        scorer = build_scorer(choice, tgt_dict)
    except (ImportError, RuntimeError, OSError) as error:  # a package or a file of the scorer is missing
        reason = " ".join(str(error).split())
        raise UserError(f"--scoring {getattr(choice, '_name', choice)}: {reason}") from error
    if not hasattr(scorer, "add_string"):
        return scorer
    add_string = scorer.add_string
    unknown, unknown_in_reference = tgt_dict.unk_string(), tgt_dict.unk_string(escape=True)

    def add_string_of_words(ref, pred):
        add_string(
            ref.replace(unknown_in_reference, UNKNOWN_IN_REFERENCE), pred.replace(unknown, UNKNOWN_IN_TRANSLATION)
        )

    scorer.add_string = add_string_of_words
    return scorer


@mends("fairseq.scoring.bleu", "Scorer")
def count_empty_sentences(original):
    """Let ``fairseq-score --sentence-bleu`` score, check the input of ``fairseq-score``, and count sentences without
    words, which score 0.

    Why: the command gives the indices of padding, end and unknown word one by one, and the scorer takes a
    configuration. The C++ code looks for the last word before the beginning of an empty sentence, and may never end;
    fairseq divides by the number of words. Needed: always.
    """
    from fairseq.scoring.bleu import BleuConfig

    class Scorer(original):
        def __init__(self, cfg, *indices):
            caller = sys._getframe(1).f_locals
            if is_score_command(caller):
                files = caller["fdsys"], caller["fdref"]
                lines = [file.readlines() for file in files]
                check_score_command(caller["args"], *lines)
                for file, read in zip(files, lines, strict=True):
                    file.readlines = lambda read=read: read
            super().__init__(BleuConfig(cfg, *indices) if indices else cfg)

        def add(self, ref, pred):
            words, expected = (int((tokens.ne(self.pad) & tokens.ne(self.eos)).sum()) for tokens in (pred, ref))
            if words and expected:
                return super().add(ref, pred)
            self.stat.reflen += expected
            self.stat.predlen += words
            for n in range(1, 5):
                count = f"count{n}"
                setattr(self.stat, count, getattr(self.stat, count) + max(0, words - n + 1))

        def result_string(self, order=4):
            if self.stat.predlen and self.stat.reflen:
                return super().result_string(order)
            return f"BLEU{order} = 0.00 (syslen={self.stat.predlen}, reflen={self.stat.reflen})"

    return Scorer


@replaces("fairseq.scoring.meteor", "MeteorScorer.add_string")
def give_words_to_meteor(add_string, self, ref, pred):
    """Let ``--scoring meteor`` score.

    Why: it gives lines to nltk, which wants lists of words. Needed: from nltk 3.6.6.
    """
    add_string(self, ref.split(), pred.split())


@mends("fairseq.scoring.bleu")
def score_open_files(module):
    """Let ``fairseq-score --sacrebleu`` score.

    Why: the command gives open files to ``sacrebleu.corpus_bleu``, which takes lists of lines since sacrebleu 2.0. The
    command also ignores ``--ignore-case`` here. ``fairseq_cli/score.py`` is being imported when this package starts, so
    only what it calls can be replaced. Mends: ``sacrebleu.corpus_bleu``. Needed: from sacrebleu 2.0.
    """
    import sacrebleu

    corpus_bleu = sacrebleu.corpus_bleu

    @functools.wraps(corpus_bleu)
    def corpus_bleu_of_lines(hypotheses, references, *args, **kwargs):
        hypotheses, references = list(hypotheses), [list(lines) for lines in references]
        caller = sys._getframe(1).f_locals
        if is_score_command(caller):
            check_score_command(caller["args"], hypotheses, references[0])
            kwargs["lowercase"] = caller["args"].ignore_case
            hypotheses = [line.replace("<unk>", UNKNOWN_IN_TRANSLATION) for line in hypotheses]
            references = [[line.replace("<<unk>>", UNKNOWN_IN_REFERENCE) for line in lines] for lines in references]
        return corpus_bleu(hypotheses, references, *args, **kwargs)

    sacrebleu.corpus_bleu = corpus_bleu_of_lines


def is_score_command(variables):
    """Return whether the variables of a function are those of ``fairseq-score``."""
    return {"args", "fdsys", "fdref"} <= set(variables) and hasattr(variables["args"], "sentence_bleu")


def check_score_command(args, translations, references):
    """Raises UserError if ``fairseq-score`` cannot compare the lines, or an option has no effect or is impossible."""
    if len(translations) != len(references):
        raise UserError(
            f"--sys {args.sys} has {len(translations)} and --ref {args.ref} has {len(references)} lines: each line "
            "needs its reference"
        )
    if not 1 <= args.order <= 4:
        raise UserError(f"--order {args.order}: must be from 1 to 4")
    if args.sacrebleu and args.order != 4:
        raise UserError(f"--order {args.order} has no effect with --sacrebleu: leave one out")
    if args.sacrebleu and args.sentence_bleu:
        raise UserError("--sentence-bleu has no effect with --sacrebleu: leave one out")


def check_bleu(options):
    """Raises UserError if an option of ``--eval-bleu`` is malformed or names what does not exist.

    The options are given by name. The values of ``--eval-bleu-args`` are not checked here.
    """
    from fairseq.data.data_utils import post_process
    from fairseq.data.encoders import TOKENIZER_REGISTRY, build_tokenizer
    from fairseq.registry import REGISTRIES

    try:
        post_process("", options.get("eval_bleu_remove_bpe"))
    except NotImplementedError as error:
        raise UserError(
            f"--eval-bleu-remove-bpe {options['eval_bleu_remove_bpe']}: there is no such kind of sub-words; for "
            "subword-nmt give the option without a value, for sentencepiece give sentencepiece"
        ) from error
    settings = read_json(options, "eval_bleu_detok_args", {"target_lang": "de"})
    name = options.get("eval_bleu_detok")
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
    """Return an option that is written as an object of JSON. Raises UserError if it cannot be read."""
    text = options.get(name, "{}")
    try:
        values = json.loads(text)
    except (TypeError, ValueError):
        values = None
    if not isinstance(values, dict):
        raise UserError(f"{flag(name)} {text}: give JSON, such as '{json.dumps(example)}'")
    return values


@replaces("fairseq.tasks.translation", "TranslationTask.reduce_metrics")
def count_empty_translations(reduce_metrics, self, logging_outputs, criterion):
    """Let BLEU count batches whose translations are all empty. If there are no other batches, BLEU is 0.

    Why: fairseq leaves such batches out. BLEU is then too high, because their references do not count. If there are no
    other batches, there is no BLEU, and a training that chooses its best checkpoint by BLEU ends. Needed: always.
    """
    from fairseq import metrics
    from sacrebleu.metrics import BLEU

    def compute(meters):
        counts = {"correct": meters["_bleu_counts"].sum, "total": meters["_bleu_totals"].sum}
        lengths = {"sys_len": int(meters["_bleu_sys_len"].sum), "ref_len": int(meters["_bleu_ref_len"].sum)}
        return round(BLEU.compute_bleu(**counts, **lengths, smooth_method="exp").score, 2)

    reduce_metrics(self, logging_outputs, criterion)
    logs = [log for log in logging_outputs if "_bleu_sys_len" in log]
    if logs and not sum(log["_bleu_totals_0"] for log in logs):
        metrics.log_scalar("_bleu_counts", np.zeros(4, dtype=np.int64))
        metrics.log_scalar("_bleu_totals", np.zeros(4, dtype=np.int64))
        metrics.log_scalar("_bleu_sys_len", 0)
        metrics.log_scalar("_bleu_ref_len", sum(log["_bleu_ref_len"] for log in logs))
        metrics.log_derived("bleu", compute)
