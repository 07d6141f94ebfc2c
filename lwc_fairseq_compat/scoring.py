"""The command ``fairseq-score``."""

import functools

from .hooks import mends


@mends("fairseq.scoring.bleu", "Scorer.__init__")
def score_single_sentences(init):
    """Let ``fairseq-score --sentence-bleu`` score.

    Why: the command gives the indices of padding, end and unknown word one by one, and the scorer takes a
    configuration. Needed: always.
    """
    from fairseq.scoring.bleu import BleuConfig

    @functools.wraps(init)
    def init_with_configuration(self, cfg, *indices):
        init(self, BleuConfig(cfg, *indices) if indices else cfg)

    return init_with_configuration


@mends("fairseq.scoring.bleu")
def score_open_files(module):
    """Let ``fairseq-score --sacrebleu`` score.

    Why: the command gives open files to ``sacrebleu.corpus_bleu``, which takes lists of lines since sacrebleu 2.0.
    ``fairseq_cli/score.py`` is being imported when this package starts, so only what it calls can be replaced.
    Mends: ``sacrebleu.corpus_bleu``. Needed: from sacrebleu 2.0.
    """
    import sacrebleu

    corpus_bleu = sacrebleu.corpus_bleu

    @functools.wraps(corpus_bleu)
    def corpus_bleu_of_lines(hypotheses, references, *args, **kwargs):
        return corpus_bleu(list(hypotheses), [list(lines) for lines in references], *args, **kwargs)

    sacrebleu.corpus_bleu = corpus_bleu_of_lines


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
