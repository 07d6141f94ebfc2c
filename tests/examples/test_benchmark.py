"""The benchmark on tiny models: it compares what is equal, refuses what is not, and writes what it found."""

import json
import sys

import pytest

from conftest import LONG, ONE_FAMILY, ROOT, run_python

BENCHMARK = ROOT / "examples" / "benchmark" / "benchmark.py"
TINY_RECURRENT = "--embed-dim 12 --hidden-dim 16 --init-std 0.1"
TINY_LSTM = " ".join(f"--{side}-embed-dim 12 --{side}-hidden-size 16" for side in ("encoder", "decoder"))
TINY_LWC = "--layers 2 --embed-dim 16 --ffn-embed-dim 32 --attention-heads 2"
TINY = {
    "lwc": (
        TINY_LWC,
        "--encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 16 --encoder-ffn-embed-dim 32 "
        "--encoder-attention-heads 2 --decoder-attention-heads 2 --decoder-embed-dim 16 --decoder-ffn-embed-dim 32",
    ),
    "deepatt": (f"--attention-layers 2 {TINY_RECURRENT}", f"{TINY_LSTM} --decoder-out-embed-dim 12"),
    "abd": (TINY_RECURRENT, f"{TINY_LSTM} --decoder-out-embed-dim 12"),
    "abd_paper": (TINY_RECURRENT, ""),
    "abd_lwc": (TINY_LWC, ""),
}


def benchmark(tmp_path, family, phase, *more, **options):
    ours, peer = TINY[family]
    return run_python(
        *(BENCHMARK, "--family", family, "--phase", phase, "--device", "cpu", "--blocks", "1"),
        *("--updates", "1", "--max-tokens", "300", "--sentences", "8", "--types", "120", "--beam", "2"),
        *("--length", "4", "9", f"--ours={ours}", f"--peer={peer}", "--work", tmp_path / "work"),
        *("--out", tmp_path / "out", *more),
        **options,
    )


@pytest.mark.parametrize("phase", ["train", "generate"])
@ONE_FAMILY
def test_ours_beside_fairseqs(family, phase, tmp_path):
    page = benchmark(tmp_path, family, phase).stdout
    beam = "_beam-2" if phase == "generate" else ""
    found = json.loads((tmp_path / "out" / f"{family}_{phase}_cpu_length-4-9{beam}.json").read_text())
    assert len(found["systems"]) == (3 if family == "abd" else 2) + (phase == "generate")
    assert ("fairseq's search" in found["systems"][-1]["name"]) == (phase == "generate")
    for one in found["systems"]:
        assert len(one["tokens a second"]) == 1 and one["tokens a second"][0] > 0 and one["ours / this"] > 0
    assert found["systems"][0]["ours / this"] == 1
    assert "| ours ÷ this |" in page and "fairseq 0.12.2" in page


@LONG
def test_the_models_whose_speed_a_paper_gives(tmp_path):
    """NSC needs a right-to-left model, and keeps the translations that it finds before time counts."""
    benchmark(tmp_path, "abd_paper", "train")
    found = json.loads((tmp_path / "out" / "abd_paper_train_cpu_length-4-9.json").read_text())
    names = [one["name"] for one in found["systems"]]
    assert names == ["ABD", "RNNSearch", "RNNSearch(R2L)", "NSC(RT)", "NSC(HS)"]
    assert all(one["tokens a second"][0] > 0 for one in found["systems"])


def test_what_differs_gets_no_ratio(tmp_path):
    """A loss other than the plain one."""
    script = (
        "import sys, systems, benchmark; from dataclasses import replace; sys.argv = sys.argv[1:];"
        "family = systems.FAMILIES['deepatt'];"
        "wrong = replace(family.ours, criterion=(*family.ours.criterion, '--label-smoothing', '0.2'));"
        "benchmark.FAMILIES['deepatt'] = replace(family, ours=wrong); benchmark.main()"
    )
    ours, peer = TINY["deepatt"]
    refused = run_python(
        *("-c", script, "benchmark.py", "--family", "deepatt", "--phase", "train", "--device", "cpu"),
        *("--blocks", "1", "--max-tokens", "300", "--sentences", "8", "--types", "120", "--length", "4", "9"),
        *(f"--ours={ours}", f"--peer={peer}", "--work", tmp_path / "work", "--out", tmp_path / "out"),
        check=False,
        path=[BENCHMARK.parent],
    )
    assert refused.returncode and refused.stderr.splitlines()[-1].startswith("benchmark: DeepAtt, K = 5: ")
    assert not (tmp_path / "out").exists() and "÷" not in refused.stdout


def in_benchmark(script, *arguments):
    """Run a script that imports the modules of the benchmark."""
    return run_python("-c", script, *arguments, path=[BENCHMARK.parent])


def test_bf16_asks_for_no_tpu(tiny_data):
    """fairseq's parser sets `tpu` together with `bf16`, which would need torch_xla."""
    script = (
        "import sys; from systems import FAMILIES; from training import configure; system = FAMILIES['lwc'].ours;"
        "cfg = configure(system, system.criterion, sys.argv[1], 'cuda', 'bf16');"
        "assert cfg.common.bf16 and not cfg.common.tpu and not cfg.distributed_training.tpu"
    )
    in_benchmark(script, tiny_data)


def test_lwc_trains_on_ready_made_packing(tiny_data):
    """As in fairseq-train, the collater packs, not the model."""
    script = (
        "import sys; from dataclasses import replace; from pathlib import Path; from systems import FAMILIES;"
        "from training import Training; system = FAMILIES['lwc'].ours;"
        "small = replace(system, model=(*system.model, *sys.argv[2].split()));"
        "made = Training(small, small.criterion, Path(sys.argv[1]), 'cpu', 'fp32', [[0, 1, 2]]);"
        "assert made.samples[0]['net_input']['packing'] is not None"
    )
    in_benchmark(script, tiny_data, TINY["lwc"][0])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("lwc", "--phase", "train", "--precision", "fp16"), "--precision fp16 is for --device cuda"),
        (("abd_paper", "--phase", "generate"), "--family abd_paper is for --phase train"),
    ],
)
def test_what_cannot_be_measured_is_refused(flags, message):
    refused = run_python(BENCHMARK, "--family", *flags, "--device", "cpu", check=False)
    assert refused.returncode == 2 and message in refused.stderr.splitlines()[-1]


def test_which_translations_count_as_equal():
    """Rounding may choose between translations of equal score and, in half precision, change every beam."""
    script = """if 1:
        from generation import difference
        expected = {0: (-1.0, "a"), 1: (-2.0, "b")}
        def of(score, text, precision="fp32"):
            return difference({0: (-1.0, "a"), 1: (score, text)}, expected, precision)
        assert of(-2.00005, "b") is None and of(-2.000005, "c") is None
        assert of(-2.001, "b") == of(-2.00005, "c") == "sentence 1 differs from that of fairseq's search"
        assert of(-2.01, "c", "fp16") is None and "mean score is -1.5500" in of(-2.1, "b", "fp16")
        assert of(float("nan"), "b") and of(float("nan"), "b", "fp16")
        assert "1 translations, fairseq's search 2" in difference({0: (-1.0, "a")}, expected, "fp16")
    """
    in_benchmark(script)


@pytest.mark.parametrize("place", ["the loss", "the gradient of weight"])
def test_a_loss_or_gradient_that_is_no_number_gets_no_ratio(place):
    """A NaN is neither larger nor smaller than the allowed difference."""
    script = """if 1:
        import sys
        from types import SimpleNamespace
        import torch
        from training import check_equal
        def system(loss, gradient):
            found = loss, {"weight": torch.tensor([1.0, gradient])}
            return SimpleNamespace(system=SimpleNamespace(name="ours"), loss_and_gradients=lambda number: found)
        nan = float("nan")
        check_equal(system(2.0, 3.0), system(2.0, 3.0), "fp16")
        check_equal(system(nan, 3.0) if sys.argv[1] == "the loss" else system(2.0, nan), system(2.0, 3.0), "fp16")
    """
    found = run_python("-c", script, place, path=[BENCHMARK.parent], check=False)
    assert found.returncode and found.stderr.startswith(f"benchmark: ours: {place.removeprefix('the loss') or 'loss'}")


@LONG
def test_scaling(tmp_path):
    ours, peer = TINY["lwc"]
    flags = ("--device", "cpu", "--blocks", "1", "--updates", "1", "--max-tokens", "200", "--types", "120")
    over = ("--family", "lwc", "--phase", "train", "--over", "length", "--values", "4", "9", "--out", tmp_path / "out")
    script = BENCHMARK.with_name("scaling.py")
    page = run_python(script, *over, *flags, f"--ours={ours}", f"--peer={peer}", "--work", tmp_path / "work").stdout
    assert [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")][2:] == ["4", "9"]
    assert (tmp_path / "out" / "lwc_train_over_length.png").read_bytes().startswith(b"\x89PNG")

    refused = run_python(script, "--family", "abd", "--phase", "train", "--over", "depth", check=False)
    assert "--over depth is for --family lwc or deepatt: abd has one depth" in refused.stderr


def prepared(tmp_path, data, text):
    """A folder as that of Multi30k. No word is split."""
    folder = tmp_path / "prepared"
    folder.mkdir()
    (folder / "data").symlink_to(data)
    (folder / "bpe").symlink_to(text)
    return folder


def trained(tmp_path, folder, *flags, **options):
    places = ("--work", tmp_path / "work", "--out", tmp_path / "out")
    script = BENCHMARK.with_name("trained.py")
    return run_python(script, folder, "--rounds", "2", "--beam", "2", *places, *flags, **options)


def exported(tmp_path, name, change):
    """A folder with a translate.py that writes this for each `line`."""
    folder = tmp_path / name
    folder.mkdir()
    lines = f"[{change} for line in sys.stdin]"
    (folder / "translate.py").write_text(f"import sys\nsys.stdout.writelines({lines})\n")
    return folder


def test_trained_systems_beside_each_other(tmp_path, tiny_data, tiny_text):
    folder = prepared(tmp_path, tiny_data, tiny_text)
    right = exported(tmp_path, "right", "' '.join(line.upper().split()[::-1]).replace('A', '@@ A') + '\\n'")
    wrong = exported(tmp_path, "wrong", "line")
    systems = ("--system", f"right=exported:{right}", "--system", f"wrong=exported:{wrong} --lenpen 1")
    page = trained(tmp_path, folder, *systems, "--batch", "2", "6", "--batch", "4", "99").stdout
    first, second = json.loads((tmp_path / "out" / "trained.json").read_text())["searches"]
    assert (first["batch size"], first["sentences"], second["batch size"], second["sentences"]) == (2, 6, 4, 20)
    assert [second["systems"][name]["bleu"] for name in ("right", "wrong")] == [100, 0]
    assert second["pairs"][0]["systems"] == ["wrong", "right"] and second["pairs"][0]["equal translations"] == 0
    assert second["systems"]["wrong"]["command"].endswith("--threads 1 --beam 2 --batch-size 4 --lenpen 1")
    for one in second["systems"]["right"]["seconds"]:
        for clock in ("processor", "wall"):
            assert one["whole command"][clock] - one["start-up"][clock] == one["translation"][clock]
            assert one["start-up"][clock] > 0
    assert "## Beam 2, batches of 4, 20 sentences" in page and "| wrong ÷ right |" in page
    assert page.startswith((tmp_path / "out" / "trained.md").read_text().splitlines()[0])


def test_a_system_that_fails_is_told_with_its_log(tmp_path, tiny_data, tiny_text):
    folder = prepared(tmp_path, tiny_data, tiny_text)
    broken = exported(tmp_path, "broken", "no_such_name")
    failed = trained(tmp_path, folder, "--system", f"broken=exported:{broken}", check=False)
    assert failed.returncode and f"benchmark: broken: {sys.executable} {broken}/translate.py" in failed.stderr
    assert failed.stderr.strip().endswith("NameError: name 'no_such_name' is not defined")
    unknown = trained(tmp_path, folder, "--system", f"broken=onnx:{broken}", check=False)
    assert "not NAME=KIND:PATH, where KIND is one of ours, fairseq, exported, ctranslate2, joeynmt" in unknown.stderr
    pair = trained(tmp_path, folder, "--system", f"a=exported:{broken}", "--pair", "a", "b", check=False)
    assert "--pair: no --system has the name b" in pair.stderr


@LONG
def test_trained_checkpoint_with_both_searches(tmp_path, tiny_data, tiny_text, tiny_checkpoint):
    folder = prepared(tmp_path, tiny_data, tiny_text)
    systems = ("--system", f"ours=ours:{tiny_checkpoint}", "--system", f"theirs=fairseq:{tiny_checkpoint}")
    trained(tmp_path, folder, *systems, "--pair", "ours", "theirs", "--batch", "4", "20", "--rounds", "1")
    (found,) = json.loads((tmp_path / "out" / "trained.json").read_text())["searches"]
    assert found["pairs"] == [{"systems": ["ours", "theirs"], "equal translations": 20, "p": 1.0}]
    assert "--task concat_translation" in found["systems"]["ours"]["command"]
    assert "--task translation" in found["systems"]["theirs"]["command"]
