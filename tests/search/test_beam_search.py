"""This beam search returns the hypotheses of fairseq's and, with the same ranking, their scores."""

import pytest
import torch
from fairseq.search import BeamSearch, Sampling
from fairseq.sequence_generator import SequenceGenerator

from conftest import EOS, make_abd, make_deepatt, make_lwc, make_transformer, random_batch
from lwc_fairseq.search import beam_search
from lwc_fairseq.search.beam_search import QuickSequenceGenerator, largest
from lwc_fairseq.search.ranking import RankedGenerator, choose_penalty

MODELS = {
    "lwc": lambda: make_lwc(types=40),
    "deepatt": lambda: make_deepatt(types=(40, 40)),
    "abd": lambda: make_abd(types=(40, 40)),
    "fairseq's transformer": lambda: make_transformer(types=40),
}
LENGTHS = [(5, 1), (2, 1), (9, 1), (1, 1), (3, 1)]


def search(kind, model, sources, penalty=None, **settings):
    options = {"beam_size": 4, "max_len_a": 1.5, "max_len_b": 3, **settings}
    generator = kind([model], model.decoder.dictionary, **options)
    if penalty is not None:
        generator = RankedGenerator(generator, penalty)
    model.make_generation_fast_()
    lengths = sources.ne(1).sum(1)
    with torch.no_grad():
        return generator.generate([model], {"net_input": {"src_tokens": sources, "src_lengths": lengths}})


def ends_now_and_then(model):
    """Hypotheses end at different steps, because the probability of the end depends on the sum of the tokens."""
    forward = model.decoder.forward

    def likes_to_end(tokens, **given):
        logits, extra = forward(tokens, **given)
        logits[:, -1, EOS] = logits[:, -1].amax(-1) + 3 * torch.sin(1.7 * tokens.sum(1)) + tokens.size(1) / 2 - 5
        return logits, extra

    model.decoder.forward = likes_to_end
    return model


SETTINGS = [
    {},
    {"beam_size": 1},
    {"len_penalty": 0.3, "min_len": 4},
    {"normalize_scores": False, "unk_penalty": -3.0, "temperature": 0.6},
    {"max_len_a": 0, "max_len_b": 2},
    {"max_len_a": 0, "max_len_b": 0, "min_len": 0},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_equals_fairseqs_search(monkeypatch, name, settings):
    monkeypatch.setattr(beam_search, "GROUP", 2)  # so that groups matter in a small vocabulary
    model = ends_now_and_then(MODELS[name]())
    sources, _ = random_batch(LENGTHS, types=40)
    penalty = choose_penalty(settings.get("len_penalty", 1.0), unnormalized=not settings.get("normalize_scores", True))
    found = search(QuickSequenceGenerator, model, sources, penalty, **settings)
    expected = search(SequenceGenerator, model, sources, **settings)
    if not settings:
        assert len({len(one["tokens"]) for sentence in expected for one in sentence}) > 1
    for ours, theirs in zip(found, expected, strict=True):
        assert [one["tokens"].tolist() for one in ours] == [one["tokens"].tolist() for one in theirs]
        for mine, its in zip(ours, theirs, strict=True):
            assert mine.keys() == its.keys()
            assert torch.allclose(mine["score"], its["score"].to(mine["score"]), atol=1e-5)
            assert torch.allclose(mine["positional_scores"], its["positional_scores"].float(), atol=1e-5)


@pytest.mark.parametrize("part", ["model", "decoder"])
def test_probabilities_of_a_models_own(part):
    """A model that computes its probabilities in another way is searched by fairseq's search."""
    model = MODELS["lwc"]()
    owner = model if part == "model" else model.decoder

    class Mixture(type(owner)):
        def get_normalized_probs(self, net_output, log_probs, sample=None):
            logits = net_output[0].float()
            return (logits.softmax(-1) / 2 + (-logits).softmax(-1) / 2).log()

    owner.__class__ = Mixture
    sources, _ = random_batch(LENGTHS, types=40)
    found, expected = (
        search(kind, model, sources, normalize_scores=False) for kind in (QuickSequenceGenerator, SequenceGenerator)
    )
    for ours, theirs in zip(found, expected, strict=True):
        assert [one["tokens"].tolist() for one in ours] == [one["tokens"].tolist() for one in theirs]


class Uniform(torch.nn.Module):
    """A language model that finds all tokens equally probable."""

    def forward(self, tokens):
        return torch.zeros(*tokens.shape, 40), None

    def get_normalized_probs(self, out, log_probs, sample):
        return out[0].log_softmax(-1)


def test_takes_its_own_way_only_where_it_can(monkeypatch):
    """Sampling, prefixes, language models, attention and tiny vocabularies are left to fairseq's search; plain beams
    are not."""
    monkeypatch.setattr(beam_search.QuickSearch, "run", lambda self, start: "quick")
    sources, _ = random_batch(LENGTHS[:2], types=40)
    model = make_deepatt(types=(40, 40))
    dictionary = model.decoder.dictionary
    assert search(QuickSequenceGenerator, model, sources) == "quick"
    assert search(QuickSequenceGenerator, model, sources, search_strategy=BeamSearch(dictionary)) == "quick"
    of_fairseq = {"search_strategy": Sampling(dictionary)}, {"no_repeat_ngram_size": 2}, {"beam_size": 25}
    for settings in (*of_fairseq, {"lm_model": Uniform()}):
        assert search(QuickSequenceGenerator, model, sources, **settings) != "quick"
    generator = QuickSequenceGenerator([model], dictionary, beam_size=2)
    sample = {"net_input": {"src_tokens": sources, "src_lengths": sources.ne(1).sum(1)}}
    prefix = torch.full((2, 1), 7)
    assert generator.generate([model], sample, prefix_tokens=prefix)[0][0]["tokens"][0] == 7
    model.decoder.need_attn = True
    assert generator.generate([model], sample)[0][0]["attention"].numel()


@pytest.mark.parametrize("types", [50, 640, 1000])
def test_largest(types):
    x = torch.randn(7, types, generator=torch.Generator().manual_seed(types))
    x[2, -3:] = torch.tensor([5.0, 6.0, 4.0])  # in what is left after the last whole group
    values, index = largest(x, 3)
    expected = x.topk(3)
    assert torch.equal(values, expected.values) and torch.equal(index, expected.indices)


def test_scores_that_are_not_numbers_are_refused():
    model = make_lwc(types=40)
    model.encoder.stack.layers[-1].ffn_norm.weight.data[0] = torch.nan
    with pytest.raises(ValueError, match=r"the model's scores are not numbers \(NaN\): take an earlier checkpoint"):
        search(QuickSequenceGenerator, model, random_batch(LENGTHS, types=40)[0])
