import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from conftest import PAD, make_dictionary, make_lwc, random_batch
from lwc_fairseq.search.length_penalty import (
    GNMTSequenceGenerator,
    GNMTSequenceGeneratorWithAlignment,
    gnmt_length_penalty,
)


def test_penalty_is_gnmts():
    assert gnmt_length_penalty(1, 1.1) == 1.0
    assert gnmt_length_penalty(7, 1.0) == 2.0
    assert gnmt_length_penalty(19, 0.5) == 2.0
    assert gnmt_length_penalty(30, 0.0) == 1.0


@pytest.mark.parametrize("alpha", [0.0, 1.1, 3.0])
def test_hypotheses_are_ranked_by_the_penalised_log_probability(alpha):
    model, dictionary = make_lwc(types=8, seed=2), make_dictionary(8)
    model.encoder.stack.norm.weight.data *= 0.1  # flat enough for hypotheses of various lengths
    src, _ = random_batch([(5, 1), (9, 1), (2, 1), (7, 1)], types=8)
    settings = {"beam_size": 5, "max_len_a": 0, "max_len_b": 15, "len_penalty": alpha}
    sample = {"net_input": {"src_tokens": src}}
    plain = SequenceGenerator([model], dictionary, **settings, normalize_scores=False).generate([model], sample)
    ours = GNMTSequenceGenerator([model], dictionary, **settings).generate([model], sample)
    aligning = GNMTSequenceGeneratorWithAlignment([model], dictionary, **settings)
    aligned = aligning.generate([model], {"net_input": {**sample["net_input"], "src_lengths": src.ne(PAD).sum(1)}})
    for one, other in zip(ours, aligned, strict=True):
        assert [h["score"].item() for h in one] == [h["score"].item() for h in other]
    lengths = set()
    for before, after in zip(plain, ours, strict=True):
        expected = {
            tuple(h["tokens"].tolist()): h["positional_scores"].sum().item() / ((5 + len(h["tokens"])) / 6) ** alpha
            for h in before
        }
        assert [tuple(h["tokens"].tolist()) for h in after] == sorted(expected, key=expected.get, reverse=True)
        for hypothesis in after:
            lengths.add(len(hypothesis["tokens"]))
            assert hypothesis["score"].item() == pytest.approx(expected[tuple(hypothesis["tokens"].tolist())], abs=1e-4)
    assert len(lengths) > 1  # else nothing was ranked by length


def test_positional_scores_stay_log_probabilities():
    model, dictionary = make_lwc(types=40), make_dictionary(40)
    sample = {"net_input": {"src_tokens": random_batch([(5, 1)], types=40)[0]}}
    settings = {"beam_size": 2, "max_len_a": 0, "max_len_b": 9}
    ours, stock = (
        kind([model], dictionary, **settings).generate([model], sample)[0]
        for kind in (GNMTSequenceGenerator, SequenceGenerator)
    )
    scores = {tuple(h["tokens"].tolist()): h["positional_scores"] for h in stock}
    assert all(torch.equal(h["positional_scores"], scores[tuple(h["tokens"].tolist())]) for h in ours)
