"""`lwc-fairseq import`, which reads the checkpoints of jarfo/joint."""

from argparse import Namespace

import pytest
import torch

from conftest import EOS, LONG, ROOT, TASK, TINY_TRAINING, hypotheses, refusal, refused, run
from lwc_fairseq import load
from reference_lwc import lwc_logits

PUBLISHED = ROOT.parent / "shared" / "published_weights"
D, FFN, LAYERS = 16, 24, 3
FORMS = {  # what a checkpoint may have, by its own names, and options of the reference
    "windows": ({"kernel_size_list": [3, 2, 4]}, {"windows": [3, 2, 4]}),
    "no windows": ({}, {}),
    "pre-norm": ({"decoder_normalize_before": True}, {"pre_norm": True}),
    "no language vectors": ({"language_embeddings": False}, {"side_embedding": False}),
}


def joint_attention(types, **settings):
    """A checkpoint of that plugin with random weights. It has no positions: the reference has another form of them."""
    generator = torch.Generator().manual_seed(1)

    def draw(*shape):
        return 0.3 * torch.randn(*shape, generator=generator)

    table = draw(types, D)
    weights = {"encoder.version": torch.tensor([2.0]), "decoder.version": torch.tensor([2.0])}
    weights |= {f"{side}.embed_tokens.weight": table for side in ("encoder", "decoder")}
    if settings.get("language_embeddings", True):
        weights |= {f"{side}.embed_language": draw(D) for side in ("encoder", "decoder")}
    norms = ["self_attn_layer_norm", "final_layer_norm"]
    for i in range(LAYERS):
        layer = f"decoder.layers.{i}."
        weights |= {f"{layer}self_attn.in_proj_weight": draw(3 * D, D), f"{layer}self_attn.in_proj_bias": draw(3 * D)}
        for name, shape in (("self_attn.out_proj", (D, D)), ("fc1", (FFN, D)), ("fc2", (D, FFN))):
            weights |= {f"{layer}{name}.weight": draw(*shape), f"{layer}{name}.bias": draw(shape[0])}
        weights |= {f"{layer}{norm}.{part}": draw(D) for norm in norms for part in ("weight", "bias")}
    if settings.get("decoder_normalize_before"):
        weights |= {"decoder.layer_norm.weight": draw(D), "decoder.layer_norm.bias": draw(D)}
    given = {
        "arch": "joint_attention_iwslt_de_en",
        "task": "translation",
        "data": ["data-bin"],
        "source_lang": "de",
        "target_lang": "en",
        "decoder_attention_heads": 2,
        "kernel_size_list": None,
        "no_token_positional_embeddings": True,
        "label_smoothing": 0.1,
    }
    history = [
        {
            "criterion_name": "LabelSmoothedCrossEntropyCriterion",
            "optimizer_name": "FairseqAdam",
            "lr_scheduler_state": {"best": None},
            "num_updates": 7,
        }
    ]
    args = Namespace(**{**given, **settings})
    extra = {"train_iterator": {"epoch": 2, "iterations_in_epoch": 0}, "val_loss": 5.9}
    state = {"args": args, "model": weights, "optimizer_history": history, "extra_state": extra}
    return {**state, "last_optimizer_state": None}


def by_names_of_the_reference(weights):
    """The weights in double precision."""
    names = {
        "encoder.embed_tokens": "embedding.tokens",
        "decoder.layer_norm": "norm",
        "decoder.layers": "layers",
        "self_attn.in_proj_": "attention.qkv.",
        "self_attn.out_proj": "attention.out",
        "self_attn_layer_norm": "attention_norm",
        "final_layer_norm": "ffn_norm",
    }
    renamed = {}
    for name, value in weights.items():
        for old, new in names.items():
            name = name.replace(old, new)
        renamed[name] = value.double()
    if "encoder.embed_language" in weights:
        sides = [weights[f"{side}.embed_language"].double() for side in ("encoder", "decoder")]
        renamed["embedding.sides.weight"] = torch.stack(sides)
    return renamed


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_that_model_computes_the_same_here(tiny_data, tmp_path, form):
    settings, options = FORMS[form]
    types = 4 + len((tiny_data / "dict.de.txt").read_text().splitlines())
    old = joint_attention(types, **settings)
    torch.save(old, tmp_path / "old.pt")
    done = run("lwc-fairseq", "import", tmp_path / "old.pt", tmp_path / "new.pt", "--data", tiny_data)
    assert f"wrote {tmp_path / 'new.pt'}: lwc_transformer with 3 layers of width 16" in done.stdout
    model = load(tmp_path / "new.pt").models[0].double()
    source, target = [5, 9, 4, 7, EOS], [EOS, 6, 8, 8, 5, 4]
    logits, _ = model(torch.tensor([source]), None, torch.tensor([target]))
    options = {"pre_norm": False, "position_embedding": False, **options}
    expected = lwc_logits(by_names_of_the_reference(old["model"]), source, target, layers=LAYERS, heads=2, **options)
    assert torch.allclose(logits[0], expected, rtol=0, atol=1e-12)


def test_what_cannot_be_imported_is_refused(tiny_data, tmp_path, checkpoints):
    types = 4 + len((tiny_data / "dict.de.txt").read_text().splitlines())
    old, new = tmp_path / "old.pt", tmp_path / "new.pt"

    def message(state, *flags):
        torch.save(state, old)
        return refusal("import", old, new, *flags).removeprefix(f"{old}: ")

    learned = message(joint_attention(types, encoder_learned_pos=True))
    assert learned == "it was trained with --encoder-learned-pos, but lwc_transformer has sinusoids alone"
    assert message(joint_attention(types, arch="transformer")).startswith("its architecture is transformer, not joint_")
    state = joint_attention(types)
    state["model"]["decoder.embed_tokens.weight"] = torch.zeros(types, D)
    assert "decoder.embed_tokens.weight is not its encoder.embed_tokens.weight" in message(state)
    state = joint_attention(types)
    state["model"]["decoder.project_out_dim.weight"] = torch.zeros(D, D)
    assert message(state) == "lwc_transformer has no place for its weight decoder.project_out_dim.weight"
    state = joint_attention(types + 1)
    assert f"it has {types + 1} types, but {tiny_data / 'dict.de.txt'} has {types}" in message(
        state, "--data", tiny_data
    )
    assert not new.exists()
    ours = refused("lwc-fairseq", "import", checkpoints["lwc"], new)
    assert "its architecture is None, not joint_attention of jarfo/joint: there is nothing to import" in ours
    torch.save(joint_attention(types), old)
    direct = refused("fairseq-generate", tiny_data, *TASK, "--path", old)
    assert direct.endswith(
        f"{old}: its model, joint_attention_iwslt_de_en, is part of a plugin: convert it by lwc-fairseq import OLD NEW"
    )


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="no checkpoints of jarfo/joint beside the repository")
@pytest.mark.parametrize("name", ["local", pytest.param("joint", marks=LONG)])
def test_translations_of_that_plugin_are_the_same_here(tmp_path, name):
    model = tmp_path / "model.pt"
    run("lwc-fairseq", "import", PUBLISHED / f"{name}_2019.pt", model, "--data", PUBLISHED)
    languages = (*TASK, "-s", "de", "-t", "en")
    search = ("--path", model, "--beam", "5", "--lenpen", "1.7", "--post-process", "--buffer-size", "100")
    text = (PUBLISHED / "source.de").read_text()
    done = run("fairseq-interactive", PUBLISHED, *languages, *search, "--batch-size", "32", stdin=text)
    found = hypotheses(done.stdout)
    rows = [line.split("\t") for line in (PUBLISHED / f"{name}.hypotheses.tsv").read_text().splitlines()]
    assert [text for text, _ in found] == [text for _, text in rows]
    assert [score for _, score in found] == pytest.approx([float(score) for score, _ in rows], abs=1e-4)


def test_an_imported_model_is_trained_further_and_averaged(tiny_data, tmp_path):
    types = 4 + len((tiny_data / "dict.de.txt").read_text().splitlines())
    torch.save(joint_attention(types, kernel_size_list=[3, 2, 4]), tmp_path / "old.pt")
    model = tmp_path / "new.pt"
    done = run("lwc-fairseq", "import", tmp_path / "old.pt", model, "--data", tiny_data)
    printed = done.stdout.splitlines()[-1].split()
    flags = (*printed[printed.index("--arch") :], "--max-update", "1", "--lr", "0", "--save-dir", tmp_path / "tuned")
    run("fairseq-train", tiny_data, *TASK, *TINY_TRAINING, *flags)
    tuned = tmp_path / "tuned" / "checkpoint_last.pt"
    run("lwc-fairseq", "average", model, tuned, "--out", tmp_path / "mean.pt")
    weights, mean = (torch.load(path)["model"] for path in (model, tmp_path / "mean.pt"))
    assert all(torch.allclose(value, mean[name]) for name, value in weights.items())
