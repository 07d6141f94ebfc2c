"""What a model attends to, as panels: the tokens of rows and columns, layers and heads."""

import pytest
import torch

from conftest import make_abd, make_abd_lwc, make_deepatt, make_dictionary, make_lwc
from lwc_fairseq.analysis.attention import MEAN, attend, panels, sentences, translations
from lwc_fairseq.tasks.concat_translation import ConcatTranslationConfig, ConcatTranslationTask

SOURCE, TARGET = "w1 w2 w3 w4", "w5 w6 w7"
MODELS = {
    "lwc": (lambda: make_lwc(dtype=torch.float32), 3, ["(start)", "w5", "w6", "w7"]),
    "deepatt": (lambda: make_deepatt(types=(17, 17), dtype=torch.float32), 3, []),
    "abd": (lambda: make_abd(types=(17, 17), dtype=torch.float32), 1, []),
    "abd_lwc": (lambda: make_abd_lwc(dtype=torch.float32), 3, ["(start)", "w5", "w6", "w7"]),
}


def make_task(**settings):
    return ConcatTranslationTask(ConcatTranslationConfig(**settings), make_dictionary(17), make_dictionary(17))


def attention(model, task, target=TARGET):
    (best, *_), _ = translations(model, task, SOURCE, target)
    return attend(model, task, SOURCE, best)


@pytest.mark.parametrize("name", MODELS)
def test_tokens_on_the_axes_and_weights_that_add_up(name):
    make, layers, others = MODELS[name]
    model = make()
    made = panels(attention(model, make_task()), None, None)
    assert [panel.title for panel in made] == [f"layer {number}" for number in range(layers)]
    for panel in made:
        assert panel.rows == ["w5", "w6", "w7", "</s>"] and panel.columns[:5] == ["w1", "w2", "w3", "w4", "</s>"]
        assert panel.weights.shape == (len(panel.rows), len(panel.columns)) and len(panel.sides[0]) == 5
        total = panel.weights.sum(1)
        assert torch.allclose(total, torch.full_like(total, 2.0 if name == "abd" else 1.0), atol=1e-5)
        if name in ("abd", "abd_lwc"):
            found = model.reverse_translations(torch.tensor([[5, 6, 7, 8, 2]]))[0]
            assert len(panel.sides[1]) == len(found) and panel.columns[5 + len(found) :] == others
        else:
            assert panel.columns[5:] == others


def test_one_head_and_the_mean_of_the_layers():
    found = attention(make_lwc(dtype=torch.float32), make_task())
    heads = [panels(found, None, head) for head in (0, 1)]
    (mean,) = panels(found, MEAN, None)
    assert heads[1][2].title == "layer 2, head 1" and mean.title == "mean of the layers"
    expected = torch.stack([panel.weights for head in heads for panel in head]).mean(0)
    assert torch.allclose(mean.weights, expected) and not torch.allclose(mean.weights, heads[0][0].weights)


def test_without_a_target_the_model_translates():
    made = panels(attention(make_deepatt(types=(17, 17), dtype=torch.float32), make_task(), None), 1, None)
    assert len(made) == 1 and made[0].title == "layer 1" and made[0].rows[-1] == "</s>"


def test_right_to_left_models_produce_the_last_word_first():
    model, task = make_deepatt(types=(17, 17), dtype=torch.float32), make_task(reverse_target=True)
    found = attention(model, task)
    assert found.rows == ["w7", "w6", "w5", "</s>"] and sentences(found, task) == [SOURCE, TARGET]


def test_what_is_not_there_is_refused():
    model, task = make_lwc(dtype=torch.float32), make_task()
    for choice, message in (((3, None), "--layer 3"), ((None, 2), "--head 2")):
        with pytest.raises(ValueError, match=message):
            panels(attention(model, task), *choice)
    with pytest.raises(ValueError, match="--source: give a sentence"):
        translations(model, task, "  ", None)
    for source, target, option in (("w5 " * 50, None, "--source"), ("w5", "w5 " * 50, "--target")):
        with pytest.raises(ValueError, match=f"{option}: 50 tokens, but the model allows 49: give a shorter sentence"):
            translations(model, task, source, target)
