"""The benchmark on tiny models: it compares what is equal, refuses what is not, and writes what it found."""

import json

import pytest

from conftest import LONG, ONE_FAMILY, ROOT, run

BENCHMARK = ROOT / "examples" / "benchmark" / "benchmark.py"
TINY_RECURRENT = "--embed-dim 12 --hidden-dim 16 --init-std 0.1"
TINY_LSTM = " ".join(f"--{side}-embed-dim 12 --{side}-hidden-size 16" for side in ("encoder", "decoder"))
TINY = {
    "lwc": (
        "--layers 2 --embed-dim 16 --ffn-embed-dim 32 --attention-heads 2",
        "--encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 16 --encoder-ffn-embed-dim 32 "
        "--encoder-attention-heads 2 --decoder-attention-heads 2 --decoder-embed-dim 16 --decoder-ffn-embed-dim 32",
    ),
    "deepatt": (f"--attention-layers 2 {TINY_RECURRENT}", f"{TINY_LSTM} --decoder-out-embed-dim 12"),
    "abd": (TINY_RECURRENT, f"{TINY_LSTM} --decoder-out-embed-dim 12"),
}


def benchmark(tmp_path, family, phase, *more, **options):
    ours, peer = TINY[family]
    return run(
        *("python", BENCHMARK, "--family", family, "--phase", phase, "--device", "cpu", "--blocks", "1"),
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


def test_what_differs_gets_no_ratio(tmp_path):
    """Another loss than the plain one."""
    script = (
        "import sys, systems, benchmark; from dataclasses import replace; sys.argv = sys.argv[1:];"
        "family = systems.FAMILIES['deepatt'];"
        "wrong = replace(family.ours, criterion=(*family.ours.criterion, '--label-smoothing', '0.2'));"
        "benchmark.FAMILIES['deepatt'] = replace(family, ours=wrong); benchmark.main()"
    )
    ours, peer = TINY["deepatt"]
    refused = run(
        *("python", "-c", script, "benchmark.py", "--family", "deepatt", "--phase", "train", "--device", "cpu"),
        *("--blocks", "1", "--max-tokens", "300", "--sentences", "8", "--types", "120", "--length", "4", "9"),
        *(f"--ours={ours}", f"--peer={peer}", "--work", tmp_path / "work", "--out", tmp_path / "out"),
        check=False,
        PYTHONPATH=BENCHMARK.parent,
    )
    assert refused.returncode and refused.stderr.splitlines()[-1].startswith("benchmark: DeepAtt, K = 5: ")
    assert not (tmp_path / "out").exists() and "÷" not in refused.stdout


@LONG
def test_scaling(tmp_path):
    ours, peer = TINY["lwc"]
    flags = ("--device", "cpu", "--blocks", "1", "--updates", "1", "--max-tokens", "200", "--types", "120")
    over = ("--family", "lwc", "--phase", "train", "--over", "length", "--values", "4", "9", "--out", tmp_path / "out")
    script = BENCHMARK.with_name("scaling.py")
    page = run("python", script, *over, *flags, f"--ours={ours}", f"--peer={peer}", "--work", tmp_path / "work").stdout
    assert [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")][2:] == ["4", "9"]
    assert (tmp_path / "out" / "lwc_train_over_length.png").read_bytes().startswith(b"\x89PNG")

    refused = run("python", script, "--family", "abd", "--phase", "train", "--over", "depth", check=False)
    assert "--over depth is for --family lwc or deepatt: abd has one depth" in refused.stderr
