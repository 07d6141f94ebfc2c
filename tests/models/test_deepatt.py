from types import SimpleNamespace

import pytest
import torch
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY

from conftest import EOS, PAD, make_deepatt, make_dictionary, random_batch, without_padding
from lwc_fairseq.modules import recurrent_kernels
from properties import (
    future_target_tokens_change_nothing_earlier,
    sentence_alone_equals_the_same_in_a_batch,
    steps_equal_the_full_pass,
)
from reference_deepatt import deepatt_reference

LENGTHS = [(4, 3), (2, 6), (7, 1), (1, 2)]
VARIANTS = ("deepatt", "udeepatt", "vdeepatt", "wideatt", "deepnmt", "rnnsearch", "mheadnmt")
EACH_VARIANT = pytest.mark.parametrize("variant", VARIANTS)


def weights(model):
    """The state dict, with the names of the reference."""
    return {
        name.replace("encoder.recurrent.", "encoder."): value
        for name, value in model.state_dict(keep_vars=True).items()
    }


def reference(model, variant, source, target_input):
    layers = 1 if variant in ("rnnsearch", "mheadnmt") else 3
    heads = 2 if variant == "mheadnmt" else 0
    known = {"mheadnmt": "rnnsearch"}.get(variant, variant)
    return deepatt_reference(weights(model), known, layers, heads, source, target_input)


def batch(**settings):
    return random_batch(LENGTHS, types=15, **settings)


class TestAgainstTheReference:
    """The float64 reference of reference_deepatt.py, written from the equations with loops."""

    @EACH_VARIANT
    @pytest.mark.parametrize("largest", [recurrent_kernels.LARGEST, 1], ids=["at once", "sentence by sentence"])
    def test_logits_and_every_attention(self, monkeypatch, variant, largest):
        monkeypatch.setattr(recurrent_kernels, "LARGEST", largest)
        model = make_deepatt(variant)
        src, prev = batch()
        logits, extra = model(src, None, prev)
        for i in range(len(src)):
            source, target = without_padding(src[i]), without_padding(prev[i])
            expected, attentions = reference(model, variant, source, target)
            assert torch.allclose(logits[i, : len(target)], expected, rtol=0, atol=1e-9)
            assert len(extra["attentions"]) == len(attentions)
            for ours, theirs in zip(extra["attentions"], attentions, strict=True):
                assert torch.allclose(ours[i, : len(target)][:, src[i].ne(PAD)], theirs, rtol=0, atol=1e-9)

    @EACH_VARIANT
    def test_every_gradient(self, variant):
        model = make_deepatt(variant)
        src, prev = batch()
        real = prev.ne(PAD)
        logits, _ = model(src, None, prev)
        weigh = torch.randn(logits.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        loss = (logits * weigh)[real].sum()
        expected = sum(
            (reference(model, variant, without_padding(s), without_padding(p))[0] * w[: p.ne(PAD).sum()]).sum()
            for s, p, w in zip(src, prev, weigh, strict=True)
        )
        names, parameters = zip(*model.named_parameters(), strict=True)
        ours, theirs = torch.autograd.grad(loss, parameters), torch.autograd.grad(expected, parameters)
        for name, mine, its in zip(names, ours, theirs, strict=True):
            assert torch.allclose(mine, its, rtol=0, atol=1e-9), name
            assert mine.abs().sum() > 0, name


class TestDecoding:
    @EACH_VARIANT
    def test_step_by_step_with_reordering_equals_the_full_pass(self, variant):
        def check(logits, extra, full_extra, sources):
            assert logits.size(1) == 1
            assert torch.allclose(extra["attn"][0][:, -1], full_extra["attn"][0][:, -1], rtol=0, atol=1e-12)

        steps_equal_the_full_pass(make_deepatt(variant), batch()[0], steps=8, check=check)

    def test_several_words_at_once(self):
        """A first call with a prefix, then one word."""
        model = make_deepatt("vdeepatt")
        src, prev = random_batch([(4, 6), (2, 6)], types=15)
        full, _ = model(src, None, prev)
        encoder_out, state = model.encoder(src), {}
        first, _ = model.decoder(prev[:, :4], encoder_out, state)
        rest, _ = model.decoder(prev, encoder_out, state)
        assert torch.allclose(torch.cat([first, rest], dim=1), full, rtol=0, atol=1e-12)

    def test_memories_are_not_copied_for_a_beam_nor_for_a_step(self):
        model = make_deepatt()
        encoder_out = model.encoder(batch()[0])
        beams = model.encoder.reorder_encoder_out(encoder_out, torch.arange(4).repeat_interleave(5))
        stepped = model.encoder.reorder_encoder_out(beams, torch.arange(20))
        assert stepped.beam == 5 and stepped.memories is encoder_out.memories
        fewer = model.encoder.reorder_encoder_out(stepped, torch.tensor([7, 7, 6, 5, 9, 19, 18, 17, 16, 15]))
        for ours, before in zip(fewer.memories, encoder_out.memories, strict=True):
            assert torch.equal(ours.states, before.states[[1, 3]])

    def test_projected_memories_neither(self):
        model = make_deepatt()
        begun = model.decoder.begin(model.encoder(batch()[0]))
        _, state = model.decoder.run(torch.full((20, 1), EOS), begun)
        assert state.beam == 5 and state.memories is begun.memories
        assert state.reorder(torch.arange(20)).memories is begun.memories
        fewer = state.reorder(torch.tensor([7, 7, 6, 5, 9, 19, 18, 17, 16, 15]))
        assert torch.equal(fewer.states[0], state.states[7])
        for ours, before in zip(fewer.memories, begun.memories, strict=True):
            assert torch.equal(ours.keys, before.keys[[1, 3]]) and torch.equal(ours.gates, before.gates[[1, 3]])

    @EACH_VARIANT
    def test_plain_kernels_equal_the_kernels(self, variant):
        ours, plain = (make_deepatt(variant, plain_kernels=plain) for plain in (False, True))
        plain.load_state_dict(ours.state_dict())
        src, prev = batch()
        assert torch.allclose(ours(src, None, prev)[0], plain(src, None, prev)[0], rtol=0, atol=1e-12)

    def test_a_sentence_alone_equals_the_same_in_a_batch(self):
        src, _ = random_batch([(5, 1), (1, 1), (9, 1), (3, 1)], types=40)
        sentence_alone_equals_the_same_in_a_batch(make_deepatt(types=(40, 40)), src, types=40)

    @pytest.mark.parametrize(("layer", "shown"), [(0, 0), (1, 1), (-1, 2), (None, 1)])
    def test_alignment_layer(self, layer, shown):
        model = make_deepatt(alignment_layer=layer)
        _, extra = model(*self._arguments())
        assert len(extra["attentions"]) == 3
        assert torch.equal(extra["attn"][0], extra["attentions"][shown])
        assert not torch.equal(extra["attn"][0], extra["attentions"][shown - 1])

    def test_attention_is_left_out_where_nobody_asks(self):
        model = make_deepatt()
        model.make_generation_fast_(beamable_mm_beam_size=5, need_attn=False)
        assert model(*self._arguments())[1]["attn"] is None

    @staticmethod
    def _arguments():
        src, prev = batch()
        return src, None, prev


class TestInvariants:
    @EACH_VARIANT
    def test_padding_side_does_not_matter(self, variant):
        model = make_deepatt(variant)
        (src, prev), (right, _) = batch(), batch(left_pad_source=False)
        (ours, extra), (theirs, other) = model(src, None, prev), model(right, None, prev)
        assert torch.equal(ours, theirs)
        for mine, its in zip(extra["attentions"], other["attentions"], strict=True):
            for i, (n, m) in enumerate(LENGTHS):
                assert torch.equal(mine[i, :m, -n:], its[i, :m, :n])

    @EACH_VARIANT
    def test_attention_sums_to_one_and_is_zero_on_padding(self, variant):
        model = make_deepatt(variant)
        src, prev = batch()
        for alphas in model(src, None, prev)[1]["attentions"]:
            assert torch.allclose(alphas.sum(-1), torch.ones(()).double(), rtol=0, atol=1e-12)
            assert not alphas[src.eq(PAD)[:, None].expand_as(alphas)].any()

    def test_a_future_target_token_changes_nothing_earlier(self):
        src, prev = random_batch([(4, 6), (6, 6)], types=15)
        future_target_tokens_change_nothing_earlier(make_deepatt("deepnmt"), src, prev, words=11)

    def test_only_padding(self):
        """A row without any source token, which fairseq does not make, gives no NaN."""
        logits, _ = make_deepatt()(torch.tensor([[PAD, PAD], [4, EOS]]), None, torch.tensor([[EOS, 5], [EOS, 5]]))
        assert logits.isfinite().all()

    def test_dropout_is_of_the_readout_only(self):
        model = make_deepatt(dropout=0.5).train()
        src, prev = batch()
        first, again = model(src, None, prev), model(src, None, prev)
        assert not torch.equal(first[0], again[0])
        assert all(map(torch.equal, first[1]["attentions"], again[1]["attentions"]))

    def test_half_precision(self):
        for variant in ("deepatt", "mheadnmt"):
            half, single = (make_deepatt(variant, dtype=torch.float32) for _ in range(2))
            src, prev = batch()
            ours, theirs = half.bfloat16()(src, None, prev)[0], single(src, None, prev)[0]
            assert ours.dtype == torch.bfloat16
            assert torch.nn.functional.cosine_similarity(ours.float().flatten(), theirs.flatten(), dim=0) > 0.99
            ours.float().sum().backward()
            assert all(parameter.grad.isfinite().all() for parameter in half.parameters())

    @pytest.mark.parametrize("variant", ["deepatt", "mheadnmt"])
    def test_autocast(self, variant):
        mixed, single = (make_deepatt(variant, dtype=torch.float32) for _ in range(2))
        src, prev = batch()
        theirs = single(src, None, prev)[0]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            ours = mixed(src, None, prev)[0]
        (ours.float() - 1).square().sum().backward()
        (theirs - 1).square().sum().backward()
        for (name, mine), its in zip(mixed.named_parameters(), single.parameters(), strict=True):
            assert torch.nn.functional.cosine_similarity(mine.grad.flatten(), its.grad.flatten(), dim=0) > 0.95, name

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
    @EACH_VARIANT
    def test_cuda(self, variant):
        """Logits and gradients as on the CPU; half precision finite."""
        cpu, cuda = make_deepatt(variant), make_deepatt(variant).cuda()
        src, prev = batch()
        ours, theirs = cpu(src, None, prev)[0], cuda(src.cuda(), None, prev.cuda())[0]
        assert torch.allclose(ours, theirs.cpu(), rtol=0, atol=1e-9)
        ours.square().sum().backward()
        theirs.square().sum().backward()
        for (name, mine), its in zip(cpu.named_parameters(), cuda.parameters(), strict=True):
            assert torch.allclose(mine.grad, its.grad.cpu(), rtol=0, atol=1e-8), name
        del theirs  # its graph refers to the parameters, and the simulated device could not convert them
        assert cuda.half()(src.cuda(), None, prev.cuda())[0].isfinite().all()


class TestConfiguration:
    def build(self, types=(20, 30), variant="deepatt", **settings):
        source, target = map(make_dictionary, types)
        task = SimpleNamespace(source_dictionary=source, target_dictionary=target)
        return ARCH_MODEL_REGISTRY[variant].build_model(MODEL_DATACLASS_REGISTRY[variant](**settings), task)

    def test_parameters_of_rnnsearch(self):
        """85.6M are published for it with 620/1000 and 30,000 types on each side."""
        with torch.device("meta"):
            model = self.build((30_000, 30_000), variant="rnnsearch")
        assert sum(parameter.numel() for parameter in model.parameters()) == pytest.approx(85.6e6, rel=3e-3)

    def test_presets(self):
        for name in VARIANTS:
            config = MODEL_DATACLASS_REGISTRY[name]()
            config.check()
            assert config.attention_heads == (8 if name == "mheadnmt" else 0)
            assert getattr(config, "attention_layers", None) == (None if name in ("rnnsearch", "mheadnmt") else 5)

    def test_initial_weights(self):
        """Section 4.2: N(0, 0.01²), recurrent matrices orthogonal."""
        for settings, std in (({}, 0.01), ({"init_std": 0.1}, 0.1)):
            model = self.build((300, 300), embed_dim=80, hidden_dim=120, **settings)
            for name, parameter in model.named_parameters():
                if name.endswith("recurrent"):
                    for block in parameter.chunk(3):
                        assert torch.allclose(block @ block.T, torch.eye(120), atol=1e-5), name
                elif name.endswith("bias"):
                    assert not parameter.any(), name
                else:
                    # The standard deviation of N values has a relative error of 1/√(2N).
                    tolerance = 5 / (2 * parameter.numel()) ** 0.5
                    assert parameter.std().item() == pytest.approx(std, rel=tolerance), name
            assert not model.encoder.embedding.weight[PAD].any()

    def test_uniform_initial_weights(self):
        model = self.build((300, 300), embed_dim=80, hidden_dim=120, init_uniform=0.5)
        for name, parameter in model.named_parameters():
            assert parameter.abs().max() <= 0.5 and parameter.std().item() == pytest.approx(0.5 / 3**0.5, rel=0.2), name
        assert not model.encoder.embedding.weight[PAD].any() and not model.decoder.embedding.weight[PAD].any()

    def test_shared_embeddings(self):
        model = self.build((20, 20), share_all_embeddings=True, embed_dim=4, hidden_dim=6)
        assert model.encoder.embedding.weight is model.decoder.embedding.weight is model.decoder.output.weight
        assert not model.decoder.output.weight[PAD].any()
        with pytest.raises(
            ValueError, match=r"there are two \(20 and 30 types\): run .* --joined-dictionary, or leave"
        ):
            self.build(share_all_embeddings=True)

    @pytest.mark.parametrize("variant", [*VARIANTS, "abd", "nsc_hs", "rnmt", "abd_rnmt"])
    def test_padding_of_targets_on_the_left_is_refused(self, variant):
        dictionary = make_dictionary(20)
        cfg = SimpleNamespace(left_pad_target=True)
        task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary, cfg=cfg)
        with pytest.raises(ValueError, match="--left-pad-target: recurrent decoders read a target from its first"):
            ARCH_MODEL_REGISTRY[variant].build_model(MODEL_DATACLASS_REGISTRY[variant](), task)

    @pytest.mark.parametrize("layers", [1, 2, 6])
    def test_any_number_of_attention_layers(self, layers):
        model = self.build(attention_layers=layers, embed_dim=4, hidden_dim=6)
        src, prev = random_batch([(3, 2)])
        assert len(model(src, None, prev)[1]["attentions"]) == layers

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"attention_layers": 0}, "--attention-layers 0: must be at least 1"),
            ({"hidden_dim": -1}, "--hidden-dim -1: must be at least 1"),
            ({"attention_heads": 7}, "--hidden-dim 1000 is not divisible by --attention-heads 7: choose"),
            ({"attention_heads": -1}, "--attention-heads -1: must be at least 1, or 0 for additive attention"),
            ({"variant": "mheadnmt", "attention_heads": 0}, "--attention-heads 0: mheadnmt needs at least 1"),
            ({"alignment_layer": 5}, "--alignment-layer 5: deepatt with --attention-layers 5 has 5, .* from -5 to 4"),
            ({"variant": "wideatt", "alignment_layer": 1}, "--alignment-layer 1: wideatt .* has 1, .* from -1 to 0"),
            ({"init_std": 0.0}, "--init-std 0.0: must be a number above 0"),
            ({"init_std": float("nan")}, "--init-std nan: must be a number above 0"),
            ({"init_uniform": -0.08}, "--init-uniform -0.08: must be a number from 0"),
            ({"init_uniform": float("nan")}, "--init-uniform nan: must be a number from 0"),
            ({"dropout": 1.0}, r"--dropout 1.0: must be in \[0, 1\)"),
        ],
    )
    def test_impossible_settings_are_refused_by_name(self, settings, message):
        with pytest.raises(ValueError, match=message):
            self.build(**settings)
