import argparse
from types import SimpleNamespace

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from omegaconf import OmegaConf

from conftest import PAD, ROOT, TINY_TRAINING, hypotheses, make_dictionary, make_lwc, random_batch, run
from lwc_fairseq.models.transformer import ContextGate
from properties import generated_scores_are_those_of_teacher_forcing

SMALL = {"encoder_embed_dim": 16, "encoder_ffn_embed_dim": 24, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}


def make(name, types=17, **settings):
    """Built as `fairseq-train --arch NAME` does."""
    args = argparse.Namespace(**settings)
    ARCH_CONFIG_REGISTRY[name](args)
    dictionary = make_dictionary(types)
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    torch.manual_seed(0)
    return ARCH_MODEL_REGISTRY[name].build_model(args, task).eval()


@pytest.mark.parametrize(("name", "published"), [("transformer_small", 19.07e6), ("transformer_context_gate", 19.08e6)])
def test_parameters(name, published):
    """§5.4 of the paper for the gate; the baseline has the layer weights of 14 shared layers (its Table 3)."""
    with torch.device("meta"):
        model = make(name, types=31_300)
    assert sum(parameter.numel() for parameter in model.parameters()) == pytest.approx(published, rel=5e-3)


def test_one_table_of_embeddings_and_norms_before():
    model = make("transformer_small", **SMALL)
    assert (
        model.encoder.embed_tokens.weight is model.decoder.embed_tokens.weight is model.decoder.output_projection.weight
    )
    assert model.encoder.layer_norm is not None and model.decoder.layer_norm is not None


class TestContextGate:
    def test_it_begins_as_the_baseline(self):
        gated, baseline = make("transformer_context_gate", **SMALL), make("transformer_small", **SMALL)
        missing = gated.load_state_dict(baseline.state_dict(), strict=False).missing_keys
        assert all("context_gate" in name for name in missing) and len(missing) == 4
        batch = random_batch([(4, 3), (2, 6)])
        ours, theirs = (model(batch[0], None, batch[1])[0] for model in (gated, baseline))
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-5)

    def test_closed_to_the_source_it_translates_without(self):
        model = make("transformer_context_gate", **SMALL)
        (src, prev), (other, _) = random_batch([(4, 3)]), random_batch([(4, 3)], seed=1)
        assert not torch.allclose(model(src, None, prev)[0], model(other, None, prev)[0])
        for layer in model.decoder.layers:
            layer.context_gate.gate.bias.data.fill_(-100.0)
        assert torch.allclose(model(src, None, prev)[0], model(other, None, prev)[0], rtol=0, atol=1e-6)

    def test_equation(self):
        gate = ContextGate(2)
        gate.gate.weight.data = torch.tensor([[1.0, 0, 0, 2, 3, 0]])
        x, t, s = torch.tensor([1.0, 5]), torch.tensor([7.0, -1]), torch.tensor([0.5, 4])
        z = torch.sigmoid(torch.tensor(1.0 * 1 + 2 * -1 + 3 * 0.5))
        assert torch.allclose(gate(x, t, s), 2 * (1 - z) * t + 2 * z * s)

    def test_every_gate_learns_and_nothing_is_kept(self):
        model = make("transformer_context_gate", **SMALL).train()
        src, prev = random_batch([(4, 3), (2, 6)])
        model(src, None, prev)[0].square().sum().backward()
        for layer in model.decoder.layers:
            assert layer.context_gate.gate.weight.grad.abs().sum() > 0
            assert layer.contexts == []

    def test_generated_scores_are_those_of_teacher_forcing(self):
        model = make("transformer_context_gate", types=40, **SMALL)
        for layer in model.decoder.layers:
            torch.nn.init.normal_(layer.context_gate.gate.weight)
        src, _ = random_batch([(5, 1), (9, 1)], types=40)
        generated_scores_are_those_of_teacher_forcing(model, src, types=40)


def test_separate_dictionaries_are_refused():
    task = SimpleNamespace(source_dictionary=make_dictionary(20), target_dictionary=make_dictionary(30))
    with pytest.raises(ValueError, match=r"\(20 and 30 types\): run fairseq-preprocess with --joined-dictionary"):
        ARCH_MODEL_REGISTRY["transformer_small"].build_model(argparse.Namespace(), task)


def test_it_trains_by_flags_and_by_yaml_and_translates(tiny_data, tmp_path):
    """hydra does not call the functions of architectures, but the model has the sizes of the preset."""
    widths = {"encoder_embed_dim": 16, "encoder_ffn_embed_dim": 24}
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in widths.items()]
    task = ("--user-dir", "lwc_fairseq", "--task", "concat_translation")
    train = ("fairseq-train", tiny_data, *task, "--arch", "transformer_context_gate", *flags, *TINY_TRAINING)
    train += ("--criterion", "chunked_cross_entropy")
    run(*train, "--max-update", "2", "--save-dir", tmp_path / "flags")
    config = {
        "common": {"user_dir": str(ROOT / "lwc_fairseq"), "cpu": True},
        "task": {"_name": "concat_translation", "data": str(tiny_data)},
        "criterion": {"_name": "cross_entropy"},
        "optimizer": {"_name": "adam"},
        "lr_scheduler": {"_name": "fixed"},
        "dataset": {"max_tokens": 400},
        "optimization": {"max_update": 2, "lr": [0.001]},
        "checkpoint": {"save_dir": str(tmp_path / "yaml"), "no_epoch_checkpoints": True},
        "model": {"_name": "transformer_context_gate", **widths},
    }
    OmegaConf.save(config, tmp_path / "tiny.yaml")
    run("fairseq-hydra-train", "--config-dir", tmp_path, "--config-name", "tiny", cwd=tmp_path)
    shapes = []
    for folder in ("flags", "yaml"):
        checkpoint = tmp_path / folder / "checkpoint_last.pt"
        shapes.append({name: value.shape for name, value in torch.load(checkpoint)["model"].items()})
        output = run("fairseq-generate", tiny_data, *task, "--path", checkpoint, "--cpu", "--beam", "2").stdout
        assert len(hypotheses(output)) == 20
    assert shapes[0] == shapes[1]


def test_an_ensemble_with_lwc_shares_a_search():
    """Both are encoder-decoder models of fairseq over one vocabulary."""
    from fairseq.sequence_generator import SequenceGenerator

    models = [make("transformer_small", types=17, **SMALL), make_lwc(dtype=torch.float32)]
    src, _ = random_batch([(5, 1), (2, 1)])
    generator = SequenceGenerator(models, make_dictionary(17), beam_size=2, max_len_a=0, max_len_b=5)
    found = generator.generate(models, {"net_input": {"src_tokens": src, "src_lengths": src.ne(PAD).sum(1)}})
    assert len(found) == 2 and all(beam[0]["score"].isfinite() for beam in found)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"no_cross_attention": True}, "--no-cross-attention: a context gate weighs source attention: leave"),
        ({"decoder_normalize_before": False}, "decoder_normalize_before: false: a context gate needs layers that"),
    ],
)
def test_layers_that_cannot_have_a_context_gate(settings, message):
    with pytest.raises(ValueError, match=message):
        make("transformer_context_gate", types=20, encoder_embed_dim=8, **settings)
