"""The order and the scores of hypotheses."""

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment

from conftest import PAD, make_dictionary, make_lwc, random_batch
from lwc_fairseq.search.beam_search import QuickSequenceGenerator
from lwc_fairseq.search.ranking import RankedGenerator, choose_penalty, rank

SETTINGS = {"beam_size": 5, "max_len_a": 0, "max_len_b": 15}


@pytest.fixture(scope="module")
def model():
    """Its hypotheses have various lengths."""
    model = make_lwc(types=8, seed=1)
    model.encoder.stack.layers[-1].ffn_norm.weight.data *= 0.1
    return model


@pytest.fixture(scope="module")
def sample():
    src, _ = random_batch([(5, 1), (9, 1), (2, 1), (7, 1)], types=8)
    return {"net_input": {"src_tokens": src, "src_lengths": src.ne(PAD).sum(1)}}


def plain_hypotheses(model, sample, **settings):
    """Of fairseq's search with fairseq's ranking."""
    return SequenceGenerator([model], make_dictionary(8), **{**SETTINGS, **settings}).generate([model], sample)


def words_and_scores(hypotheses):
    return [(tuple(one["tokens"].tolist()), one["score"].item()) for one in hypotheses]


def test_penalties():
    gnmt = {alpha: choose_penalty(alpha, gnmt=True) for alpha in (0.0, 0.5, 1.0, 1.1)}
    assert gnmt[1.1](1) == 1 and gnmt[1.0](7) == 2 and gnmt[0.5](19) == 2 and gnmt[0.0](30) == 1
    assert choose_penalty(2.0)(3) == 9
    assert choose_penalty(2.0, unnormalized=True)(3) == 1
    with pytest.raises(ValueError, match="--gnmt-length-penalty and --unnormalized exclude each other"):
        choose_penalty(1.0, gnmt=True, unnormalized=True)


@pytest.mark.parametrize("unnormalized", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.7, 3.0])
def test_without_gnmts_penalty_it_is_fairseqs_ranking(model, sample, alpha, unnormalized):
    expected = plain_hypotheses(model, sample, len_penalty=alpha, normalize_scores=not unnormalized)
    found = plain_hypotheses(model, sample, normalize_scores=False)
    penalty = choose_penalty(alpha, unnormalized=unnormalized)
    assert [words_and_scores(one) for one in rank(found, penalty)] == [words_and_scores(one) for one in expected]


@pytest.mark.parametrize("alpha", [0.0, 1.1, 3.0])
@pytest.mark.parametrize("kind", [QuickSequenceGenerator, SequenceGenerator, SequenceGeneratorWithAlignment])
def test_gnmts_penalty_divides_the_log_probability(model, sample, kind, alpha):
    search = kind([model], make_dictionary(8), **SETTINGS, normalize_scores=False)
    found = RankedGenerator(search, choose_penalty(alpha, gnmt=True)).generate([model], sample)
    lengths = set()
    for before, after in zip(plain_hypotheses(model, sample), found, strict=True):
        expected = {
            tuple(one["tokens"].tolist()): one["positional_scores"].sum().item()
            / ((5 + len(one["tokens"])) / 6) ** alpha
            for one in before
        }
        ranked = words_and_scores(after)
        assert [words for words, _ in ranked] == sorted(expected, key=expected.get, reverse=True)
        assert [score for _, score in ranked] == pytest.approx([expected[words] for words, _ in ranked], abs=1e-4)
        lengths |= {len(words) for words, _ in ranked}
    assert len(lengths) > 1  # otherwise length decides nothing


def test_positional_scores_stay_log_probabilities(model, sample):
    search = SequenceGenerator([model], make_dictionary(8), **SETTINGS, normalize_scores=False)
    found = RankedGenerator(search, choose_penalty(2.0, gnmt=True)).generate([model], sample)
    for before, after in zip(plain_hypotheses(model, sample), found, strict=True):
        scores = {tuple(one["tokens"].tolist()): one["positional_scores"] for one in before}
        assert all(torch.equal(one["positional_scores"], scores[tuple(one["tokens"].tolist())]) for one in after)
