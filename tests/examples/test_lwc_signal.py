"""The measurements of an LWC Transformer's layers, examples/multi30k/lwc_signal.py."""

import csv
import importlib.util
import io

import pytest
import torch
from torch.nn.functional import cross_entropy

from conftest import ROOT, TASK, TINY_LWC, TINY_TRAINING, make_lwc, random_batch, refused, run, run_python
from lwc_fairseq.data.packing import Packing, pack

SCRIPT = ROOT / "examples" / "multi30k" / "lwc_signal.py"
PAD = 1


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("lwc_signal", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_sample(lengths) -> dict:
    src, prev = random_batch(lengths)
    target = prev.roll(-1, dims=1).masked_fill(prev.eq(PAD), PAD)
    inputs = {"src_tokens": src, "src_lengths": None, "prev_output_tokens": prev}
    return {"net_input": {**inputs, "packing": vars(pack(src, prev, PAD))}, "target": target}


def rms(x: torch.Tensor) -> float:
    return x.square().mean().sqrt().item()


def test_states_and_changes_are_those_of_each_side(script):
    model, sample = make_lwc().eval(), make_sample([(4, 3), (2, 6)])
    found = script.measure(model, sample, PAD)
    stack, packing = model.encoder.stack, Packing(**sample["net_input"]["packing"])
    attend = stack.packed_attention(packing, None)
    x = stack.embedding(packing.tokens, packing.sides, packing.positions)
    for i, layer in enumerate(stack.layers):
        y = layer(x, attend)
        for side in (0, 1):
            rows = packing.sides == side
            assert found.state[side, i].item() == pytest.approx(rms(y[rows]))
            assert found.change[side, i].item() == pytest.approx(rms((y - x)[rows]) / rms(x[rows]))
        x = y
    assert found.gradient[0, -1] == 0  # nothing reads the source's top layer
    assert found.gradient.gt(0).sum() == found.gradient.numel() - 1


def test_gradients_are_the_slopes_of_the_loss(script):
    model, sample = make_lwc().eval(), make_sample([(4, 3), (2, 6)])
    on_target = sample["net_input"]["packing"]["sides"].bool()
    layer = model.encoder.stack.layers[0]
    moved = torch.zeros(len(on_target), layer.fc2.out_features, dtype=torch.float64)
    _, _, gradient = script.measure_stream(model, sample, PAD)
    layer.register_forward_hook(lambda layer, args, output: output + moved)

    def loss_after(step: float, row: int, column: int) -> float:
        moved[row, column] = step
        logits, _ = model(**sample["net_input"])
        moved[row, column] = 0
        return cross_entropy(logits.flatten(0, 1), sample["target"].flatten(), ignore_index=PAD).item()

    slopes = torch.zeros_like(moved)
    for row, column in torch.ones_like(moved).nonzero().tolist():
        slopes[row, column] = (loss_after(1e-5, row, column) - loss_after(-1e-5, row, column)) / 2e-5
    for side, rows in enumerate((~on_target, on_target)):
        assert gradient[side, 0].item() == pytest.approx(rms(slopes[rows]), rel=1e-4)


def test_equal_weights_attend_to_all_tokens(script):
    weights = torch.full((2, 3, 4, 5), 0.1)
    real = torch.ones(2, 4, dtype=torch.bool)
    assert script.count_attended(weights, real) == pytest.approx(5)
    one = torch.zeros(2, 3, 4, 5).index_fill_(3, torch.tensor([2]), 0.3)
    assert script.count_attended(one, real) == pytest.approx(1)
    weights[0, 0, 0] = 0
    assert script.count_attended(weights, real) == pytest.approx(5)


def test_command(tiny_checkpoint, tiny_data, tmp_path):
    out = tmp_path / "signal.png"
    printed = run_python(SCRIPT, tiny_checkpoint, "--data", tiny_data, "--out", out, "--sentences", "5").stdout
    rows = list(csv.DictReader(io.StringIO(printed[printed.index("model\t") :]), delimiter="\t"))
    assert out.stat().st_size and [row["model"] for row in rows] == ["start"] * 2 + ["trained"] * 2
    for row in rows:
        assert all(0 <= float(value) <= 1 for name, value in row.items() if name.startswith("share"))


def test_refusals(checkpoints, tiny_data, tmp_path):
    flags = ("--data", tiny_data, "--out", tmp_path / "signal.png")
    assert "no such file" in refused("python", SCRIPT, "missing.pt", *flags)
    for other in ("deepatt", "abd_lwc"):
        assert "give a checkpoint of an LWC Transformer" in refused("python", SCRIPT, checkpoints[other], *flags)
    unmeasured = {"separate": (*TASK, "--unshared-weights"), "stock": ("--user-dir", "lwc_fairseq")}
    for name, options in unmeasured.items():
        train = (*TINY_LWC[2:], *TINY_TRAINING, *options, "--max-update", "1", "--save-dir", tmp_path / name)
        run("fairseq-train", tiny_data, *train)
        said = refused("python", SCRIPT, tmp_path / name / "checkpoint_last.pt", *flags)
        assert said.endswith("give a checkpoint of --task concat_translation, without --unshared-weights")
    assert not (tmp_path / "signal.png").exists()
