"""Neural system combination: it equals its reference, and its frozen parts stay unchanged."""

from types import SimpleNamespace

import pytest
import torch

from conftest import EOS, PAD, make_dictionary, make_model, random_batch, without_padding
from lwc_fairseq.models import nsc
from lwc_fairseq.models.nsc import NSCConfig, NSCHSModel, NSCRTModel
from lwc_fairseq_compat.loading import refuse_only_without_weights
from properties import generated_scores_are_those_of_teacher_forcing, steps_equal_the_full_pass
from reference_nsc import best_translation, states_model, words_model

LENGTHS = [(4, 3), (2, 6), (7, 1), (1, 2)]
EACH_MODEL = pytest.mark.parametrize("kind", [NSCRTModel, NSCHSModel], ids=["nsc_rt", "nsc_hs"])


def make_nsc(kind=NSCRTModel, types=(15, 17), seed=0, **settings):
    config = NSCConfig(**{"embed_dim": 6, "hidden_dim": 8, "dropout": 0.0, "reverse_beam": 1, **settings})
    model = make_model(kind, config, *map(make_dictionary, types), torch.float64, seed)
    model.missing_file = None  # random weights are enough
    return model


def weights(model):
    """The state dict, with the names of the reference."""
    state = model.state_dict(keep_vars=True)
    prefixes = ("encoder.reverse_model.", "reverse_model."), ("encoder.recurrent.", "encoder.")
    for ours, theirs in prefixes:
        state = {name.replace(ours, theirs): value for name, value in state.items()}
    return state


@EACH_MODEL
@pytest.mark.parametrize("beam", [1, 3])
def test_equals_the_reference(kind, beam):
    """Logits, and the weights of both attentions, given the reverse translation."""
    model = make_nsc(kind, reverse_beam=beam)
    src, prev = random_batch(LENGTHS, types=15)
    logits, extra = model(src, None, prev)
    reverse = model.reverse_translations(src)
    for i, row in enumerate(src):
        source, words, given = map(without_padding, (row, reverse[i], prev[i]))
        run = states_model if kind is NSCHSModel else words_model
        expected, (to_source, to_reverse) = run(weights(model), source, words, given)
        assert torch.allclose(logits[i, : len(given)], expected, rtol=0, atol=1e-11)
        ours = extra["attentions"][0][i, : len(given)][:, row.ne(PAD)]
        assert torch.allclose(ours, to_source, rtol=0, atol=1e-11)
        found = extra["attentions"][1][i, : len(given)]
        assert torch.allclose(found[:, : len(words)], to_reverse, rtol=0, atol=1e-11)
        assert not found[:, len(words) :].any()


def test_the_best_reverse_translation_is_found():
    """The best translation of at most one word: a beam as large as the vocabulary finds it, greedy search may not."""
    model = make_nsc(types=(15, 9), reverse_beam=8, max_reverse_len_a=0, max_reverse_len_b=2)
    src, _ = random_batch(LENGTHS, types=15)
    found = [without_padding(row) for row in model.reverse_translations(src)]
    expected = [best_translation(weights(model), without_padding(row), limit=2) for row in src]
    assert found == expected
    model.encoder.cfg.reverse_beam = 1
    assert found != [without_padding(row) for row in model.reverse_translations(src)]


def test_the_search_does_not_depend_on_the_neighbours():
    model = make_nsc(reverse_beam=4)
    model.encoder.reverse_model.decoder.output.bias.data[EOS] = -3  # long translations, some of them up to the limit
    src, _ = random_batch(LENGTHS, types=15)
    together = model.reverse_translations(src)
    assert any(len(without_padding(row)) == 2 * n for row, (n, _) in zip(together, LENGTHS, strict=True))
    for i, row in enumerate(src):
        (alone,) = model.reverse_translations(row[row.ne(PAD)][None])
        assert without_padding(together[i]) == without_padding(alone)


def test_words_added_to_the_dictionary_change_nothing():
    """fairseq-generate adds the words of references to the dictionary, after each batch."""
    model = make_nsc(reverse_beam=3)
    src, _ = random_batch(LENGTHS, types=15)
    before = model.reverse_translations(src)
    model.encoder.reverse_model.decoder.dictionary.add_symbol("neuer")
    assert torch.equal(model.reverse_translations(src), before)


class TestKnownTranslations:
    """Training searches for the translation of each source once."""

    def test_they_are_those_of_a_search(self):
        """Also in a batch with unknown sources."""
        model = make_nsc(reverse_beam=3)
        src, _ = random_batch(LENGTHS, types=15)
        expected = [without_padding(row) for row in model.reverse_translations(src)]
        model.train()
        model.reverse_translations(src[1:2, src[1].ne(PAD)])
        assert [without_padding(row) for row in model.reverse_translations(src)] == expected

    def test_each_source_is_searched_for_once(self, monkeypatch):
        """However it is padded."""
        searched = []
        search = nsc.search_with_beam
        monkeypatch.setattr(nsc, "search_with_beam", lambda *args: searched.append(args[1]) or search(*args))
        model = make_nsc(reverse_beam=3).train()
        src, prev = random_batch(LENGTHS, types=15)
        for rows in (slice(0, 2), slice(1, 4)):
            model(src[rows], None, prev[rows])
        model(torch.nn.functional.pad(src, (2, 1), value=PAD), None, prev)
        assert [len(sources) for sources in searched] == [2, 2]

    def test_other_weights_make_other_translations(self):
        model, other = make_nsc(), make_nsc(seed=1)
        src, _ = random_batch(LENGTHS, types=15)
        before, expected = model.train().reverse_translations(src), other.reverse_translations(src)
        assert before.tolist() != expected.tolist()
        model.load_state_dict(other.state_dict())
        assert torch.equal(model.reverse_translations(src), expected)

    def test_generation_remembers_nothing(self):
        model = make_nsc()
        src, _ = random_batch(LENGTHS, types=15)
        model.reverse_translations(src)
        assert not model.encoder.known.by_source


@EACH_MODEL
def test_given_translations_equal_those_that_it_finds(kind):
    """Also padded more; and a search does not run."""
    model = make_nsc(kind, reverse_beam=3)
    src, prev = random_batch(LENGTHS, types=15)
    expected, _ = model(src, None, prev)
    given = torch.nn.functional.pad(model.reverse_translations(src), (0, 2), value=PAD)
    model = make_nsc(kind, reverse_context="translations").train()
    model.encoder.search = None
    assert torch.allclose(model(src, None, prev, reverse_tokens=given)[0], expected, rtol=0, atol=1e-12)
    other = given.masked_fill(given.gt(EOS), 5)
    assert not torch.allclose(model(src, None, prev, reverse_tokens=other)[0], expected, rtol=0, atol=1e-3)
    with pytest.raises(ValueError, match="--reverse-context translations needs --task concat_translation"):
        model(src, None, prev)


@EACH_MODEL
def test_the_first_model_stays_as_it_is(kind):
    model = make_nsc(kind).train()
    src, prev = random_batch(LENGTHS, types=15)
    model(src, None, prev)[0].sum().backward()
    first = {id(parameter) for parameter in model.encoder.reverse_model.parameters()}
    for name, parameter in model.named_parameters():
        assert (parameter.grad is None) == (id(parameter) in first), name


def test_training_without_the_first_model():
    config = NSCConfig(embed_dim=6, hidden_dim=8)
    model = make_model(NSCRTModel, config, make_dictionary(15), make_dictionary(17), torch.float64, 0)
    src, prev = random_batch(LENGTHS, types=15)
    with pytest.raises(ValueError, match="--reverse-model is missing: give the checkpoint of a trained"):
        model(src, None, prev)
    model.load_state_dict(model.state_dict())  # as for generation
    model(src, None, prev)


@EACH_MODEL
class TestDecoding:
    def test_step_by_step_with_reordering_equals_the_full_pass(self, kind):
        def check(logits, extra, full_extra, sources):
            assert torch.allclose(extra["attn"][0][:, -1], full_extra["attn"][0][:, -1], rtol=0, atol=1e-12)

        src, _ = random_batch(LENGTHS, types=15)
        steps_equal_the_full_pass(make_nsc(kind), src, steps=8, check=check)

    def test_generated_scores_are_those_of_teacher_forcing(self, kind):
        src, _ = random_batch([(5, 1), (9, 1)], types=40)
        model = make_nsc(kind, types=(40, 40), reverse_beam=3)
        generated_scores_are_those_of_teacher_forcing(model, src, types=40)


class TestConfiguration:
    @pytest.mark.parametrize(("kind", "published"), [(NSCRTModel, 120.0e6), (NSCHSModel, 130.0e6)], ids=["rt", "hs"])
    def test_parameters(self, kind, published):
        """With 620/1000 and 30,000 types on each side; of `nsc_rt` those that are trained."""
        dictionaries = [make_dictionary(30_000) for _ in range(2)]
        task = SimpleNamespace(source_dictionary=dictionaries[0], target_dictionary=dictionaries[1])
        with torch.device("meta"):
            model = refuse_only_without_weights(kind.build_model, NSCConfig(), task)
        counted = [parameter for parameter in model.parameters() if kind is NSCHSModel or parameter.requires_grad]
        assert sum(parameter.numel() for parameter in counted) == pytest.approx(published, rel=4e-4)

    def test_a_beam_of_none(self):
        with pytest.raises(ValueError, match="--reverse-beam 0: must be at least 1"):
            make_nsc(reverse_beam=0)
