"""Properties of every encoder-decoder model. The tests of each model call these functions."""

from collections.abc import Callable

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from conftest import EOS, PAD, make_dictionary


def steps_equal_the_full_pass(model, src: torch.Tensor, steps: int, check: Callable) -> None:
    """Check that each decoding step gives the logits of teacher forcing.

    Beams of three are reordered and finished sentences are removed, as in a search.

    Args:
        check: further assertions on a step, given its logits, its extra output, that of the full pass, and the source
            of each hypothesis.
    """
    beam = 3
    generator = torch.Generator().manual_seed(3)
    rows = torch.arange(len(src)).repeat_interleave(beam)  # the sentence of each hypothesis
    tokens = torch.full((len(rows), 1), EOS)
    encoder_out = model.encoder.reorder_encoder_out(model.encoder(src), rows)
    state = {}
    for step in range(steps):
        logits, extra = model.decoder(tokens, encoder_out, state)
        full, full_extra = model(src[rows], None, tokens)
        assert torch.allclose(logits[:, -1], full[:, -1], rtol=0, atol=1e-12), step
        check(logits, extra, full_extra, src[rows])

        groups = torch.arange(len(rows)).view(-1, beam)
        if step in (3, 6):  # the first sentence is finished
            groups = groups[1:]
        order = groups.gather(1, torch.randint(beam, groups.shape, generator=generator)).flatten()
        model.decoder.reorder_incremental_state_scripting(state, order)
        encoder_out = model.encoder.reorder_encoder_out(encoder_out, order)
        chosen = torch.randint(4, 17, (len(order), 1), generator=generator)
        rows, tokens = rows[order], torch.cat([tokens[order], chosen], dim=1)


def sentence_alone_equals_the_same_in_a_batch(model, src: torch.Tensor, types: int) -> None:
    """Check that fairseq's search finds the same hypotheses and scores for a sentence alone and in a batch."""
    generator = SequenceGenerator([model], make_dictionary(types), beam_size=4, max_len_a=0, max_len_b=12)
    together = generator.generate([model], {"net_input": {"src_tokens": src, "src_lengths": None}})
    for row, expected in zip(src, together, strict=True):
        alone = {"net_input": {"src_tokens": row[row.ne(PAD)][None], "src_lengths": None}}
        for ours, theirs in zip(generator.generate([model], alone)[0], expected, strict=True):
            assert ours["tokens"].tolist() == theirs["tokens"].tolist()
            assert ours["score"].item() == pytest.approx(theirs["score"].item(), abs=1e-5)


def generated_scores_are_those_of_teacher_forcing(model, src: torch.Tensor, types: int) -> None:
    """Check the score of each token, in every hypothesis of fairseq's search."""
    generator = SequenceGenerator([model], make_dictionary(types), beam_size=3, max_len_a=0, max_len_b=12)
    for row, beams in zip(src, generator.generate([model], {"net_input": {"src_tokens": src}}), strict=True):
        for hypothesis in beams:
            tokens = hypothesis["tokens"]
            prev = torch.cat([tokens[-1:], tokens[:-1]])[None]
            probs = model.get_normalized_probs(model(row[row.ne(PAD)][None], None, prev), log_probs=True)[0]
            expected = probs.gather(1, tokens[:, None])[:, 0]
            assert torch.allclose(hypothesis["positional_scores"], expected, atol=1e-5)


def future_target_tokens_change_nothing_earlier(
    model, src: torch.Tensor, prev: torch.Tensor, words: int, reach: int | None = None
) -> None:
    """Check that another target word changes its own and later positions, and no earlier one.

    The targets have no padding; `words` is the number of word types. `reach` is the number of later positions that a
    model with windows can change; None is no limit.
    """
    before, _ = model(src, None, prev)
    for position in range(1, prev.size(1)):
        changed = prev.clone()
        changed[:, position] = (changed[:, position] - 3) % words + 4
        after, _ = model(src, None, changed)
        assert torch.equal(after[:, :position], before[:, :position])
        end = prev.size(1) if reach is None else position + reach + 1
        assert not torch.isclose(after[:, position:end], before[:, position:end]).all(-1).any()
        assert torch.allclose(after[:, end:], before[:, end:], rtol=0, atol=1e-12)
