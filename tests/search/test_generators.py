"""Which generator the task `concat_translation` builds for which options."""

from argparse import Namespace

import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig
from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment
from fairseq.sequence_scorer import SequenceScorer

from conftest import EOS, PAD, make_deepatt, make_dictionary, make_lwc, make_transformer, random_batch
from lwc_fairseq.search.beam_search import QuickSequenceGenerator
from lwc_fairseq.search.ranking import RankedGenerator
from lwc_fairseq.tasks.concat_translation import ConcatTranslationConfig, ConcatTranslationTask


def build(settings=None, seq_gen_cls=None, **options):
    """With all options of generation, or as --eval-bleu does with a few."""
    dictionary = make_dictionary(17)
    task = ConcatTranslationTask(ConcatTranslationConfig(**(settings or {})), dictionary, dictionary)
    model = make_lwc()
    model.make_generation_fast_()
    built = [task.build_generator([model], kind(**options), seq_gen_cls) for kind in (GenerationConfig, Namespace)]
    assert type(built[0]) is type(built[1])
    return built[0]


@pytest.mark.parametrize(
    ("settings", "options", "kind"),
    [
        ({}, {}, QuickSequenceGenerator),
        ({"stock_search": True}, {}, SequenceGenerator),
        ({}, {"print_alignment": "soft"}, SequenceGeneratorWithAlignment),
        ({}, {"replace_unk": ""}, SequenceGeneratorWithAlignment),
    ],
)
def test_searches(settings, options, kind):
    generator = build(settings, **options)
    assert type(generator) is RankedGenerator and type(generator.generator) is kind
    assert not generator.generator.normalize_scores  # the ranking divides by the length, and only the ranking


@pytest.mark.parametrize(
    ("settings", "options", "penalty"),
    [
        ({}, {}, 13),
        ({}, {"lenpen": 2.0}, 169),
        ({}, {"unnormalized": True}, 1),
        ({"gnmt_length_penalty": True}, {"lenpen": 2.0}, 9),
    ],
)
def test_rankings(settings, options, penalty):
    assert build(settings, **options).penalty(13) == penalty


def test_scores_of_references_and_classes_of_callers_are_fairseqs():
    assert type(build(score_reference=True)) is SequenceScorer
    assert type(build(seq_gen_cls=SequenceGenerator)) is SequenceGenerator


def test_an_ensemble_scores_references_if_some_of_its_models_give_attention():
    """fairseq's scorer averages attention, which its Transformer always gives."""
    models = [make_transformer(), make_lwc(dtype=torch.float32), make_deepatt(types=(17, 17), dtype=torch.float32)]
    source, inputs = random_batch([(4, 5), (3, 5)])
    target = torch.cat([inputs[:, 1:], torch.full((2, 1), EOS)], dim=1)
    lengths = source.ne(PAD).sum(1)
    net_input = {"src_tokens": source, "src_lengths": lengths, "prev_output_tokens": inputs}
    probabilities = []
    for model in models:
        model.make_generation_fast_(need_attn=False)
        with torch.no_grad():
            of_types = model.get_normalized_probs(model(**net_input), log_probs=False)
        probabilities.append(of_types.gather(2, target[..., None])[..., 0])
    expected = torch.stack(probabilities).mean(0).log()
    scored = SequenceScorer(make_dictionary(17)).generate(models, {"net_input": net_input, "target": target})
    for (hypothesis,), row in zip(scored, expected, strict=True):
        assert torch.allclose(hypothesis["positional_scores"], row, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({"gnmt_length_penalty": True}, {"unnormalized": True}, "--gnmt-length-penalty and --unnormalized exclude"),
        ({"gnmt_length_penalty": True}, {"score_reference": True}, "leave out --gnmt-length-penalty"),
        ({}, {"retain_iter_history": True}, "--retain-iter-history only works with models that refine"),
        ({}, {"print_step": True}, "--print-step only works with models that refine"),
    ],
)
def test_options_that_exclude_each_other_are_refused(settings, options, message):
    with pytest.raises(ValueError, match=message):
        build(settings, **options)
