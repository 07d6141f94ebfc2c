"""The scores of ``fairseq-generate`` and the command ``fairseq-score``."""

import functools
import sys

from .errors import UserError
from .hooks import mends

UNKNOWN_IN_REFERENCE, UNKNOWN_IN_TRANSLATION = "\ue000", "\ue001"
"""Characters without a meaning, which no text has, no tokenizer splits off, and which do not match each other."""


@mends("fairseq.scoring", "build_scorer")
def count_unknown_words_once(build_scorer):
    """Count an unknown word in a reference or a translation as one word, of one letter, that is always wrong.

    Why: it reaches the scorers of text as ``<<unk>>`` or ``<unk>``, which sacrebleu splits into several tokens, and
    whose letters count in chrF. Needed: always.
    """

    @functools.wraps(build_scorer)
    def build_scorer_of_words(choice, tgt_dict):
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

    return build_scorer_of_words


@mends("fairseq.scoring.bleu", "Scorer.__init__")
def score_single_sentences(init):
    """Let ``fairseq-score --sentence-bleu`` score, and check the input of ``fairseq-score``.

    Why: the command gives the indices of padding, end and unknown word one by one, and the scorer takes a
    configuration. Needed: always.
    """
    from fairseq.scoring.bleu import BleuConfig

    @functools.wraps(init)
    def init_with_configuration(self, cfg, *indices):
        caller = sys._getframe(1).f_locals
        if is_score_command(caller):
            files = caller["fdsys"], caller["fdref"]
            lines = [file.readlines() for file in files]
            check_score_command(caller["args"], *lines)
            for file, read in zip(files, lines, strict=True):
                file.readlines = lambda read=read: read
        init(self, BleuConfig(cfg, *indices) if indices else cfg)

    return init_with_configuration


@mends("fairseq.scoring.bleu")
def score_open_files(module):
    """Let ``fairseq-score --sacrebleu`` score.

    Why: the command gives open files to ``sacrebleu.corpus_bleu``, which takes lists of lines since sacrebleu 2.0. It
    ignores ``--ignore-case`` here. ``fairseq_cli/score.py`` is being imported when this package starts, so only what it
    calls can be replaced. Mends: ``sacrebleu.corpus_bleu``. Needed: from sacrebleu 2.0.
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
    return {"args", "fdsys", "fdref"} <= variables.keys() and hasattr(variables["args"], "sentence_bleu")


def check_score_command(args, translations, references):
    """Check the options of ``fairseq-score`` and the lines that it compares.

    Raises:
        UserError: the numbers of lines differ, or an option has no effect or an impossible value.
    """
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


@mends("fairseq.scoring.bleu", "Scorer.add")
def count_empty_sentences(add):
    """Count a sentence without words here.

    Why: the C++ code looks for the last word before the beginning of the sentence, and may never end.
    Needed: always.
    """

    @functools.wraps(add)
    def add_sentence(self, ref, pred):
        words, expected = (int((tokens.ne(self.pad) & tokens.ne(self.eos)).sum()) for tokens in (pred, ref))
        if words and expected:
            return add(self, ref, pred)
        self.stat.reflen += expected
        self.stat.predlen += words
        for n in range(1, 5):
            count = f"count{n}"
            setattr(self.stat, count, getattr(self.stat, count) + max(0, words - n + 1))

    return add_sentence


@mends("fairseq.scoring.bleu", "Scorer.result_string")
def score_empty_sentences(result_string):
    """Give 0 to an empty translation, and to one of an empty reference.

    Why: fairseq divides by the number of words. Needed: always.
    """

    @functools.wraps(result_string)
    def result_string_of_words(self, order=4):
        if self.stat.predlen and self.stat.reflen:
            return result_string(self, order)
        return f"BLEU{order} = 0.00 (syslen={self.stat.predlen}, reflen={self.stat.reflen})"

    return result_string_of_words
