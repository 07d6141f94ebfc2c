import itertools

import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig
from fairseq.sequence_generator import SequenceGenerator

from conftest import EOS, PAD, make_deepatt, make_dictionary, random_batch
from lwc_fairseq.search.agreement import AgreementSearch
from lwc_fairseq.search.ranking import RankedGenerator, choose_penalty
from lwc_fairseq.tasks.concat_translation import ConcatTranslationConfig, ConcatTranslationTask

TYPES = 6  # the four special ones and two words


def make_search(beam, length):
    dictionary = make_dictionary(TYPES)
    models = [make_deepatt("rnnsearch", types=(15, TYPES), dtype=torch.float32, seed=seed) for seed in (1, 2)]
    for model in models:
        model.decoder.output.bias.data[[0, 3]] = -1e4  # words alone, neither <s> nor <unk>
    generators = [SequenceGenerator([model], dictionary, beam, 0, length) for model in models]
    return models, AgreementSearch(*generators, [models[1]], dictionary)


def log_probs(model, source, words):
    """log P of each word of a sentence, and of its end."""
    prev = torch.tensor([[EOS, *words]])
    probs = model.get_normalized_probs(model(source[None], None, prev), log_probs=True)[0]
    return [probs[i, word].item() for i, word in enumerate([*words, EOS])]


RANKINGS = {"unnormalized": lambda m: 1, "length": lambda m: m, "gnmt": lambda m: ((5 + m) / 6) ** 1.5}


@pytest.mark.parametrize("penalty", RANKINGS)
def test_agreement_equals_brute_force(penalty):
    """If the beam holds every sentence of one to three words, the first one is the best under both models."""
    alpha = 1.5 if penalty == "gnmt" else 1.0
    length_penalty = choose_penalty(alpha, gnmt=penalty == "gnmt", unnormalized=penalty == "unnormalized")
    every = [words for n in (1, 2, 3) for words in itertools.product((4, 5), repeat=n)]
    (model, reverse_model), search = make_search(beam=len(every), length=3)
    src, _ = random_batch([(4, 1), (2, 1), (6, 1)], types=15)
    sample = {"net_input": {"src_tokens": src, "src_lengths": src.ne(PAD).sum(1)}}
    for row, found in zip(src, RankedGenerator(search, length_penalty).generate([model], sample), strict=True):
        source = row[row.ne(PAD)]
        totals, of_words = {}, {}
        for words in every:
            *backward, end = log_probs(reverse_model, source, words[::-1])
            of_words[words] = [
                one + other for one, other in zip(log_probs(model, source, words), [*backward[::-1], end], strict=True)
            ]
            totals[words] = sum(of_words[words]) / RANKINGS[penalty](len(words) + 1)
        ranking = sorted(totals, key=totals.get, reverse=True)
        ours = [tuple(hypothesis["tokens"].tolist()[:-1]) for hypothesis in found]
        assert len(set(ours)) == len(ours)
        assert ours[:5] == ranking[:5]
        for words, hypothesis in list(zip(ours, found, strict=True))[:5]:
            assert hypothesis["score"].item() == pytest.approx(totals[words], abs=1e-4)
            assert hypothesis["positional_scores"].tolist() == pytest.approx(of_words[words], abs=1e-4)


@pytest.mark.parametrize(
    ("task_options", "options"),
    [
        ({"reverse_target": True}, {}),
        ({}, {"print_alignment": "hard"}),
        ({}, {"replace_unk": ""}),
        ({}, {"score_reference": True}),
        ({}, {"lm_path": "lm.pt"}),
        ({}, {"prefix_allowed_tokens_fn": print}),
    ],
)
def test_options_that_do_not_go_with_it_are_refused(task_options, options):
    dictionary = make_dictionary(TYPES)
    config = ConcatTranslationConfig(agreement_path="r2l.pt", **task_options)
    task = ConcatTranslationTask(config, dictionary, dictionary)
    allowed = options.get("prefix_allowed_tokens_fn")
    generation = GenerationConfig(**({} if allowed else options))
    with pytest.raises(ValueError, match="--agreement-path cannot be combined with --reverse-target"):
        task.build_generator([make_deepatt("rnnsearch")], generation, prefix_allowed_tokens_fn=allowed)


def test_prefixes_constraints_and_validation_are_refused():
    (model, _), search = make_search(beam=2, length=3)
    for given in ({"prefix_tokens": torch.tensor([[4]])}, {"constraints": torch.tensor([[0]])}):
        with pytest.raises(ValueError, match="cannot be combined with --prefix-size or --constraints"):
            search.generate([model], {}, **given)
    config = ConcatTranslationConfig(agreement_path="r2l.pt", eval_bleu=True)
    task = ConcatTranslationTask(config, make_dictionary(TYPES), make_dictionary(TYPES))
    with pytest.raises(ValueError, match="--agreement-path cannot be combined with --eval-bleu"):
        task.build_model(None)


def test_the_union_of_both_searches_is_ranked():
    (model, reverse_model), search = make_search(beam=2, length=3)
    src, _ = random_batch([(4, 1)], types=15)
    sample = {"net_input": {"src_tokens": src, "src_lengths": src.ne(PAD).sum(1)}}
    ours = {tuple(hypothesis["tokens"].tolist()) for hypothesis in search.generate([model], sample)[0]}
    forward = {tuple(h["tokens"].tolist()) for h in search.generator.generate([model], sample)[0]}
    backward = search.reverse_generator.generate([reverse_model], sample)[0]
    assert ours == forward | {(*h["tokens"].tolist()[-2::-1], EOS) for h in backward}
