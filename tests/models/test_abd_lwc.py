from types import SimpleNamespace

import pytest
import torch

from conftest import EOS, PAD, make_abd_lwc, make_dictionary, make_lwc, random_batch, without_padding
from lwc_fairseq.criterions.bidirectional_cross_entropy import (
    BidirectionalCrossEntropy,
    BidirectionalCrossEntropyConfig,
)
from lwc_fairseq.data.packing import BACKWARD, REFERENCE, SOURCE, TARGET, pack_segments
from lwc_fairseq.modules.mixed_attention import mixed_attention_mask
from properties import (
    future_target_tokens_change_nothing_earlier,
    generated_scores_are_those_of_teacher_forcing,
    sentence_alone_equals_the_same_in_a_batch,
    steps_equal_the_full_pass,
)
from reference_abd_lwc import bidirectional_loss, forward, greedy_backward, visible

LENGTHS = [(4, 3), (2, 6), (7, 1), (1, 2)]
REVERSE = pytest.mark.parametrize("reverse", ["greedy", "reference"])
SETTINGS = {  # options of the model, and of the reference
    "deepnorm": ({}, {"pre_norm": False, "alpha": 6**0.25}),
    "before": ({"layer_norm": "before"}, {"pre_norm": True}),
    "windows": ({"windows": "2,3,4"}, {"pre_norm": False, "alpha": 6**0.25, "windows": [2, 3, 4]}),
}
EVERY_SETTING = pytest.mark.parametrize("setting", SETTINGS)


def make(setting, **settings):
    """A model, and the options of its reference."""
    options, reference = SETTINGS[setting]
    return make_abd_lwc(**options, **settings), {"layers": 3, "heads": 2, **reference}


def weights(model):
    """The weights with the names of the reference, whose rows of sides are source, backward and target."""
    named = {name.removeprefix("encoder.stack."): value for name, value in model.named_parameters()}
    return {**named, "embedding.sides.weight": named["embedding.sides.weight"][[SOURCE, BACKWARD, TARGET]]}


def pairs(src, prev):
    """Source and target input of each sentence, and the reversed target input."""
    for s, p in zip(map(without_padding, src), map(without_padding, prev), strict=True):
        yield s, p, [EOS, *p[:0:-1]]


def search(model, source, options):
    """The reference's search; the end symbol counts toward the model's limit of twice the source."""
    return greedy_backward(weights(model), source, 2 * len(source) - 1, EOS, PAD, **options)


class TestAgainstTheReference:
    """The float64 reference of reference_abd_lwc.py, written from the equations with loops."""

    @EVERY_SETTING
    def test_greedy_backward_translations(self, setting):
        ended = []
        for seed in range(4):
            model, options = make(setting, seed=seed)
            with torch.no_grad():
                model.encoder.stack.embedding.tokens.weight[EOS] *= 2  # some searches end before their limit
            src, _ = random_batch(LENGTHS, seed=seed)
            for row, source in zip(model.reverse_translations(src), map(without_padding, src), strict=True):
                assert without_padding(row) == search(model, source, options)
                ended.append(len(without_padding(row)) < 2 * len(source) + 1)
        assert True in ended and False in ended

    @EVERY_SETTING
    def test_logits_of_both_directions(self, setting):
        model, options = make(setting)
        src, prev = random_batch(LENGTHS)
        logits, extra = model(src, None, prev, backward=True)
        for row, reverse, (source, target, reversed_target) in zip(
            logits, extra["backward"][0], pairs(src, prev), strict=True
        ):
            found = search(model, source, options)
            backwards, forwards = forward(weights(model), source, reversed_target, found, target, **options)
            assert torch.allclose(row[: len(target)], forwards, rtol=0, atol=1e-11)
            assert torch.allclose(reverse[: len(target)], backwards, rtol=0, atol=1e-11)

    @REVERSE
    @EVERY_SETTING
    def test_loss_and_every_gradient(self, setting, reverse):
        model, options = make(setting, reverse_context=reverse)
        src, prev = random_batch(LENGTHS)
        target = torch.full_like(prev, PAD)
        for row, given in zip(target, map(without_padding, prev), strict=True):
            row[: len(given)] = torch.tensor([*given[1:], EOS])
        task = SimpleNamespace(target_dictionary=make_dictionary(17))
        config = BidirectionalCrossEntropyConfig(forward_weight=0.6, label_smoothing=0.1, sentence_avg=False)
        net_input = {"src_tokens": src, "src_lengths": None, "prev_output_tokens": prev}
        sample = {"net_input": net_input, "target": target, "ntokens": int(target.ne(PAD).sum())}
        loss, _, _ = BidirectionalCrossEntropy.build_criterion(config, task)(model.train(), sample)

        expected = 0.0
        for source, given, reversed_given in pairs(src, prev):
            ended = [*reversed_given, EOS]
            found = search(model, source, options) if reverse == "greedy" else ended
            backwards, forwards = forward(weights(model), source, reversed_given, found, given, **options)
            expected = expected + bidirectional_loss(forwards, [*given[1:], EOS], backwards, ended[1:], 0.6, 0.1)
        assert loss.item() == pytest.approx(expected.item(), abs=1e-9)
        names, parameters = zip(*model.named_parameters(), strict=True)
        ours, theirs = torch.autograd.grad(loss, parameters), torch.autograd.grad(expected, parameters)
        for name, mine, reference in zip(names, ours, theirs, strict=True):
            assert torch.allclose(mine, reference, rtol=0, atol=1e-9), name

    @pytest.mark.parametrize("window", [None, *range(1, 8)])
    def test_mask(self, window):
        lengths = {"source": 5, "found": 4, "reversed": 3, "forward": 6}
        tokens = [torch.full((1, length), 7) for length in lengths.values()]
        packing = pack_segments(dict(zip([SOURCE, BACKWARD, REFERENCE, TARGET], tokens, strict=True)), PAD)
        (mask,) = mixed_attention_mask(packing, window)
        places = [(segment, i) for segment, length in lengths.items() for i in range(length)]
        for row, (segment, i) in zip(mask, places, strict=True):
            expected = visible(segment, i, lengths, window)
            assert [place for place, sees in zip(places, row.tolist(), strict=True) if sees] == sorted(
                expected, key=places.index
            )


class TestTraining:
    @REVERSE
    def test_padding_side_does_not_matter(self, reverse):
        model = make_abd_lwc(reverse_context=reverse).train()
        left, right = (
            model(src, None, prev, backward=True)
            for src, prev in (random_batch(LENGTHS, left_pad_source=side) for side in (True, False))
        )
        assert torch.allclose(left[0], right[0], rtol=0, atol=1e-12)
        assert torch.allclose(left[1]["backward"][0], right[1]["backward"][0], rtol=0, atol=1e-12)

    @pytest.mark.parametrize("over", [False, True])
    @EVERY_SETTING
    def test_given_translations(self, setting, over):
        """Logits of both directions, with the reversed target or the translations as target of the backward one."""
        model, options = make(setting, reverse_context="translations")
        src, prev = random_batch(LENGTHS)
        given = torch.tensor([[5, 6, EOS, PAD], [7, 8, 9, EOS], [EOS, PAD, PAD, PAD], [9, EOS, PAD, PAD]])
        kind = {"reverse_tokens": given, "backward": True, "over_translations": over}
        logits, extra = model.train()(src, None, prev, **kind)
        for i, (source, target, reversed_target) in enumerate(pairs(src, prev)):
            found = [EOS, *without_padding(given[i])]
            read = found[:-1] if over else reversed_target
            backwards, forwards = forward(weights(model), source, read, found, target, **options)
            assert torch.allclose(logits[i, : len(target)], forwards, rtol=0, atol=1e-11)
            assert torch.allclose(extra["backward"][0][i, : len(read)], backwards, rtol=0, atol=1e-11)
        decoded, _ = model.eval().decoder(prev, model.encoder(src, reverse_tokens=given))
        assert torch.allclose(decoded[prev.ne(PAD)], logits[prev.ne(PAD)], rtol=0, atol=1e-11)

    def test_the_search_has_no_dropout(self):
        model = make_abd_lwc(dropout=0.5)
        src, _ = random_batch(LENGTHS)
        expected = model.reverse_translations(src)
        model.train()
        for _ in range(3):
            assert torch.equal(model.reverse_translations(src), expected)
        assert model.training and all(module.training for module in model.modules())

    def test_the_forward_term_reaches_the_states_of_the_backward_translation(self):
        """Only they have the side embedding of the backward translation."""
        model = make_abd_lwc().train()
        src, prev = random_batch(LENGTHS)
        model(src, None, prev)[0].sum().backward()
        grad = model.encoder.stack.embedding.sides.weight.grad
        assert grad.shape == (3, 16) and grad[BACKWARD].abs().max() > 1e-6

    def test_checkpointed_activations_give_the_same_gradients(self):
        grads, src, prev = [], *random_batch(LENGTHS)
        for checkpointed in (False, True):
            model = make_abd_lwc(dropout=0.3, checkpoint_activations=checkpointed, reverse_context="reference").train()
            runs = []
            model.encoder.stack.layers[0].register_forward_pre_hook(lambda *_, runs=runs: runs.append(1))
            torch.manual_seed(1)
            out, extra = model(src, None, prev, backward=True)
            grads.append(torch.autograd.grad(out.sum() + extra["backward"][0].square().sum(), [*model.parameters()]))
            assert len(runs) == 1 + checkpointed
        assert all(torch.equal(one, other) for one, other in zip(*grads, strict=True))

    def test_lwc_of_the_same_size_has_one_side_less(self):
        numbers = [sum(p.numel() for p in make().parameters()) for make in (make_abd_lwc, make_lwc)]
        assert numbers[0] - numbers[1] == 16


class TestDecoding:
    @pytest.mark.parametrize("windows", [None, "2,3,4"])
    def test_steps_equal_the_full_pass(self, windows):
        model = make_abd_lwc(windows=windows)
        src, _ = random_batch(LENGTHS)

        def check(logits, extra, full_extra, src):
            weights = extra["attentions"]
            for layer in zip(weights.source, weights.reverse, weights.target, strict=True):
                assert torch.allclose(sum(part.sum(-1) for part in layer), torch.ones(()).double())
            assert weights.source[0].size(-1) == src.size(1)
            assert torch.allclose(extra["attn"][0], weights.source[-1].mean(1), rtol=0, atol=1e-12)

        steps_equal_the_full_pass(model, src, 9, check)

    def test_weights_are_those_of_the_tokens_that_reverse_translations_returns(self):
        model = make_abd_lwc()
        src, prev = random_batch(LENGTHS)
        weights, found = model.attention(src, prev), model.reverse_translations(src)
        for layer in weights.reverse:
            assert layer.size(-1) == found.size(1)
            assert torch.equal(layer.gt(0).all(2).all(1), found.ne(PAD))

    def test_sentence_alone_equals_the_same_in_a_batch(self):
        sentence_alone_equals_the_same_in_a_batch(make_abd_lwc(), random_batch(LENGTHS)[0], types=17)

    def test_generated_scores_are_those_of_teacher_forcing(self):
        generated_scores_are_those_of_teacher_forcing(make_abd_lwc(), random_batch(LENGTHS)[0], types=17)

    def test_future_target_tokens_change_nothing_earlier(self):
        src, prev = random_batch([(4, 5), (6, 5)])
        future_target_tokens_change_nothing_earlier(make_abd_lwc(), src, prev, words=13)

    def test_backward_translations_fit_into_the_table_of_positions(self):
        model = make_abd_lwc(max_target_positions=5, max_reverse_len_a=9)
        assert model.reverse_translations(random_batch(LENGTHS)[0]).size(1) <= 5

    def test_the_longest_reference_fits_into_the_table_of_positions(self):
        """As the backward translation, it has a start and an end symbol."""
        src, prev = random_batch([(6, 6), (3, 4)])
        longest = prev.size(1)
        limits = {"max_source_positions": longest, "max_target_positions": longest}
        made = [
            make_abd_lwc(reverse_context="reference", layers=1, **more).train()(src, None, prev, backward=True)[0]
            for more in (limits, {})
        ]
        assert torch.equal(*made)

    @pytest.mark.parametrize("limit", [1, 2, 4])
    def test_the_limit_counts_the_end_symbol(self, limit):
        model = make_abd_lwc(max_reverse_len_a=0, max_reverse_len_b=limit)
        found = [without_padding(row) for row in model.reverse_translations(random_batch(LENGTHS)[0])]
        assert max(map(len, found)) == 1 + limit
        assert {row[-1] for row in found} == {EOS}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"unshared_weights": True, "layers": 2}, "--unshared-weights: abd_lwc has no such ablation"),
        ({"separate_attention": True}, "--separate-attention: abd_lwc has no such ablation"),
        ({"max_reverse_len_b": -1}, "--max-reverse-len-a 2.0 --max-reverse-len-b -1: must be numbers from 0"),
        ({"windows": "3"}, "--windows 3: 1 widths, but --layers 3"),
    ],
)
def test_invalid_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        make_abd_lwc(**settings)
