from argparse import Namespace

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment

from conftest import EOS, PAD, make_deepatt, make_dictionary, make_lwc, make_transformer
from lwc_fairseq.search.beam_search import QuickSearch
from lwc_fairseq.tasks.concat_translation import ConcatTranslationConfig, ConcatTranslationTask


def make_task(**settings):
    dictionary = make_dictionary(17)
    return ConcatTranslationTask(ConcatTranslationConfig(**settings), dictionary, dictionary)


def hypothesis():
    tokens = torch.tensor([5, 6, 7, EOS])
    return {"tokens": tokens, "score": torch.tensor(-1.0), "attention": torch.empty(0), "alignment": []}


def generate(task, src_tokens, target=None):
    model = make_lwc()
    sample = {"net_input": {"src_tokens": src_tokens, "src_lengths": None}, "target": target}
    generator = SequenceGenerator([model], task.target_dictionary, beam_size=2, max_len_a=0, max_len_b=6)
    return task.inference_step(generator, [model], sample), sample


def test_an_empty_source_gives_an_empty_translation_and_its_neighbours_theirs():
    sentences = torch.tensor([[5, 6, EOS], [PAD, PAD, EOS], [7, 8, EOS]])
    together, _ = generate(make_task(), sentences)
    assert [h["tokens"].tolist() for h in together[1]] == [[EOS]]
    assert together[1][0]["score"] == 0 and together[1][0]["positional_scores"].tolist() == [0]
    alone, _ = generate(make_task(), sentences[[0, 2]])
    assert [h["tokens"].tolist() for h in alone[1]] == [h["tokens"].tolist() for h in together[2]]


def test_reversed_targets_come_back_in_reading_order():
    source = torch.tensor([[5, 6, EOS], [7, 8, EOS]])
    target = torch.tensor([[4, 5, 6, EOS], [7, EOS, PAD, PAD]])
    plain, _ = generate(make_task(), source)
    turned, sample = generate(make_task(reverse_target=True), source, target.clone())
    for ours, theirs in zip(turned, plain, strict=True):
        for mine, other in zip(ours, theirs, strict=True):
            assert mine["tokens"].tolist() == [*other["tokens"][:-1].flip(0).tolist(), EOS]
    assert sample["target"].tolist() == [[6, 5, 4, EOS], [7, EOS, PAD, PAD]]


def test_generation_takes_no_packing():
    """Ensembles may contain fairseq's own models, whose encoders do not accept it."""
    task, model = make_task(), make_lwc()

    class Generator:
        def generate(self, models, sample, **options):
            return sample["net_input"]

    inputs = {"src_tokens": torch.tensor([[5, EOS]]), "packing": {}, "reverse_tokens": torch.tensor([[6, EOS]])}
    sample = {"net_input": dict(inputs)}
    assert task.inference_step(Generator(), [model], sample) == {"src_tokens": inputs["src_tokens"]}
    assert sample == {"net_input": inputs}  # losses may be computed of the same batch again


@pytest.mark.parametrize("make", [make_lwc, make_deepatt, make_transformer])
def test_validation_with_bleu_searches_quickly_and_leaves_the_model_as_it_was(monkeypatch, make):
    model, task = make(), make_task(eval_bleu_args="{}")
    task.tokenizer = None
    model.decoder.need_attn = had = getattr(model.decoder, "need_attn", None)
    quick = []
    monkeypatch.setattr(QuickSearch, "run", lambda *_: quick.append(True) or [[hypothesis()]])
    sources = torch.tensor([[5, 6, EOS]])
    sample = {"net_input": {"src_tokens": sources, "src_lengths": torch.tensor([3])}, "target": sources}
    task._inference_with_bleu(task.build_generator([model], Namespace(beam=2)), sample, model)
    assert quick and model.decoder.need_attn == had


def test_replacing_unknown_words_keeps_the_length_penalty():
    model = make_lwc()
    model.make_generation_fast_(need_attn=False)
    generator = make_task(gnmt_length_penalty=True).build_generator([model], Namespace(beam=2, replace_unk=""))
    assert isinstance(generator.generator, SequenceGeneratorWithAlignment)
    assert generator.penalty(7) == 2


def test_buckets_are_refused():
    with pytest.raises(ValueError, match="--num-batch-buckets 2: concat_translation packs batches without padding"):
        make_task(num_batch_buckets=2).load_dataset("train")
