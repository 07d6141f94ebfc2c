import copy

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from fairseq.tasks.translation import TranslationTask

from conftest import EOS, PAD, make_dictionary, make_lwc, random_batch
from lwc_fairseq.data.packing import pack
from lwc_fairseq.models.lwc_transformer import PRESETS, LWCTransformerConfig, LWCTransformerModel
from lwc_fairseq.modules.mixed_attention import mixed_attention_mask
from properties import (
    future_target_tokens_change_nothing_earlier,
    generated_scores_are_those_of_teacher_forcing,
    sentence_alone_equals_the_same_in_a_batch,
    steps_equal_the_full_pass,
)
from reference_lwc import lwc_logits, lwc_loss, visible

LENGTHS = [(4, 3), (2, 6), (7, 1), (1, 2)]
TABLE_3 = ["full", "unshared", "separate", "both", "no-side", "no-position"]
ABLATIONS = {  # options of the model, and of the reference
    "full": ({}, {}),
    "unshared": ({"unshared_weights": True}, {"unshared": True}),
    "separate": ({"separate_attention": True}, {"separate": True}),
    "both": ({"unshared_weights": True, "separate_attention": True}, {"unshared": True, "separate": True}),
    "no-side": ({"no_side_embedding": True}, {"side_embedding": False}),
    "no-position": ({"no_position_embedding": True}, {"position_embedding": False}),
    "windows": ({"windows": "3,2"}, {"windows": [3, 2]}),
    "separate, windows": ({"separate_attention": True, "windows": "3,2"}, {"separate": True, "windows": [3, 2]}),
    "no-side, windows": ({"no_side_embedding": True, "windows": "1,4"}, {"side_embedding": False, "windows": [1, 4]}),
    "no-position, windows": (
        {"no_position_embedding": True, "windows": "2,2"},
        {"position_embedding": False, "windows": [2, 2]},
    ),
}
EVERY_ABLATION = pytest.mark.parametrize("ablation", ABLATIONS)
NORMS = {
    "before": {"pre_norm": True},
    "after": {"pre_norm": False},
    "deepnorm": {"pre_norm": False, "alpha": 4**0.25},  # of the two layers of `make_ablation`
}
EVERY_NORM = pytest.mark.parametrize("norm", NORMS)


def rows_without_padding(src, prev):
    return [(s[s.ne(PAD)].tolist(), p[p.ne(PAD)].tolist()) for s, p in zip(src, prev, strict=True)]


def weights(model):
    return {name.removeprefix("encoder.stack."): value for name, value in model.named_parameters()}


def make_ablation(ablation, **settings):
    """A model of two layers on each side, and the options of its reference."""
    options, reference = ABLATIONS[ablation]
    layers = 4 if "unshared_weights" in options else 2
    return make_lwc(layers=layers, **options, **settings), {"layers": 2, "heads": 2, **reference}


def as_fields(packing):
    return vars(packing)


class TestAgainstTheReference:
    """The float64 reference of reference_lwc.py, written from the equations with loops."""

    @EVERY_NORM
    @EVERY_ABLATION
    def test_logits(self, ablation, norm):
        model, options = make_ablation(ablation, layer_norm=norm)
        src, prev = random_batch(LENGTHS)
        logits, _ = model(src, None, prev)
        for row, (source, target) in zip(logits, rows_without_padding(src, prev), strict=True):
            expected = lwc_logits(weights(model), source, target, **NORMS[norm], **options)
            assert torch.allclose(row[: len(target)], expected, rtol=0, atol=1e-9)

    @EVERY_NORM
    @EVERY_ABLATION
    def test_label_smoothed_loss_and_every_gradient(self, ablation, norm):
        model, options = make_ablation(ablation, layer_norm=norm)
        src, prev = random_batch(LENGTHS)
        target = torch.where(prev.ne(PAD), (prev + 3) % 13 + 4, PAD)
        # fairseq's own log-softmax is in single precision
        probs = model(src, None, prev)[0].log_softmax(-1).view(-1, 17)
        loss, _ = label_smoothed_nll_loss(probs, target.view(-1, 1), 0.1, ignore_index=PAD)

        triples = [
            (source, given, row[row.ne(PAD)].tolist())
            for (source, given), row in zip(rows_without_padding(src, prev), target, strict=True)
        ]
        expected = lwc_loss(weights(model), triples, label_smoothing=0.1, **NORMS[norm], **options)
        assert loss.item() == pytest.approx(expected.item(), abs=1e-9)
        names, parameters = zip(*model.named_parameters(), strict=True)
        ours, theirs = torch.autograd.grad(loss, parameters), torch.autograd.grad(expected, parameters)
        for name, mine, reference in zip(names, ours, theirs, strict=True):
            # the embedding of padding is not trained and enters no sum
            assert torch.allclose(mine, reference, rtol=0, atol=1e-9), name

    @pytest.mark.parametrize("window", [None, *range(1, 10)])
    def test_mask(self, window):
        mask = mixed_attention_mask(pack(*random_batch(LENGTHS), PAD), window)
        for (n, m), row in zip(LENGTHS, mask, strict=True):
            for i in range(n + m):
                assert row[i].nonzero().flatten().tolist() == visible(i, n, m, window)


class TestDoors:
    def test_packed_door_equals_padded_door(self):
        model = make_lwc()
        src, prev = random_batch(LENGTHS)
        padded, _ = model(src, None, prev)
        packed, _ = model(src, None, prev, packing=as_fields(pack(src, prev, PAD)))
        assert torch.equal(padded, packed)

    @pytest.mark.parametrize("edit", ["a source word", "a target word", "padding", "fewer columns"])
    def test_a_batch_that_is_edited_after_packing(self, edit):
        """Scheduled sampling and word dropout edit the tokens of a batch."""
        model = make_lwc()
        src, prev = random_batch(LENGTHS)
        packing = as_fields(pack(src, prev, PAD))
        if edit == "a source word":
            src[1, -2] = 7 if src[1, -2] != 7 else 8
        elif edit == "fewer columns":
            prev = prev[:, :-1]
        else:
            prev[0, 1] = 7 if edit == "a target word" else PAD
        assert torch.equal(model(src, None, prev, packing=packing)[0], model(src, None, prev)[0])

    def test_padding_side_does_not_matter(self):
        model = make_lwc()
        left, right = (model(*self._batch(side))[0] for side in (True, False))
        assert torch.equal(left, right)

    @staticmethod
    def _batch(left_pad_source):
        src, prev = random_batch(LENGTHS, left_pad_source=left_pad_source)
        return src, None, prev

    @EVERY_ABLATION
    def test_encoder_and_decoder_without_state_equal_the_packed_pass(self, ablation):
        model, _ = make_ablation(ablation)
        src, prev = random_batch(LENGTHS)
        packed, _ = model(src, None, prev)
        cached, _ = model.decoder(prev, model.encoder(src))
        real = prev.ne(PAD)
        assert torch.allclose(cached[real], packed[real], rtol=0, atol=1e-12)


class TestDecoding:
    @EVERY_NORM
    @EVERY_ABLATION
    def test_step_by_step_with_reordering_equals_the_full_pass(self, ablation, norm):
        def check(logits, extra, full_extra, sources):
            assert extra["attn"][0].shape == (len(sources), 1, sources.size(1))
            assert not extra["attn"][0][:, 0][sources.eq(PAD)].any()

        src, _ = random_batch(LENGTHS)
        model, _ = make_ablation(ablation, layer_norm=norm)
        steps_equal_the_full_pass(model, src, steps=9, check=check)

    def test_source_keys_are_not_copied_for_a_beam_nor_for_a_step(self):
        model = make_lwc()
        src, _ = random_batch(LENGTHS)
        encoder_out = model.encoder(src)
        beams = model.encoder.reorder_encoder_out(encoder_out, torch.arange(4).repeat_interleave(5))
        stepped = model.encoder.reorder_encoder_out(beams, torch.arange(20))
        assert all(a is b for a, b in zip(encoder_out.keys, stepped.keys, strict=True))
        assert encoder_out.keys[0].size(0) == 4

    @pytest.mark.parametrize("layer", [0, 1, -1])
    def test_alignment_is_the_named_layers_attention_to_the_source(self, layer):
        model = make_lwc(alignment_layer=layer)
        src, prev = random_batch([(4, 3)])
        stack, packing = model.encoder.stack, pack(src, prev, PAD)
        x = stack.embedding(packing.tokens, packing.sides, packing.positions)
        projected = []
        for each in stack.layers:
            projected.append(each.project(x))
            x = each(x, stack.packed_attention(packing, None))
        query, key, _ = projected[layer].unbind(1)  # (7, 2, 8) each
        scores = torch.einsum("ihd,jhd->hij", query, key) / 8**0.5
        weights = scores.masked_fill(~mixed_attention_mask(packing), -torch.inf).softmax(-1)

        _, extra = model.decoder(prev, model.encoder(src))
        assert torch.allclose(extra["attn"][0][0], weights.mean(0)[4:, :4], rtol=0, atol=1e-12)
        model.decoder.make_generation_fast_(need_attn=None)
        assert model.decoder(prev, model.encoder(src))[1]["attn"] is None

    @pytest.mark.parametrize("separate", [False, True])
    def test_shown_weights_are_those_of_the_windows(self, separate):
        """Of all target tokens at once, and of the last one in a step."""
        model = make_lwc(windows="1,2,4", separate_attention=separate)
        src, prev = random_batch([(4, 7)])
        together = model.attention(src, prev).target
        encoder_out, state = model.encoder(src), {}
        for length in range(1, 8):
            _, extra = model.decoder(prev[:, :length], encoder_out, state)
        for window, layer, last in zip((1, 2, 4), together, extra["attentions"].target, strict=True):
            for i in range(7):
                seen = [j - 4 for j in visible(4 + i, 4, 7, window) if j >= 4]
                assert layer[0, :, i].sum(0).nonzero().flatten().tolist() == seen
            assert torch.allclose(last[0, :, 0], layer[0, :, -1], rtol=0, atol=1e-12)

    @EVERY_ABLATION
    def test_a_prefix_of_several_tokens_equals_the_full_pass(self, ablation):
        model, _ = make_ablation(ablation)
        src, prev = random_batch([(4, 6), (2, 6), (7, 6)])
        encoder_out, state, steps = model.encoder(src), {}, []
        for length in (2, 5, 6):
            steps.append(model.decoder(prev[:, :length], encoder_out, state)[0])
        assert torch.allclose(torch.cat(steps, dim=1), model(src, None, prev)[0], rtol=0, atol=1e-12)

    @EVERY_ABLATION
    def test_a_sentence_alone_equals_the_same_in_a_batch(self, ablation):
        src, _ = random_batch([(5, 1), (1, 1), (9, 1), (3, 1)], types=40)
        sentence_alone_equals_the_same_in_a_batch(make_ablation(ablation, types=40)[0], src, types=40)

    def test_generated_scores_are_those_of_teacher_forcing(self):
        src, _ = random_batch([(5, 1), (9, 1)], types=40)
        generated_scores_are_those_of_teacher_forcing(make_lwc(types=40), src, types=40)


class TestInvariants:
    @EVERY_ABLATION
    def test_a_future_target_token_changes_nothing_earlier(self, ablation):
        model, options = make_ablation(ablation)
        reach = sum(width - 1 for width in options["windows"]) if "windows" in options else None
        batch = random_batch([(4, 6), (6, 6)])
        future_target_tokens_change_nothing_earlier(model, *batch, words=13, reach=reach)

    def test_source_states_never_depend_on_the_target(self):
        model = make_lwc()
        src, prev = random_batch(LENGTHS)
        stack, packing = model.encoder.stack, pack(src, prev, PAD)
        inputs = []
        stack.layers[-1].register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
        stack(packing)
        stack(pack(src, prev[:, :0], PAD))
        states, alone = inputs
        assert torch.allclose(states[packing.sides == 0], alone, rtol=0, atol=1e-12)

    def test_the_last_layer_has_no_feed_forward_network_over_the_source(self):
        model = make_lwc()
        src, prev = random_batch(LENGTHS)
        layers, rows = model.encoder.stack.layers, []
        for layer in layers:
            layer.fc1.register_forward_pre_hook(lambda _, args: rows.append(len(args[0])))
        model(src, None, prev)
        source, target = src.ne(PAD).sum(), prev.ne(PAD).sum()
        assert rows == [source + target] * (len(layers) - 1) + [target]

    def test_every_parameter_gets_a_gradient(self):
        for ablation, norm in (*(("full", norm) for norm in NORMS), *((name, "deepnorm") for name in ABLATIONS)):
            model = make_ablation(ablation, layer_norm=norm)[0].train()
            src, prev = random_batch(LENGTHS)
            model(src, None, prev)[0].square().sum().backward()
            for name, parameter in model.named_parameters():
                # a softmax does not see what is added to all its scores, so the bias of keys has no effect
                parts = (parameter.grad[:16], parameter.grad[32:]) if name.endswith("qkv.bias") else (parameter.grad,)
                assert all(part.abs().sum() > 0 for part in parts), name

    @pytest.mark.parametrize("ablation", ["full", "unshared"])
    def test_activations_made_anew_give_the_same_gradients(self, ablation):
        gradients = []
        for checkpointed in (False, True):
            model, _ = make_ablation(ablation, dropout=0.3, checkpoint_activations=checkpointed)
            runs = []
            model.encoder.stack.layers[0].register_forward_pre_hook(lambda *_, runs=runs: runs.append(1))
            src, prev = random_batch(LENGTHS)
            torch.manual_seed(1)
            model.train()(src, None, prev)[0].square().sum().backward()
            gradients.append([parameter.grad for parameter in model.parameters()])
            assert len(runs) == 1 + checkpointed
        assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))

    def test_only_padding(self):
        """A row without any source token, which fairseq does not make, gives no NaN."""
        for ablation in ABLATIONS:
            model, _ = make_ablation(ablation)
            logits, _ = model(torch.tensor([[PAD, PAD], [4, EOS]]), None, torch.tensor([[EOS, 5], [EOS, 5]]))
            assert logits.isfinite().all()

    def test_weights_are_held_once(self):
        model = make_lwc()
        assert len(model.state_dict()) == len(list(model.parameters())) == len(weights(model))

    def test_a_copy_decodes_with_its_own_weights(self):
        """Like the copy of fairseq's --store-ema."""
        model = make_lwc()
        src, prev = random_batch([(4, 3)])
        before, _ = model.decoder(prev, model.encoder(src))
        other = copy.deepcopy(model)
        for parameter in other.parameters():
            parameter.data.mul_(-0.5)
        changed, _ = other.decoder(prev, other.encoder(src))
        assert torch.allclose(changed, other(src, None, prev)[0], rtol=0, atol=1e-12)
        assert not torch.allclose(changed, before)
        assert torch.equal(model.decoder(prev, model.encoder(src))[0], before)

    def test_half_precision(self):
        model, single = make_lwc(dtype=torch.float32).bfloat16(), make_lwc(dtype=torch.float32)
        src, prev = random_batch(LENGTHS)
        half, full = model(src, None, prev)[0].float(), single(src, None, prev)[0]
        assert torch.nn.functional.cosine_similarity(half[0].flatten(), full[0].flatten(), dim=0) > 0.99
        step, _ = model.decoder(prev[:, :1], model.encoder(src), {})
        assert torch.allclose(step[:, 0].float(), half[:, 0], atol=0.5)


class TestConfiguration:
    def build(self, types, **settings):
        dictionary = make_dictionary(types)
        task = TranslationTask.__new__(TranslationTask)
        task.src_dict = task.tgt_dict = dictionary
        positions = {"max_source_positions": 1024, "max_target_positions": 1024}
        return LWCTransformerModel.build_model(LWCTransformerConfig(**positions, **settings), task)

    def test_parameters_of_the_papers_small_model(self):
        """Table 3: 19.07M with 14 layers and a joint vocabulary of 31,300."""
        model = self.build(31_300, **PRESETS["lwc_transformer_small"])
        count = sum(parameter.numel() for parameter in model.parameters())
        assert count == 14 * 789_760 + 31_300 * 256 + 2 * 256  # layers, tokens, sides
        assert round(count / 1e6, 2) == 19.07

    @pytest.mark.parametrize("ablation", TABLE_3)
    def test_parameters_of_the_ablations(self, ablation):
        """Table 3: 19.07M, all of them."""
        model = self.build(31_300, **PRESETS["lwc_transformer_small"], **ABLATIONS[ablation][0])
        assert round(sum(parameter.numel() for parameter in model.parameters()) / 1e6, 2) == 19.07

    @pytest.mark.parametrize(("norm", "gain"), [("deepnorm", 1 / 32**0.25), ("before", 1 / 8**0.5)])
    @pytest.mark.parametrize("ablation", TABLE_3)
    def test_the_last_projections_begin_small(self, ablation, norm, gain):
        """Of four layers on each side. Everything else begins as with --residual-gain 1."""
        options = {**ABLATIONS[ablation][0], "layer_norm": norm}
        layers = 8 if "unshared_weights" in options else 4
        sizes = {"layers": layers, "embed_dim": 16, "ffn_embed_dim": 24, "attention_heads": 2}
        torch.manual_seed(1)
        plain = dict(self.build(100, **sizes, **options, residual_gain=1.0).named_parameters())
        torch.manual_seed(1)
        for name, begun in self.build(100, **sizes, **options).named_parameters():
            last = name.endswith(("attention.out.weight", "fc2.weight"))
            torch.testing.assert_close(begun, plain[name] * gain if last else plain[name])

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"embed_dim": 30, "attention_heads": 4}, "--embed-dim 30 is not divisible by --attention-heads 4"),
            ({"embed_dim": 15, "attention_heads": 5}, "--embed-dim 15 is odd"),
            ({"layers": 0}, "--layers 0: must be at least 1"),
            ({"attention_heads": -2}, "--attention-heads -2: must be at least 1"),
            ({"dropout": 1.0}, r"--dropout 1.0: must be in \[0, 1\)"),
            ({"residual_gain": 0.0}, "--residual-gain 0.0: must be a number above 0"),
            ({"alignment_layer": 14}, "--alignment-layer 14: with 14 layers on the target side it must be from -14"),
            ({"layers": 5, "unshared_weights": True}, "--layers 5 --unshared-weights: half of the layers serve the"),
            ({"layers": 4, "windows": "3,5,7"}, "--windows 3,5,7: 3 widths, but --layers 4: give each layer a width"),
            ({"layers": 2, "windows": "3,0"}, "--windows 3,0: give whole numbers from 1, separated by commas"),
            ({"layers": 2, "windows": "3, x"}, "--windows 3, x: give whole numbers from 1, separated by commas"),
            (
                {"layers": 2, "windows": "3", "unshared_weights": True},
                "--windows cannot be combined with --unshared-we",
            ),
            ({**PRESETS["lwc_local_small"], "layers": 10}, "14 widths, but --layers 10: give each layer a width"),
        ],
    )
    def test_impossible_settings_are_refused_by_name(self, settings, message):
        with pytest.raises(ValueError, match=message):
            self.build(100, **settings)

    def test_the_positions_of_fairseq(self):
        """All sines before all cosines; the first position is 2."""
        table = make_lwc(embed_dim=16, positions="fairseq").encoder.stack.embedding.positions
        angles = [[(position + 2) / 10000 ** (i / 7) for i in range(8)] for position in range(len(table))]
        expected = torch.tensor(angles, dtype=torch.float64)
        expected = torch.cat([expected.sin(), expected.cos()], dim=1)
        assert torch.allclose(table.double(), expected, rtol=0, atol=1e-4)  # fairseq computes them in single precision

    def test_separate_dictionaries_are_refused(self):
        task = TranslationTask.__new__(TranslationTask)
        task.src_dict, task.tgt_dict = make_dictionary(20), make_dictionary(30)
        with pytest.raises(ValueError, match=r"\(20 and 30 types\): run fairseq-preprocess with --joined-dictionary"):
            LWCTransformerModel.build_model(LWCTransformerConfig(), task)
