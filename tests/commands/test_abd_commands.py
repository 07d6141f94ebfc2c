"""Asynchronous bidirectional decoding and its relatives through fairseq's own commands, on real files."""

import json
import math
import shlex

import pytest
import torch
from fairseq.checkpoint_utils import load_model_ensemble_and_task
from sacrebleu import corpus_bleu

from conftest import LONG, ROOT, TASK, TINY_TRAINING, TWO_PROCESSES, assert_resumed, hypotheses, run
from lwc_fairseq import load
from lwc_fairseq.analysis.translations import read_generated
from lwc_fairseq.experiments.table_file import load_table

SIZES = ("--embed-dim", "12", "--hidden-dim", "16", "--init-std", "0.1")
GENERATE = (*TASK, "--beam", "3", "--max-len-b", "12", "--cpu")
BIDIRECTIONAL = ("--criterion", "bidirectional_cross_entropy")


def train(data, out, arch, *flags, **settings):
    return run(
        "fairseq-train", data, *TASK, "--arch", arch, *SIZES, *TINY_TRAINING, "--save-dir", out, *flags, **settings
    )


def generate(data, checkpoint, *flags, **settings):
    return run("fairseq-generate", data, "--path", checkpoint, *GENERATE, *flags, **settings)


def close(output):
    return [(text, pytest.approx(score, abs=1e-4)) for text, score in hypotheses(output)]


@pytest.fixture(scope="module")
def abd(tiny_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("abd")
    flags = (*BIDIRECTIONAL, "--label-smoothing", "0.1", "--log-format", "json", "--log-interval", "2")
    log = train(tiny_data, folder, "abd", *flags, "--max-update", "12")
    (folder / "log").write_text(log.stdout + log.stderr)
    return folder / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def reverse(tiny_data, tmp_path_factory):
    """RNNSearch(R2L)."""
    folder = tmp_path_factory.mktemp("r2l")
    train(tiny_data, folder, "rnnsearch", "--reverse-target", "--max-update", "6")
    return folder / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def left_to_right(tiny_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("l2r")
    train(tiny_data, folder, "rnnsearch", "--max-update", "6")
    return folder / "checkpoint_last.pt"


def test_both_terms_are_logged(abd):
    lines = [line[line.index("{") :] for line in (abd.parent / "log").read_text().splitlines() if "nll_loss" in line]
    records = [json.loads(line) for line in lines]
    valid = next(record for record in records if "valid_nll_loss" in record)
    for name in ("loss", "nll_loss", "ppl", "backward_nll_loss", "backward_ppl"):
        assert any(name in record or f"train_{name}" in record for record in records), name
        assert f"valid_{name}" in valid
    assert float(valid["valid_backward_ppl"]) == pytest.approx(2 ** float(valid["valid_backward_nll_loss"]), abs=0.02)


def test_reverse_translations_are_printed(tiny_data, abd):
    output = generate(tiny_data, abd, "--print-reverse", "--print-alignment", "hard").stdout
    lines = dict(line.split("\t")[:2] for line in output.splitlines() if line[:2] in ("R-", "A-"))
    (model,), _, task = load_model_ensemble_and_task([str(abd)], arg_overrides={"data": str(tiny_data)})
    task.load_dataset("test")
    model.eval()
    for i in range(20):
        assert f"A-{i}" in lines
        found = model.reverse_translations(task.dataset("test")[i]["source"][None])[0].flip(0)
        assert lines[f"R-{i}"] == task.target_dictionary.string(found[found > 2])  # neither <s>, <pad> nor </s>


def test_ensemble_with_another_model(tiny_data, abd, left_to_right):
    alone = generate(tiny_data, abd).stdout
    together, one_by_one = (
        generate(tiny_data, f"{abd}:{left_to_right}", "--batch-size", size).stdout for size in ("20", "1")
    )
    assert hypotheses(one_by_one) == close(together)
    assert [score for _, score in hypotheses(together)] != [score for _, score in hypotheses(alone)]


@LONG
def test_two_processes_validate_with_bleu_and_interactive_translates(tiny_data, tmp_path):
    run(
        *(*TWO_PROCESSES, "fairseq-train", tiny_data),
        *(*TASK, "--arch", "abd", *SIZES, *TINY_TRAINING, *BIDIRECTIONAL, "--max-update", "2", "--eval-bleu"),
        *("--save-dir", tmp_path),
        OMP_NUM_THREADS="1",
    )
    checkpoint = tmp_path / "checkpoint_last.pt"
    said = run(
        *("fairseq-interactive", tiny_data, "--path", checkpoint, *GENERATE, "--print-reverse"),
        *("--buffer-size", "3"),
        stdin="ba de\n\nfi go ku\n",
    ).stdout
    assert len(hypotheses(said)) == 3
    assert sum(line.startswith("R-\t") for line in said.splitlines()) == 3


def test_print_reverse_of_a_model_without(tiny_data, reverse):
    refused = generate(tiny_data, reverse, "--reverse-target", "--print-reverse", check=False)
    assert refused.returncode and "--print-reverse: these models have no reverse translation" in refused.stderr


def test_start_from_a_right_to_left_model(tiny_data, reverse, tmp_path):
    """With a learning rate of 0, the saved weights are those with which training began."""
    flags = (*BIDIRECTIONAL, "--init-backward-from", reverse, "--lr", "0", "--max-update", "1")
    train(tiny_data, tmp_path, "abd", *flags)
    ours = torch.load(tmp_path / "checkpoint_last.pt")["model"]
    theirs = torch.load(reverse)["model"]
    for name, value in theirs.items():
        mine = ours[name.replace("decoder.", "decoder.backward_decoder.", 1) if name.startswith("decoder.") else name]
        assert torch.equal(mine, value) != ("initial_state" in name), name


def test_a_start_that_cannot_be_shared_or_runs_in_the_same_direction(tiny_data, reverse, tmp_path):
    start = (*BIDIRECTIONAL, "--init-backward-from", reverse, "--max-update", "1")
    for flags, message in (
        (("--share-all-embeddings",), "this model was trained without --share-all-embeddings: train it with the flag"),
        (("--reverse-target",), "--reverse-target cannot be combined with --init-backward-from: leave"),
    ):
        refused = train(tiny_data, tmp_path, "abd", *start, *flags, check=False)
        assert refused.returncode and message in refused.stderr.strip().splitlines()[-1]


def test_the_file_to_start_from_is_needed_in_training_only(tiny_data, reverse, tmp_path):
    copy = tmp_path / "r2l.pt"
    copy.write_bytes(reverse.read_bytes())
    train(tiny_data, tmp_path, "nsc_hs", "--reverse-model", copy, "--max-update", "2")
    copy.unlink()
    assert len(hypotheses(generate(tiny_data, tmp_path / "checkpoint_last.pt").stdout)) == 20
    for flags, message in (
        (("--reverse-model", copy), f"--reverse-model {copy}: No such file"),
        (("--reverse-model", reverse, "--reverse-target"), "--reverse-target cannot be combined with --reverse-model"),
        ((), "--reverse-model is missing: give the checkpoint of a trained right-to-left model"),
        (("--reverse-model", reverse, "--hidden-dim", "8"), "should be (24, 8), but the checkpoint has (48, 16)"),
    ):
        refused = train(tiny_data, tmp_path / "none", "nsc_rt", *flags, "--max-update", "1", check=False)
        assert refused.returncode and message in refused.stderr.strip().splitlines()[-1]
        assert "Traceback" not in refused.stderr


def test_system_combination_over_words_trains_resumes_and_translates(tiny_data, reverse, tmp_path):
    train(tiny_data, tmp_path, "nsc_rt", "--reverse-model", reverse, "--max-update", "2")
    resumed = train(tiny_data, tmp_path, "nsc_rt", "--reverse-model", reverse, "--max-update", "4")
    assert "Loaded checkpoint" in resumed.stdout + resumed.stderr
    saved, first = torch.load(tmp_path / "checkpoint_last.pt")["model"], torch.load(reverse)["model"]
    assert all(torch.equal(saved[f"encoder.reverse_model.{name}"], value) for name, value in first.items())
    assert len(hypotheses(generate(tiny_data, tmp_path / "checkpoint_last.pt", "--print-reverse").stdout)) == 20


@pytest.mark.parametrize("arch", ["abd", *(pytest.param(arch, marks=LONG) for arch in ("r2l", "nsc_rt", "nsc_hs"))])
def test_the_checkpoint_with_the_best_bleu_is_kept(tiny_data, reverse, tmp_path, arch):
    """As in the tables of the paper; its BLEU is that of the validation set, greedily translated."""
    flags = {"abd": BIDIRECTIONAL, "r2l": ("--reverse-target",)}.get(arch, ("--reverse-model", reverse))
    table = load_table(ROOT / "examples" / "tables" / "abd_table2.yaml")
    by_bleu = shlex.split(table.train)[shlex.split(table.train).index("--eval-bleu") :]
    name = "rnnsearch" if arch == "r2l" else arch
    long = ("--eval-bleu-args", '{"beam": 1, "min_len": 6}')  # shorter translations have no sequence of four words
    train(tiny_data, tmp_path, name, *flags, "--max-epoch", "6", "--lr", "0.02", *by_bleu, *long)
    best, last = (torch.load(tmp_path / f"checkpoint_{kind}.pt")["extra_state"] for kind in ("best", "last"))
    assert best["val_loss"] == best["best"] == last["best"] >= last["val_loss"] > 0
    greedy = ("--gen-subset", "valid", "--beam", "1", "--min-len", "6", "--max-len-b", "200")
    reading = ("--reverse-target",) if arch == "r2l" else ()
    generated = generate(tiny_data, tmp_path / "checkpoint_best.pt", *greedy, *reading)
    (tmp_path / "generated").write_text(generated.stdout)
    found = read_generated(tmp_path / "generated")
    bleu = corpus_bleu(found.hypotheses, found.references, tokenize="none").score
    assert bleu == pytest.approx(best["best"], abs=0.01)


def test_a_left_to_right_model_is_no_right_to_left_one(tiny_data, left_to_right, tmp_path):
    refused = train(tiny_data, tmp_path, "nsc_rt", "--reverse-model", left_to_right, "--max-update", "1", check=False)
    assert "this model was not trained from right to left" in refused.stderr.strip().splitlines()[-1]


def test_agreement_of_two_directions(tiny_data, left_to_right, reverse):
    output = generate(tiny_data, left_to_right, "--agreement-path", reverse, "--nbest", "2").stdout
    assert sum(line.startswith("H-") for line in output.splitlines()) == 40
    gnmt = ("--agreement-path", reverse, "--gnmt-length-penalty", "--lenpen", "2")
    lines = generate(tiny_data, left_to_right, *gnmt).stdout.splitlines()
    scores = {line[2:].split("\t")[0]: float(line.split("\t")[1]) for line in lines if line.startswith("H-")}
    assert len(scores) == 20
    for line in lines:
        if line.startswith("P-"):
            number, values = line[2:].split("\t")
            each = [float(value) for value in values.split()]
            assert scores[number] == pytest.approx(sum(each) / ((5 + len(each)) / 6) ** 2, abs=1e-3)
    both = f"{left_to_right}:{reverse}"
    swapped = generate(tiny_data, left_to_right, "--agreement-path", both, check=False)
    assert swapped.returncode and "this model was not trained from right to left" in swapped.stderr


def test_agreement_of_two_directions_in_python(tiny_data, left_to_right, reverse, tmp_path):
    """Also in the second call, for which fairseq builds another generator."""
    printed = close(generate(tiny_data, left_to_right, "--agreement-path", reverse).stdout)
    state = torch.load(left_to_right)
    state["cfg"]["task"]["eval_bleu"] = True  # as in the recipes; the training cannot set both
    torch.save(state, tmp_path / "checkpoint.pt")
    model = load(tmp_path / "checkpoint.pt", tiny_data, agreement_path=str(reverse))
    model.task.load_dataset("test")
    for i in range(2):
        (found,) = model.generate([model.task.dataset("test")[i]["source"]], beam=3, max_len_b=12)
        score_in_bits = found[0]["score"].item() / math.log(2)
        assert (model.decode(found[0]["tokens"]), score_in_bits) == printed[i]


def test_other_criteria_and_models(tiny_data, tmp_path):
    train(tiny_data, tmp_path, "abd", "--reverse-context", "reference", "--max-update", "2")  # which equals λ = 1
    refused = train(tiny_data, tmp_path / "none", "rnnsearch", *BIDIRECTIONAL, check=False)
    assert "a model with a backward decoder, but this has none" in refused.stderr.strip().splitlines()[-1]
    refused = train(tiny_data, tmp_path / "none", "abd", *BIDIRECTIONAL, "--forward-weight", "1.5", check=False)
    assert "--forward-weight 1.5: λ must be in [0, 1]" in refused.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        ("rmsprop", {"rho": 0.95, "eps": 1e-4, "momentum": 0}),
        pytest.param("fused_adam", {"betas": (0.9, 0.999), "fused": True}, marks=LONG),
    ],
)
def test_optimizers_that_fairseq_lacks(tiny_data, tmp_path, optimizer, expected):
    """Their state is saved, and training goes on from it."""
    flags = (*BIDIRECTIONAL, "--optimizer", optimizer, "--lr", "5e-4", "--clip-norm", "1")
    train(tiny_data, tmp_path / "whole", "abd", *flags, "--max-update", "6")
    train(tiny_data, tmp_path / "parts", "abd", *flags, "--max-update", "3")
    assert_resumed(train(tiny_data, tmp_path / "parts", "abd", *flags, "--max-update", "6"), 3)
    whole, parts = (torch.load(tmp_path / name / "checkpoint_last.pt") for name in ("whole", "parts"))
    assert all(torch.equal(whole["model"][name], parts["model"][name]) for name in whole["model"])
    groups = whole["last_optimizer_state"]["param_groups"][0]
    assert expected.items() <= groups.items()
