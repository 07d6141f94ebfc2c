import math
from types import SimpleNamespace

import pytest
import torch
from fairseq.logging import metrics
from torch.nn.utils.rnn import pad_sequence

from conftest import EOS, PAD, make_abd, make_dictionary, make_rnmt, random_batch, without_padding
from lwc_fairseq.criterions.bidirectional_cross_entropy import (
    BidirectionalCrossEntropy,
    BidirectionalCrossEntropyConfig,
)
from lwc_fairseq.models.abd import ABDConfig, ABDModel
from lwc_fairseq.models.interface import BidirectionalModel
from properties import generated_scores_are_those_of_teacher_forcing, steps_equal_the_full_pass
from reference_abd import abd_loss, backward_pass, forward_pass, greedy_reverse

LENGTHS = [(4, 3), (2, 6), (7, 1), (1, 2)]
REVERSE = pytest.mark.parametrize("reverse", ["greedy", "reference"])


def weights(model):
    """The state dict, with the names of the reference."""
    state = model.state_dict(keep_vars=True)
    prefixes = ("encoder.recurrent.", "encoder."), ("decoder.backward_decoder.", "backward_decoder.")
    for ours, theirs in prefixes:
        state = {name.replace(ours, theirs): value for name, value in state.items()}
    return state


def batch(seed=0, **settings):
    """Source, target input and target (ending in EOS), padded."""
    src, prev = random_batch(LENGTHS, types=15, seed=seed, **settings)
    target = torch.full_like(prev, PAD)
    for row, given in zip(target, prev, strict=True):
        words = given[given.ne(PAD)][1:]
        row[: len(words) + 1] = torch.cat([words, torch.tensor([EOS])])
    return src, prev, target


def make_criterion(forward_weight=0.7, label_smoothing=0.0):
    task = SimpleNamespace(target_dictionary=make_dictionary(17))
    config = BidirectionalCrossEntropyConfig(
        forward_weight=forward_weight, label_smoothing=label_smoothing, sentence_avg=False
    )
    return BidirectionalCrossEntropy.build_criterion(config, task)


def make_sample(src, prev, target):
    net_input = {"src_tokens": src, "src_lengths": None, "prev_output_tokens": prev}
    return {"net_input": net_input, "target": target, "ntokens": int(target.ne(PAD).sum())}


class TestAgainstTheReference:
    """The float64 reference of reference_abd.py, written from the equations with loops."""

    @REVERSE
    @pytest.mark.parametrize("mode", ["train", "eval"])
    def test_both_decoders(self, reverse, mode):
        """In evaluation the reverse context is greedy, whatever it is in training."""
        model = make_abd(reverse_context=reverse)
        getattr(model, mode)()
        src, prev, _ = batch()
        logits, extra = model(src, None, prev, backward=True)
        known = weights(model)
        for i in range(len(src)):
            source, given = without_padding(src[i]), without_padding(prev[i])
            length = len(given)
            reversed_input = [EOS, *given[:0:-1]]
            expected_backward, reference_states = backward_pass(known, source, reversed_input)
            assert torch.allclose(extra["backward"][0][i, :length], expected_backward, rtol=0, atol=1e-9)
            states = reference_states
            if reverse == "greedy" or mode == "eval":
                states = backward_pass(known, source, greedy_reverse(known, source, 2 * len(source)))[1]
            expected, to_source, to_reverse = forward_pass(known, source, states, given)
            assert torch.allclose(logits[i, :length], expected, rtol=0, atol=1e-9)
            ours = extra["attentions"][0][i, :length][:, src[i].ne(PAD)]
            assert torch.allclose(ours, to_source, rtol=0, atol=1e-9)
            assert torch.allclose(extra["attentions"][1][i, :length, : len(states)], to_reverse, rtol=0, atol=1e-9)
            assert not extra["attentions"][1][i, :length, len(states) :].any()

    @REVERSE
    @pytest.mark.parametrize("smoothing", [0.0, 0.1])
    def test_loss_and_every_gradient(self, reverse, smoothing):
        model = make_abd(reverse_context=reverse).train()
        src, prev, target = batch()
        # fairseq's own log-softmax is in single precision
        model.get_normalized_probs = lambda output, log_probs: output[0].log_softmax(-1)
        loss, tokens, logged = make_criterion(0.7, smoothing)(model, make_sample(src, prev, target))
        parts = []
        for source, words in zip(map(without_padding, src), map(without_padding, target), strict=True):
            parts.append(abd_loss(weights(model), source, words, 0.7, reverse, 2 * len(source), smoothing))
        expected, forward, backward = (sum(part) for part in zip(*parts, strict=True))
        assert loss.item() == pytest.approx(expected.item(), abs=1e-9)
        assert logged["nll_loss"].item() == pytest.approx(forward.item(), abs=1e-9)
        assert logged["backward_nll_loss"].item() == pytest.approx(backward.item(), abs=1e-9)
        assert tokens == sum(m for _, m in LENGTHS)
        names, parameters = zip(*model.named_parameters(), strict=True)
        ours, theirs = torch.autograd.grad(loss, parameters), torch.autograd.grad(expected, parameters)
        for name, mine, its in zip(names, ours, theirs, strict=True):
            assert torch.allclose(mine, its, rtol=0, atol=1e-9), name
            assert mine.abs().sum() > 0, name


class TestCriterion:
    def test_a_tiny_case_by_hand(self):
        """Two targets, [5 6 </s>] and [5 </s>], of a model with fixed probabilities of its seven types."""
        rising = torch.arange(1.0, 8.0) / 28  # type 5 has 6/28, type 6 has 7/28, </s> (2) has 3/28
        even = torch.full((7,), 1 / 7)
        forward = torch.stack([rising, even, rising, rising, even]).log()  # three steps, then two
        backward = torch.stack([even, rising, even, even, rising]).log()
        identity = torch.eye(7), torch.zeros(7)
        extra = {"output_layer": identity}

        def padded(steps):
            return pad_sequence([steps[:3], steps[3:]], batch_first=True)

        class Model(BidirectionalModel):
            def __init__(self):
                torch.nn.Module.__init__(self)

            def forward(self, **given):
                return padded(forward), {"output_layer": identity, "backward": (padded(backward), extra)}

        target = torch.tensor([[5, 6, EOS], [5, EOS, PAD]])
        sample = make_sample(None, None, target)
        loss, tokens, logged = make_criterion(0.7)(Model(), sample)
        by_hand_forward = -math.log(6 / 28 / 7 * 3 / 28) - math.log(6 / 28 / 7)
        by_hand_backward = -math.log(1 / 7 * 6 / 28 / 7) - math.log(1 / 7 * 3 / 28)  # reversed: [6 5 </s>], [5 </s>]
        assert tokens == 5
        assert logged["nll_loss"].item() == pytest.approx(by_hand_forward, abs=1e-5)
        assert logged["backward_nll_loss"].item() == pytest.approx(by_hand_backward, abs=1e-5)
        assert loss.item() == pytest.approx(0.7 * by_hand_forward + 0.3 * by_hand_backward, abs=1e-5)

    @pytest.mark.parametrize("forward_weight", [0.0, 1.0])
    def test_each_term_alone(self, forward_weight):
        model, sample = make_abd().train(), make_sample(*batch())
        loss, _, logged = make_criterion(forward_weight)(model, sample)
        name = "nll_loss" if forward_weight else "backward_nll_loss"
        assert loss.item() == pytest.approx(logged[name].item(), rel=1e-6)

    def test_the_backward_decoder_learns_through_its_states_alone(self):
        """With λ = 1, all of it except its readout and output layer, which only choose tokens."""
        model = make_abd().train()
        make_criterion(1.0)(model, make_sample(*batch()))[0].backward()
        for name, parameter in model.decoder.backward_decoder.named_parameters():
            chooses = name.startswith(("readout", "output"))
            assert (parameter.grad is None or not parameter.grad.any()) == chooses, name

    def test_metrics(self):
        logs = [
            {"loss": 10.0, "nll_loss": 6.0, "backward_nll_loss": 4.0, "ntokens": 4, "sample_size": 4},
            {"loss": 20.0, "nll_loss": 9.0, "backward_nll_loss": 8.0, "ntokens": 6, "sample_size": 6},
        ]
        for log, tokens in zip(logs, (1, 3), strict=True):
            log["backward_ntokens"] = tokens
        with metrics.aggregate() as meters:
            BidirectionalCrossEntropy.reduce_metrics(logs)
        values = meters.get_smoothed_values()
        assert values["loss"] == pytest.approx(3.0 / math.log(2), abs=1e-3)
        assert values["nll_loss"] == pytest.approx(1.5 / math.log(2), abs=1e-3)
        assert values["ppl"] == pytest.approx(math.exp(1.5), abs=0.01)
        assert values["backward_ppl"] == pytest.approx(math.exp(3.0), abs=0.01)

    @pytest.mark.parametrize("forward_weight", [-0.1, 1.1])
    def test_weight_out_of_range(self, forward_weight):
        with pytest.raises(ValueError, match=rf"--forward-weight {forward_weight}: λ must be in \[0, 1\]"):
            make_criterion(forward_weight)

    def test_a_model_without_backward_decoder(self):
        with pytest.raises(ValueError, match="needs a model with a backward decoder, but this has none: train"):
            make_criterion()(torch.nn.Linear(1, 1), make_sample(*batch()))


def search(model, src):
    """The reverse translations of a batch."""
    source = model.encoder(src)
    return model.decoder.search(source, model.decoder.begin_backward(source))


class TestReverseContext:
    def test_search_equals_a_loop_over_sentences(self):
        for seed in range(5):
            model = make_abd(seed=seed)
            src, _, _ = batch(seed)
            tokens, reverse = search(model, src)
            for i, row in enumerate(src):
                words = without_padding(row)
                expected = greedy_reverse(weights(model), words, 2 * len(words))
                assert [EOS, *without_padding(tokens[i])[:-1]] == expected
                assert (~reverse.padding_mask[i]).sum() == len(expected)

    def test_length_of_the_reverse_translation(self):
        model = make_abd(max_reverse_len_a=0.5, max_reverse_len_b=2)
        model.decoder.backward_decoder.output.bias.data[EOS] = -1e9  # it never ends by itself
        _, reverse = search(model, batch()[0])
        assert (~reverse.padding_mask).sum(1).tolist() == [int(0.5 * n + 2) for n, _ in LENGTHS]

    @pytest.mark.parametrize("mode", ["train", "eval"])
    @pytest.mark.parametrize("make", [make_abd, make_rnmt])
    def test_given_translations_equal_those_that_it_finds(self, make, mode):
        """Logits of both directions and, in training, the gradients; also if the translations are padded more."""
        src, prev, _ = batch()
        results = []
        for reverse in ("translations", "greedy"):
            model = getattr(make(reverse_context=reverse), mode)()
            found = torch.nn.functional.pad(model.reverse_translations(src), (0, 2), value=PAD)
            tokens = found if reverse == "translations" else None
            logits, extra = model(src, None, prev, backward=True, reverse_tokens=tokens)
            results.append([logits, extra["backward"][0]])
            if mode == "train":
                loss = logits.square().sum() + extra["backward"][0].square().sum()
                results[-1] += torch.autograd.grad(loss, list(model.parameters()))
        for mine, its in zip(*results, strict=True):
            assert torch.allclose(mine, its, rtol=0, atol=1e-9)

    def test_the_backward_decoder_over_the_translations(self):
        src, prev, _ = batch()
        model, known = make_abd(), weights(make_abd())
        given = torch.tensor([[5, 6, EOS, PAD], [7, 8, 9, EOS], [EOS, PAD, PAD, PAD], [9, EOS, PAD, PAD]])
        logits, extra = model(src, None, prev, backward=True, reverse_tokens=given, over_translations=True)
        for i, row in enumerate(given):
            source, words, target = without_padding(src[i]), without_padding(row), without_padding(prev[i])
            backward, states = backward_pass(known, source, [EOS, *words[:-1]])
            assert torch.allclose(extra["backward"][0][i, : len(words)], backward, rtol=0, atol=1e-9)
            expected, _, _ = forward_pass(known, source, states, target)
            assert torch.allclose(logits[i, : len(target)], expected, rtol=0, atol=1e-9)

    @pytest.mark.parametrize("make", [make_abd, make_rnmt])
    def test_decoding_over_given_translations_equals_teacher_forcing(self, make):
        src, prev, _ = batch()
        model = make()
        given = torch.tensor([[5, 6, EOS, PAD], [7, 8, 9, EOS], [EOS, PAD, PAD, PAD], [9, EOS, PAD, PAD]])
        expected, _ = model(src, None, prev, reverse_tokens=given)
        source = model.encoder(src, reverse_tokens=given)
        order = torch.tensor([3, 1, 1, 0])
        for rows, encoded in ((torch.arange(4), source), (order, source.reorder(order))):
            logits, _ = model.decoder(prev[rows], encoded)
            assert torch.allclose(logits, expected[rows], rtol=0, atol=1e-12)

    def test_dropout_does_not_choose_tokens(self):
        model = make_abd(dropout=0.5, input_dropout=0.0)
        src, _, _ = batch()
        searches = [model.train(mode).reverse_translations(src) for mode in (True, False)]
        assert torch.equal(*searches)

    def test_the_search_drops_no_words(self):
        model = make_abd(input_dropout=0.5)
        source = model.encoder(batch()[0])  # without dropout
        start = model.decoder.begin_backward(source)
        searches = [model.train(mode).decoder.search(source, start)[0] for mode in (True, False)]
        assert torch.equal(*searches)

    @REVERSE
    def test_what_comes_after_the_end_never_matters(self, reverse):
        """More padding, on either side, changes neither the loss nor any gradient."""
        src, prev, target = batch()
        results = []
        for pad_row in (False, True):
            model = make_abd(reverse_context=reverse).train()
            s, p, t = src, prev, target
            if pad_row:  # wider source and target, padded more
                s = torch.nn.functional.pad(src, (3, 0), value=PAD)
                p, t = (torch.nn.functional.pad(x, (0, 4), value=PAD) for x in (prev, target))
            loss, _, _ = make_criterion(0.5)(model, make_sample(s, p, t))
            results.append([loss, *torch.autograd.grad(loss, list(model.parameters()))])
        for mine, its in zip(*results, strict=True):
            assert torch.allclose(mine, its, rtol=0, atol=1e-6)

    def test_a_sentence_alone_equals_the_same_in_a_batch_and_padding_side_does_not_matter(self):
        model = make_abd()
        src, prev, _ = batch()
        right, _, _ = batch(left_pad_source=False)
        logits = model(src, None, prev)[0]
        assert torch.allclose(model(right, None, prev)[0], logits, rtol=0, atol=1e-12)
        for i, row in enumerate(src):
            alone = model(row[row.ne(PAD)][None], None, prev[i : i + 1])[0]
            assert torch.allclose(alone[0], logits[i], rtol=0, atol=1e-12)


@REVERSE
def test_training_learns_in_both_directions(reverse):
    """The target is the source: after some updates, both losses are a small fraction of the first ones."""
    model = make_abd(types=(12, 12), dtype=torch.float32, reverse_context=reverse, embed_dim=24, hidden_dim=24).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    criterion = make_criterion(0.5)
    losses = []
    for seed in range(150):
        words = torch.randint(4, 12, (32, 4), generator=torch.Generator().manual_seed(seed))
        end = torch.full((32, 1), EOS)
        target = torch.cat([words, end], dim=1)
        loss, tokens, logged = criterion(model, make_sample(target, torch.cat([end, words], dim=1), target))
        optimizer.zero_grad()
        (loss / tokens).backward()
        optimizer.step()
        losses.append((logged["nll_loss"].item(), logged["backward_nll_loss"].item()))
    for first, last in zip(losses[0], losses[-1], strict=True):
        assert last < 0.2 * first


class TestDecoding:
    def test_step_by_step_with_reordering_equals_the_full_pass(self):
        def check(logits, extra, full_extra, sources):
            assert torch.allclose(extra["attn"][0][:, -1], full_extra["attn"][0][:, -1], rtol=0, atol=1e-12)

        steps_equal_the_full_pass(make_abd(), batch()[0], steps=8, check=check)

    def test_generated_scores_are_those_of_teacher_forcing(self):
        src, _ = random_batch([(5, 1), (9, 1)], types=40)
        generated_scores_are_those_of_teacher_forcing(make_abd(types=(40, 40)), src, types=40)


class TestConfiguration:
    def test_parameters(self):
        """130.0M are published, with 620/1000 and 30,000 types on each side."""
        dictionaries = [make_dictionary(30_000) for _ in range(2)]
        task = SimpleNamespace(source_dictionary=dictionaries[0], target_dictionary=dictionaries[1])
        with torch.device("meta"):
            model = ABDModel.build_model(ABDConfig(), task)
        assert sum(parameter.numel() for parameter in model.parameters()) == pytest.approx(130.0e6, rel=3e-3)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"hidden_dim": 0}, "--hidden-dim 0: must be at least 1"),
            ({"dropout": 1.0}, r"--dropout 1.0: must be in \[0, 1\)"),
            ({"init_std": 0.0}, "--init-std 0.0: must be a number above 0"),
            ({"max_reverse_len_a": math.inf}, "--max-reverse-len-a inf --max-reverse-len-b 0: must be numbers from 0"),
            ({"max_reverse_len_a": -1.0}, "--max-reverse-len-a -1.0 --max-reverse-len-b 0: must be numbers from 0"),
        ],
    )
    def test_impossible_settings_are_refused_by_name(self, settings, message):
        with pytest.raises(ValueError, match=message):
            make_abd(**settings)


def test_plain_kernels_equal_the_kernels():
    ours, plain = make_abd(), make_abd(plain_kernels=True)
    plain.load_state_dict(ours.state_dict())
    src, prev, _ = batch()
    assert torch.allclose(ours(src, None, prev)[0], plain(src, None, prev)[0], rtol=0, atol=1e-12)
