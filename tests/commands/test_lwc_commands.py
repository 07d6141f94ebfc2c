"""The layer-wise coordinated Transformer through fairseq's own commands, on real files."""

import pytest
import torch

from conftest import TINY_LWC, TINY_TRAINING, hypotheses, run

GENERATE = ("--user-dir", "lwc_fairseq", "--beam", "3", "--max-len-b", "12", "--cpu")
CONCAT = ("--task", "concat_translation")


def generate(data, checkpoint, *flags):
    return run("fairseq-generate", data, "--path", checkpoint, *GENERATE, *flags).stdout


def scored(output):
    return [(text, pytest.approx(score, abs=1e-4)) for text, score in hypotheses(output)]


def test_both_tasks_train_to_the_same_weights(tiny_data, tmp_path):
    """Packed and padded batches train the same model. An update is one batch, so that both see the same pairs."""
    states = []
    for task in ("concat_translation", "translation"):
        flags = ("--task", task, "--max-tokens", "100000", "--max-update", "4", "--dropout", "0", "--save-dir")
        run("fairseq-train", tiny_data, *TINY_LWC, *TINY_TRAINING, *flags, tmp_path / task)
        states.append(torch.load(tmp_path / task / "checkpoint_last.pt"))
    ours, stock = (state["model"] for state in states)
    assert ours.keys() == stock.keys()
    for name in ours:
        assert torch.allclose(ours[name], stock[name], atol=1e-5), name


def test_reverse_target_prints_in_reading_order(tiny_data, tmp_path):
    train = ("fairseq-train", tiny_data, *TINY_LWC, *TINY_TRAINING, *CONCAT, "--reverse-target", "--eval-bleu")
    run(*train, "--max-update", "6", "--save-dir", tmp_path)
    checkpoint = tmp_path / "checkpoint_last.pt"
    output = generate(tiny_data, checkpoint, *CONCAT, "--reverse-target", "--prefix-size", "1")
    targets = {line.split("\t")[0][2:]: line.split("\t")[1] for line in output.splitlines() if line.startswith("T-")}
    # the first token decoded, forced to the reference's, is the last one read
    assert [text.split()[-1] for text, _ in hypotheses(output)] == [targets[str(i)].split()[-1] for i in range(20)]


def test_presets_and_flags_reach_the_model(tiny_data, tiny_checkpoint, tmp_path):
    saved = torch.load(tiny_checkpoint)["cfg"]["model"]
    assert (saved["_name"], saved["layers"], saved["embed_dim"]) == ("lwc_transformer_small", 2, 16)
    assert saved["max_source_positions"] == 1024

    flags = ("--arch", "lwc_transformer_big", "--layers", "1", "--task", "concat_translation", "--max-update", "1")
    run("fairseq-train", tiny_data, "--user-dir", "lwc_fairseq", *flags, *TINY_TRAINING, "--save-dir", tmp_path)
    saved = torch.load(tmp_path / "checkpoint_last.pt")["cfg"]["model"]
    sizes = {name: saved[name] for name in ("layers", "embed_dim", "ffn_embed_dim", "attention_heads")}
    assert sizes == {"layers": 1, "embed_dim": 1024, "ffn_embed_dim": 2048, "attention_heads": 16}


YAML = """
common: {user_dir: %(root)s/lwc_fairseq, cpu: true, seed: 1, log_format: simple}
task: {_name: concat_translation, data: %(data)s}
criterion: {_name: label_smoothed_cross_entropy, label_smoothing: 0.1}
optimizer: {_name: adam}
lr_scheduler: {_name: fixed}
dataset: {max_tokens: 400}
optimization: {max_update: 2, lr: [0.001]}
checkpoint: {save_dir: %(out)s, no_epoch_checkpoints: true}
model: {_name: lwc_transformer_big, layers: 3, embed_dim: 32, ffn_embed_dim: 32, layer_norm: after}
"""


def test_yaml_reaches_the_model(tiny_data, tmp_path, pytestconfig):
    values = {"root": pytestconfig.rootpath, "data": tiny_data, "out": tmp_path / "out"}
    (tmp_path / "tiny.yaml").write_text(YAML % values)
    run("fairseq-hydra-train", "--config-dir", tmp_path, "--config-name", "tiny", cwd=tmp_path)
    saved = torch.load(tmp_path / "out" / "checkpoint_last.pt")["cfg"]["model"]
    # 16 heads come from the preset, the rest from the file
    assert (saved["layers"], saved["attention_heads"], saved["layer_norm"]) == (3, 16, "after")
    assert len(hypotheses(generate(tiny_data, tmp_path / "out" / "checkpoint_last.pt", *CONCAT))) == 20


def test_interactive_translates_line_by_line(tiny_checkpoint, tiny_data):
    text = "ba de\n\n   \nnever seen\nfi\n"
    flags = ("--path", tiny_checkpoint, *GENERATE, *CONCAT, "--buffer-size", "3", "--batch-size", "3")
    output = run("fairseq-interactive", tiny_data, *flags, stdin=text).stdout
    found = hypotheses(output)
    assert len(found) == 5
    assert found[1] == found[2] == ("", 0.0)  # an empty line is an empty line
    assert found[0][0] and found[3][0]

    alone = run("fairseq-interactive", tiny_data, *flags[:-2], "--batch-size", "1", stdin="ba de\n").stdout
    assert hypotheses(alone) == [(found[0][0], pytest.approx(found[0][1], abs=1e-5))]
