"""Attention weights of every family, as the model itself computes them."""

import argparse
from types import SimpleNamespace

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY

import reference_lwc
from conftest import EOS, PAD, make_abd, make_deepatt, make_dictionary, make_lwc, make_transformer, random_batch
from lwc_fairseq.analysis.attention import force_batch
from lwc_fairseq.models.interface import attention_weights
from lwc_fairseq.tasks.concat_translation import ConcatTranslationConfig, ConcatTranslationTask

MODELS = {  # with how many layers and heads look at the source; whether a softmax sees the source alone
    "lwc": (make_lwc, 3, 2, False),
    "separate": (lambda: make_lwc(separate_attention=True), 3, 2, True),
    "deepatt": (make_deepatt, 3, 1, True),
    "vdeepatt": (lambda: make_deepatt("vdeepatt"), 3, 1, True),
    "mheadnmt": (lambda: make_deepatt("mheadnmt"), 1, 1, True),
    "abd": (make_abd, 1, 1, True),
    "transformer": (make_transformer, 2, 4, True),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_layer_and_head(name):
    make, layers, heads, alone = MODELS[name]
    model = make()
    src, prev = random_batch([(4, 3), (2, 6)], types=15)
    found = attention_weights(model, src, prev).source
    assert [weights.shape for weights in found] == [(2, heads, 6, 4)] * layers
    for weights in found:
        real = weights.transpose(1, 2)[prev.ne(PAD)]
        totals = real.sum(-1)
        assert torch.allclose(totals, torch.ones_like(totals)) if alone else bool((totals < 1).all())
        assert not weights[src.eq(PAD)[:, None, None].expand_as(weights)].any()


@pytest.mark.parametrize("name", ["deepatt", "lwc", "transformer"])
def test_mean_over_heads_is_what_the_model_calls_its_attention(name):
    make, *_ = MODELS[name]
    model = make()
    src, prev = random_batch([(4, 3), (2, 6)], types=15)
    _, extra = model.decoder(prev, model.encoder(src))
    expected = extra["attn"][0]
    layer = {"deepatt": 1}.get(name, -1)
    assert torch.allclose(attention_weights(model, src, prev).source[layer].mean(1), expected.to(src.device), atol=1e-6)


def test_hooks_are_taken_off_again():
    model = make_transformer()
    src, prev = random_batch([(4, 3)], types=15)
    before = model(src, None, prev)[0]
    attention_weights(model, src, prev)
    assert torch.equal(model(src, None, prev)[0], before)
    assert not any(layer.encoder_attn._forward_hooks for layer in model.decoder.layers)


def test_another_kind_of_model_is_refused():
    task = SimpleNamespace(source_dictionary=make_dictionary(17), target_dictionary=make_dictionary(17))
    args = argparse.Namespace(encoder_embed_dim=8, decoder_embed_dim=8, criterion="cross_entropy")
    ARCH_CONFIG_REGISTRY["lstm"](args)
    lstm = ARCH_MODEL_REGISTRY["lstm"].build_model(args, task).eval()
    with pytest.raises(ValueError, match="LSTMModel: cannot read the attention weights of this model; use one of"):
        attention_weights(lstm, *random_batch([(4, 3)], types=15))


def test_a_model_without_attention_is_refused():
    model = make_lwc()
    model.make_generation_fast_(need_attn=False)
    with pytest.raises(ValueError, match=r"gives no attention: call its make_generation_fast_\(need_attn=True\)"):
        attention_weights(model, *random_batch([(4, 3)], types=15))


def test_self_attention_of_the_transformer_sees_what_was_read():
    model = make_transformer()
    src, prev = random_batch([(4, 3), (2, 6)], types=15)
    for weights in attention_weights(model, src, prev).target:
        assert weights.shape == (2, 4, 6, 6)
        assert torch.allclose(weights.sum(-1), torch.ones(2, 4, 6)) and not weights.triu(1).any()
        assert not torch.allclose(weights[:, 0], weights[:, 1])  # heads, not their mean


def test_mixed_attention_is_of_both_sides():
    model = make_lwc()
    src, prev = random_batch([(4, 3), (4, 6)], types=15)
    weights = attention_weights(model, src, prev)
    for source, target in zip(weights.source, weights.target, strict=True):
        total = source.sum(-1) + target.sum(-1)
        assert torch.allclose(total, torch.ones_like(total)) and not target.triu(1).any()


def test_mixed_attention_is_that_of_the_reference(monkeypatch):
    """Every layer and head, to the source and to the target, of padded sentences."""
    rows = []
    shares = reference_lwc.shares
    monkeypatch.setattr(reference_lwc, "shares", lambda *args: rows.append(shares(*args)) or rows[-1])
    model, lengths = make_lwc(), [(4, 3), (2, 6)]
    weights = {name.removeprefix("encoder.stack."): value for name, value in model.named_parameters()}
    src, prev = random_batch(lengths)
    found = attention_weights(model, src, prev)
    for i, (n, m) in enumerate(lengths):
        source, target = src[i][src[i].ne(PAD)], prev[i][prev[i].ne(PAD)]
        rows.clear()
        sizes = {"layers": 3, "heads": 2, "pre_norm": False, "alpha": 6**0.25}
        reference_lwc.lwc_logits(weights, source.tolist(), target.tolist(), **sizes)
        for layer in range(3):
            end = (layer + 1) * (n + n + m)  # a layer attends for the source, then for source and target
            for t, expected in enumerate(rows[end - m : end]):
                to_source = found.source[layer][i, :, t, src[i].ne(PAD)]
                to_target = found.target[layer][i, :, t, : t + 1]
                assert torch.allclose(torch.cat([to_source, to_target], 1), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("left_pad_target", [False, True])
def test_a_right_to_left_translation_is_shown_in_reading_order(left_pad_target):
    """Each row stays that of the step that produces its token."""
    model, dictionary = make_deepatt(types=(17, 17)), make_dictionary(17)
    target, inputs = ([PAD, 8, 9, EOS], [PAD, EOS, 8, 9]) if left_pad_target else ([8, 9, EOS, PAD], [EOS, 8, 9, PAD])
    net_input = {"src_tokens": torch.tensor([[PAD, 5, 6, EOS]]), "prev_output_tokens": torch.tensor([inputs])}
    sample = {"id": torch.tensor([3]), "net_input": net_input, "target": torch.tensor([target])}
    tasks = [
        ConcatTranslationTask(ConcatTranslationConfig(reverse_target=reverse), dictionary, dictionary)
        for reverse in (False, True)
    ]
    (plain,), (reverse,) = (force_batch(model, task, sample) for task in tasks)
    assert plain.target == ["w4", "w5", "</s>"] and reverse.target == ["w5", "w4", "</s>"]
    assert plain.source == reverse.source == ["w1", "w2", "</s>"] and reverse.number == 3
    for before, after in zip(plain.attentions, reverse.attentions, strict=True):
        assert after.shape == (1, 3, 3) and torch.equal(after, before[:, [1, 0, 2]])
