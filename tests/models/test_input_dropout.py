"""Dropout of words, of the states that attention reads (`--input-dropout`) and of attention weights."""

from functools import partial

import pytest
import torch

from conftest import make_abd, make_abd_lwc, make_deepatt, make_lwc, make_rnmt, random_batch
from lwc_fairseq.models.rnnsearch import RecurrentConfig

LENGTHS = [(4, 3), (2, 6)]
MODELS = pytest.mark.parametrize("make", [make_deepatt, make_abd])


def run_training(make, **settings) -> torch.Tensor:
    """The logits of one pass in training mode."""
    torch.manual_seed(1)
    src, prev = random_batch(LENGTHS, types=15)
    return make(**settings).train()(src, None, prev)[0]


@MODELS
def test_it_drops_in_training_only(make):
    src, prev = random_batch(LENGTHS, types=15)
    plain, dropping = (make(input_dropout=p)(src, None, prev)[0] for p in (0.0, 0.5))
    assert torch.equal(plain, dropping)  # in evaluation mode
    assert not torch.equal(run_training(make, input_dropout=0.0), run_training(make, input_dropout=0.5))


@pytest.mark.parametrize(("make", "default"), [(make_deepatt, 0.0), (make_abd, 0.5)])
def test_the_default(make, default):
    """DeepAtt drops the readout only, as its paper says; ABD takes `--dropout`."""
    without_option = run_training(make, dropout=0.5)
    assert torch.equal(without_option, run_training(make, dropout=0.5, input_dropout=default))
    assert not torch.equal(without_option, run_training(make, dropout=0.5, input_dropout=0.5 - default))


@MODELS
def test_it_drops_words_of_both_sides_and_memories(make):
    """Check that each dropout sets entries to zero or divides them by 1 - p."""
    model = make(input_dropout=0.5).train()
    seen = []
    for dropout in (model.encoder.dropout, model.decoder.input_dropout):
        dropout.register_forward_hook(lambda module, given, out: seen.append((given[0], out)))
    src, prev = random_batch(LENGTHS, types=15)
    model(src, None, prev)
    widths = [x.size(-1) for x, _ in seen]
    assert widths.count(model.encoder.embedding.embedding_dim) >= 2 and len(set(widths)) == 2
    for x, out in seen:
        assert ((out == 0) | torch.isclose(out, 2 * x)).all() and (out == 0).any() and (out != 0).any()


@MODELS
def test_retained_in_generation(make):
    """fairseq-generate --retain-dropout drops words of the decoder, too, although generation has no gradients."""
    model = make(input_dropout=0.5).eval()
    model.make_generation_fast_(retain_dropout=True)
    words = []
    model.decoder.input_dropout.register_forward_hook(lambda module, given, out: words.append(out))
    src, prev = random_batch(LENGTHS, types=15)
    with torch.no_grad():
        model(src, None, prev)
    assert words and all((out == 0).any() for out in words)


WITH_ATTENTION_DROPOUT = {
    "lwc": make_lwc,
    "separate": partial(make_lwc, separate_attention=True),
    "windows": partial(make_lwc, windows="2,3,4"),
    "abd_lwc": make_abd_lwc,
    "rnmt": partial(make_rnmt, "rnmt"),
}


@pytest.mark.parametrize("family", WITH_ATTENTION_DROPOUT)
@pytest.mark.parametrize("in_steps", [False, True])
def test_attention_dropout_is_retained_in_generation(family, in_steps):
    """With --retain-dropout, the mean over many passes comes near the pass without dropout."""
    src, prev = random_batch(LENGTHS, types=15)

    def translate(model):
        state = {} if in_steps else None
        return model.decoder(prev, model.encoder(src), state)[0]

    with torch.no_grad():
        plain = translate(WITH_ATTENTION_DROPOUT[family]().eval())
        model = WITH_ATTENTION_DROPOUT[family](attention_dropout=0.1).eval()
        assert torch.equal(translate(model), plain)
        model.make_generation_fast_(retain_dropout=True)
        logits = torch.stack([translate(model) for _ in range(100)])
    assert not torch.equal(logits[0], logits[1])
    errors = (logits - plain).flatten(1).norm(dim=1)
    assert (logits.mean(0) - plain).norm() < 0.3 * errors.mean()


@pytest.mark.parametrize("value", [-0.1, 1.0])
def test_impossible_values_are_refused(value):
    with pytest.raises(ValueError, match=f"--input-dropout {value}: must be in"):
        RecurrentConfig(input_dropout=value).check()
