"""The search: options of ``fairseq-generate`` and ``fairseq-interactive`` that fail or do nothing in fairseq 0.12.2."""

import logging
import math
import sys
import textwrap

import torch

from .errors import UserError
from .hooks import replaces

logger = logging.getLogger("fairseq.sequence_generator")

NO_TRANSLATION = "the model's scores are not numbers (NaN): take an earlier checkpoint"
NOTHING_ALLOWED = "prefix_allowed_tokens_fn allows no translation of a sentence: let it allow the end symbol at last"


@replaces("fairseq.ngram_repeat_block", "NGramRepeatBlock._no_repeat_ngram")
def block_repeated_ngrams(block, self, tokens, lprobs, bsz, beam_size, step):
    """Let ``--no-repeat-ngram-size`` block repeated n-grams.

    Why: without fairseq's CUDA extension, fairseq looks for the last tokens of a hypothesis at the end of a row that is
    padded to the maximum length. It finds padding there and blocks nothing. A size of 1 never works. Where
    ``--prefix-size`` prescribes a word, it must not be blocked. Needed: always.
    """
    possible = lprobs.clone()
    if self.no_repeat_ngram_size == 1:
        lprobs.scatter_(1, tokens[:, 1 : step + 1], -math.inf)
    else:
        lprobs = block(self, tokens[:, : step + 1], lprobs, bsz, beam_size, step)
    is_stuck = lprobs.eq(-math.inf).all(1, keepdim=True)
    return torch.where(is_stuck, possible, lprobs)


@replaces("fairseq.utils", "replace_unk")
def replace_unknown_words(replace_unk, hypo_str, src_str, alignment, align_dict, unk):
    """Let ``--replace-unk`` find the source word that an unknown word is aligned to.

    Why: the function expects one source position for each target token. fairseq passes pairs of source and target
    (``--print-alignment hard``), rows of weights (``soft``), or nothing. Needed: always.
    """

    def position(link):
        if isinstance(link, tuple):
            return link[0]
        words = range(len(link) - 1)  # without the end symbol
        return max(words, key=lambda i: float(link[i]), default=0)

    if not len(alignment) and unk in hypo_str.split():
        raise UserError("--replace-unk needs an alignment: add --print-alignment hard")
    return replace_unk(hypo_str, src_str, [position(link) for link in alignment], align_dict, unk)


@replaces("fairseq.utils", "load_align_dict")
def copy_unknown_words(load_align_dict, replace_unk):
    """Let a bare ``--replace-unk`` copy the source word.

    Why: without a value, the option is ``"@@ "``, which fairseq opens as a file. For an empty string, fairseq copies
    the source word. Needed: always.
    """
    return load_align_dict("" if replace_unk == "@@ " else replace_unk)


@replaces("fairseq.utils", "post_process_prediction")
def print_soft_alignments(post_process_prediction, *args, **kwargs):
    """Let ``fairseq-interactive --print-alignment soft`` print what ``fairseq-generate`` prints.

    Why: the command takes each row of weights for a pair of positions and fails. The patch makes each row a pair of
    its weights and a mark, and removes the mark from the printed line. Mends also: the command's ``print``.
    Needed: always.
    """
    mark = "\0"
    tokens, text, alignment = post_process_prediction(*args, **kwargs)
    command = sys._getframe(2).f_globals  # frame 1 is `replacement` in hooks.py
    if "buffered_read" in command and isinstance(alignment, list) and alignment and isinstance(alignment[0], list):
        command["print"] = lambda line, **settings: print(line.replace(f"-{mark}", ""), **settings)
        alignment = [(",".join(row), mark) for row in alignment]
    return tokens, text, alignment


@replaces("fairseq.sequence_generator", "SequenceGenerator._generate")
def end_every_search(generate, self, sample, prefix_tokens=None, constraints=None, bos_token=None):
    """Give each sentence a translation, or say in one line why there is none.

    A sentence whose constraints cannot be met is translated without them, with a warning.
    Why: fairseq ends with an assertion if a hypothesis may not end in the last step, and if a source is so short that
    ``--max-len-a`` allows less than ``--min-len``. ``fairseq-generate`` gives no constraints. Needed: always.
    """
    from fairseq.sequence_generator import SequenceGeneratorWithAlignment

    if constraints is None and self.search.supports_constraints:
        raise UserError(
            "--constraints: there are none, because a test set has none: leave it out, or use fairseq-interactive, "
            "which reads a sentence's constraints after it, each after a tab"
        )
    unknown = f"so the translation will contain {self.tgt_dict.unk_string()} instead"
    for row in () if constraints is None else constraints:
        if row[1:].eq(self.unk).any():
            warn_of_constraints(row, self.tgt_dict, f"have words that the target vocabulary lacks, {unknown}")
    min_len = self.min_len
    self.min_len = possible_min_len(self, sample["net_input"])
    self.search.stop_on_max_len = True
    try:
        hypotheses = generate(self, sample, prefix_tokens, constraints, bos_token)
        without = [i for i, row in enumerate(hypotheses) if not row]
        if without and constraints is not None:
            for i in without:
                reason = "cannot be met in a translation as long as --max-len-a and --max-len-b allow"
                warn_of_constraints(constraints[i], self.tgt_dict, f"{reason}: the sentence is translated without them")
            constraints = constraints.index_fill(0, torch.tensor(without, device=constraints.device), 0)
            again = generate(self, sample, prefix_tokens, constraints, bos_token)
            hypotheses = [row or again[i] for i, row in enumerate(hypotheses)]
    finally:
        self.min_len = min_len
    if not all(hypotheses):
        raise UserError(NOTHING_ALLOWED if hasattr(self.search, "prefix_allowed_tokens_fn") else NO_TRANSLATION)
    if isinstance(self, SequenceGeneratorWithAlignment):  # which expects as many hypotheses as the beam is wide
        return [row + [{**row[-1], "is_copy": True}] * (self.beam_size - len(row)) for row in hypotheses]
    return hypotheses


def warn_of_constraints(constraints, dictionary, problem):
    """Warn of a problem of a sentence's packed constraints."""
    from fairseq.token_generation_constraints import unpack_constraints

    words = textwrap.shorten(" | ".join(map(dictionary.string, unpack_constraints(constraints))), 80)
    logger.warning(f"the constraints {words} {problem}")


@replaces("fairseq.sequence_generator", "EnsembleModel.max_decoder_positions")
def count_positions_in_whole_numbers(max_decoder_positions, self):
    """Let ``--max-len-a`` be large for models without a limit.

    Why: fairseq gives a million as 1e6, which is no length of a tensor. Needed: always.
    """
    return int(max_decoder_positions(self))


def possible_min_len(generator, net_input):
    """Return the ``--min-len`` of a generator, or the number of words that the longest source of a batch allows, if
    that is less. In that case, warn, unless the sources are empty."""
    source = net_input.get("src_tokens")
    if source is None or not (generator.max_len_a or generator.match_source_len):
        return generator.min_len
    if generator.match_source_len:
        longest = int((source.ne(generator.eos) & source.ne(generator.pad)).sum(1).max())
    else:
        longest = int(generator.max_len_a * source.size(1) + generator.max_len_b)
    if longest < generator.min_len and source.size(1) > 1:
        logger.warning(
            f"--min-len {generator.min_len}: sources of {source.size(1)} tokens may have translations of only {longest}"
        )
    return min(longest, generator.min_len)


@replaces("fairseq.search", "Sampling.step")
def sample_from_extreme_scores(step, self, number, lprobs, scores, *args, **kwargs):
    """Let ``--sampling`` draw words where the probabilities are far from a sum of 1.

    Why: in fairseq, the probabilities overflow if ``--unkpen`` favours unknown words very much, and all become 0 if
    ``--prefix-size`` prescribes a very improbable word. Needed: always.
    """
    sums = lprobs.logsumexp(2)
    if sums.abs().max() < 50:
        return step(self, number, lprobs, scores, *args, **kwargs)
    drawn, types, beams = step(self, number, lprobs - sums[:, :, None], scores, *args, **kwargs)
    return drawn + sums.gather(1, beams), types, beams


@replaces("fairseq.sequence_scorer", "SequenceScorer.generate")
def name_missing_alignment(generate, self, models, sample, **kwargs):
    """Say that a model gives no alignments of references.

    Why: fairseq fails with a traceback when it prints them. Needed: always.
    """
    hypotheses = generate(self, models, sample, **kwargs)
    if self.compute_alignment and any(best["alignment"] is None for best, *_ in hypotheses):
        raise UserError("--print-alignment: this model gives no alignments with --score-reference: leave one out")
    return hypotheses


@replaces("fairseq.sequence_generator", "SequenceGeneratorWithAlignment.generate")
def align_fast_models(generate, self, models, sample, **kwargs):
    """Let models return attention for ``--print-alignment`` even after ``make_generation_fast_()``.

    Why: fairseq decides about attention when a model is made fast, and then fails with a traceback. This patch also
    removes the copies that :func:`end_every_search` adds. Needed: always.
    """
    quiet = [module for module in self.model.modules() if getattr(module, "need_attn", True) is False]
    for module in quiet:
        module.need_attn = True
    try:
        hypotheses = generate(self, models, sample, **kwargs)
    finally:
        for module in quiet:
            module.need_attn = False
    return [[hypothesis for hypothesis in row if "is_copy" not in hypothesis] for row in hypotheses]
