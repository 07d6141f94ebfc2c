"""Commands that cannot do what they are asked end with one line that says what to do instead."""

import os
import re
import shutil
from pathlib import Path

import pytest
import torch
from fairseq.checkpoint_utils import torch_persistent_save

from conftest import (
    FAMILIES,
    LONG,
    ONE_FAMILY,
    ROOT,
    TASK,
    TINY_LWC,
    TINY_STOCK,
    TINY_TRAINING,
    binarize,
    hypotheses,
    refusal,
    refused,
    run,
    run_python,
)
from lwc_fairseq_compat import UserError

SHORT = ("--max-source-positions", "20", "--max-target-positions", "15", "--skip-invalid-size-inputs-valid-test")
TEXT = "ba de\nfi\n"


def training(data, out, *flags):
    return ("fairseq-train", data, *TINY_TRAINING, "--max-update", "2", "--save-dir", out, *flags)


@pytest.fixture(scope="module")
def right_to_left(tiny_data, tmp_path_factory):
    """Checkpoints of a model of ours and of fairseq's, trained with --reverse-target."""
    folder = tmp_path_factory.mktemp("right_to_left")
    models = {"lwc": TINY_LWC[2:], "stock": TINY_STOCK, "short": (*TINY_LWC[2:], *SHORT)}
    for name, flags in models.items():
        run(*training(tiny_data, folder / name, *TASK, *flags, "--reverse-target"))
    return {name: folder / name / "checkpoint_last.pt" for name in models}


class TestCheckpoints:
    @pytest.mark.parametrize("command", ["fairseq-generate", "fairseq-interactive", "fairseq-validate"])
    def test_of_a_plugin_that_is_not_loaded(self, tiny_data, tiny_checkpoint, command):
        message = refused(command, tiny_data, "--path", tiny_checkpoint, "--cpu", "--batch-size", "1", stdin=TEXT)
        assert f"{tiny_checkpoint}: its model, lwc_transformer_small, is part of a plugin" in message
        assert message.endswith("add --user-dir lwc_fairseq")

    def test_of_a_plugins_task(self, tiny_data, right_to_left):
        flags = ("--path", right_to_left["stock"], "--cpu", "--max-tokens", "400")
        message = refused("fairseq-validate", tiny_data, *flags)
        assert "its task, concat_translation, is part of a plugin: add --user-dir lwc_fairseq" in message

    def test_are_validated_under_their_own_task(self, tiny_data, tiny_checkpoint):
        flags = ("--path", tiny_checkpoint, "--cpu", "--max-tokens", "400")
        assert "| loss" in run("fairseq-validate", tiny_data, "--user-dir", "lwc_fairseq", *flags).stdout

    @pytest.mark.parametrize(
        ("command", "model"),
        [
            ("fairseq-generate", "stock"),
            ("fairseq-interactive", "lwc"),
            pytest.param("fairseq-generate", "lwc", marks=LONG),
            pytest.param("fairseq-interactive", "stock", marks=LONG),
        ],
    )
    def test_trained_from_right_to_left(self, tiny_data, right_to_left, command, model):
        translate = (command, tiny_data, "--path", right_to_left[model], "--cpu")
        plain = ("--user-dir", "lwc_fairseq", "--task", "translation")
        message = refused(*translate, *plain, stdin=TEXT)
        assert message.endswith("give --task concat_translation --reverse-target")
        if model == "stock":  # which fairseq knows without the plugin
            assert refused(*translate, stdin=TEXT) == message
        message = refused(*translate, *TASK, stdin=TEXT)
        assert "was trained with --reverse-target: add --reverse-target" in message
        assert hypotheses(run(*translate, *TASK, "--reverse-target", stdin=TEXT).stdout)
        if command == "fairseq-generate":  # fairseq's own models give attention here, of a shape that searches do not
            scored = run(*translate, *TASK, "--reverse-target", "--score-reference").stdout
            references = dict(re.findall(r"T-(\d+)\t(.*)", scored))
            assert references and dict(re.findall(r"H-(\d+)\t.*?\t(.*)", scored)) == references

    @pytest.mark.parametrize("command", ["fairseq-generate", pytest.param("fairseq-interactive", marks=LONG)])
    def test_trained_from_left_to_right(self, tiny_data, tiny_checkpoint, right_to_left, command):
        translate = (command, tiny_data, "--path", tiny_checkpoint, "--cpu", *TASK)
        message = refused(*translate, "--reverse-target", stdin=TEXT)
        assert "was trained without --reverse-target: leave out --reverse-target" in message
        ensemble = (command, tiny_data, "--path", f"{tiny_checkpoint}:{right_to_left['lwc']}", "--cpu", *TASK)
        for direction in ((), ("--reverse-target",)):
            assert "some of the models were trained with --reverse-target" in refused(*ensemble, *direction, stdin=TEXT)
        both = ("--agreement-path", right_to_left["lwc"])
        assert hypotheses(run(*translate, *both, stdin=TEXT).stdout)
        message = refused(*translate, "--agreement-path", right_to_left["short"], stdin=TEXT)
        assert "its models are limited to 20 source and 15 target tokens" in message
        assert message.endswith("add --max-source-positions 20 --max-target-positions 15")
        assert hypotheses(run(*translate, "--agreement-path", right_to_left["short"], *SHORT, stdin=TEXT).stdout)

    def test_resumed_in_the_other_direction(self, tiny_data, tiny_checkpoint, right_to_left, tmp_path):
        shutil.copytree(right_to_left["lwc"].parent, tmp_path / "r2l")
        shutil.copytree(tiny_checkpoint.parent, tmp_path / "l2r")
        longer = (*TINY_LWC[2:], "--max-update", "14")
        r2l = (*training(tiny_data, tmp_path / "r2l"), *longer)
        checkpoint = tmp_path / "r2l" / "checkpoint_last.pt"
        expected = f"{checkpoint}: the checkpoint was trained with --reverse-target: add --reverse-target"
        assert refused(*r2l, *TASK) == f"fairseq-train: error: {expected}"
        translation = ("--user-dir", "lwc_fairseq", "--task", "translation", "--reset-dataloader")
        assert refused(*r2l, *translation).endswith("give --task concat_translation --reverse-target")
        message = refused(*training(tiny_data, tmp_path / "l2r"), *longer, *TASK, "--reverse-target")
        assert "was trained without --reverse-target: leave out --reverse-target" in message
        run(*training(tiny_data, tmp_path / "new"), *longer, *TASK, "--finetune-from-model", checkpoint)

    def test_that_are_folders(self, tiny_data, tmp_path):
        message = refused("fairseq-generate", tiny_data, *TASK, "--path", tmp_path, "--cpu")
        assert message.endswith(
            f"{tmp_path} is a folder: give a checkpoint in it, such as {tmp_path}/checkpoint_best.pt"
        )

    def test_that_are_missing(self, tiny_data, tmp_path):
        path = tmp_path / "missing.pt"
        message = refused("fairseq-generate", tiny_data, "--path", path, *TASK, "--cpu")
        assert f"Model file not found: {path}" in message

    def test_whose_folder_is_missing(self, tmp_path):
        """As if the folder of a job is removed while it trains: the message gives the real reason."""
        path = tmp_path / "gone" / "checkpoint_last.pt"
        with pytest.raises(UserError, match=f"cannot write checkpoint {path}.*; the folder {path.parent} is gone"):
            torch_persistent_save({}, str(path))


@pytest.mark.parametrize("name", ["lwc_fairseq", "work", "."])
def test_user_dir_that_is_a_checkout(tiny_data, tmp_path, name):
    """Whatever the checkout is called, and as the current folder."""
    checkout = tmp_path / ("work" if name == "." else name)
    for package in ("lwc_fairseq", "lwc_fairseq_compat"):
        shutil.copytree(ROOT / package, checkout / package, ignore=shutil.ignore_patterns("__pycache__"))
    cwd = checkout if name == "." else tmp_path
    message = refused("fairseq-train", tiny_data, "--user-dir", name, *TINY_LWC[2:], cwd=cwd)
    assert message.endswith(f"--user-dir {name} holds the package, but is not the package: give {name}/lwc_fairseq")


def test_user_dir_that_is_a_file(tiny_data):
    message = refused("fairseq-train", tiny_data, "--user-dir", ROOT / "setup.py", *TINY_STOCK)
    assert message.endswith(f"--user-dir {ROOT / 'setup.py'} is a file: give the folder of a package")


def test_user_dir_that_is_missing(tiny_data):
    message = refused("fairseq-train", tiny_data, "--user-dir", "no/such/plugin", *TINY_STOCK)
    assert "--user-dir no/such/plugin: there is no such folder, and no package of this name" in message


class TestHydra:
    """What fairseq-train says in one line, fairseq-hydra-train says in one line, too."""

    @pytest.mark.parametrize(
        ("name", "data", "message"),
        [
            ("deepat", (), "--config-name deepat: no such configuration in --config-dir"),
            ("deepatt", (), "task.data is missing: add task.data=FOLDER, with the full path"),
            ("deepatt", ("task.data=here",), "where hydra runs this: give the full path"),
            ("deepatt", ("task.data=/none",), "data folder /none: No such file or directory"),
        ],
    )
    def test_one_line(self, tmp_path, name, data, message):
        given = ("--config-dir", ROOT / "examples" / "configs", "--config-name", name, *data)
        assert message in refused("fairseq-hydra-train", *given, cwd=tmp_path)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (("  rmsprop_eps", "  rmsprop_rho"), "wrong.yaml, line 24: found duplicate key rmsprop_rho"),
            (("dropout: 0.3", "dropuot: 0.3"), "dropuot: Key 'dropuot' not in 'ABDConfig'"),
            (("dropout: 0.3", "dropout: much"), "dropout: Value 'much' of type 'str' could not be converted to Float"),
            (("reverse_target:", "target_lang: no\n  reverse_target:"), "task.target_lang is a truth value for YAML"),
        ],
    )
    def test_a_wrong_configuration(self, tmp_path, tiny_data, change, message):
        text = (ROOT / "examples" / "configs" / "abd.yaml").read_text()
        assert change[0] in text
        (tmp_path / "wrong.yaml").write_text(text.replace(*change))
        given = ("--config-dir", tmp_path, "--config-name", "wrong", f"task.data={tiny_data}")
        assert message in refused("fairseq-hydra-train", *given, cwd=tmp_path)


class TestNumpy2:
    """Options for which fairseq uses names that numpy has removed."""

    def test_buckets(self, tiny_data, tmp_path):
        run(*training(tiny_data, tmp_path, *TINY_STOCK, "--task", "translation", "--num-batch-buckets", "2"))

    def test_language_models(self, tiny_text, tmp_path):
        prefixes = (f"--trainpref={tiny_text / 'train.en'}", f"--validpref={tiny_text / 'valid.en'}")
        run("fairseq-preprocess", "--only-source", *prefixes, "--destdir", tmp_path / "data")
        model = ("--arch", "transformer_lm", "--decoder-layers", "1", "--decoder-embed-dim", "8")
        flags = (*model, "--decoder-attention-heads", "1", "--tokens-per-sample", "50", "--criterion", "cross_entropy")
        task = ("--task", "language_modeling", "--sample-break-mode", "eos")
        run(*training(tmp_path / "data", tmp_path / "out", *flags, *task))


class TestValidationSets:
    @pytest.fixture
    def two_sets(self, tiny_data, tmp_path):
        data = shutil.copytree(tiny_data, tmp_path / "data")
        for path in list(data.glob("valid.*")):
            shutil.copy(path, data / path.name.replace("valid", "valid1"))
        return data

    def test_that_are_named_are_used(self, two_sets, tmp_path):
        done = run(*training(two_sets, tmp_path, *TINY_STOCK, "--valid-subset", "valid,valid1"))
        assert "| valid1 |" in done.stdout + done.stderr

    def test_that_are_not_named(self, two_sets, tmp_path):
        message = refused(*training(two_sets, tmp_path, *TINY_STOCK))
        assert "Valid paths ['valid1'] will be ignored" in message and "--valid-subset valid,valid1" in message


def test_alignments_for_a_model_without_attention_in_training(tiny_text, tmp_path):
    text = shutil.copytree(tiny_text, tmp_path / "text")
    for split in ("train", "valid", "test"):
        lines = (text / f"{split}.de").read_text().splitlines()
        (text / f"{split}.align").write_text("0-0\n" * len(lines))
    data = binarize(text, tmp_path / "data", "--joined-dictionary", "--align-suffix", "align")
    criterion = ("--criterion", "label_smoothed_cross_entropy_with_alignment", "--load-alignments")
    for family, flags in FAMILIES.items():
        command = (*training(data, tmp_path / family, *TASK, *flags), *criterion)
        if family in ("lwc", "abd_lwc"):
            assert "this model computes no attention weights in training" in refused(*command)
        else:
            run(*command)
    reversed_targets = (*training(data, tmp_path / "r2l", *TASK, *FAMILIES["deepatt"], "--reverse-target"), *criterion)
    assert "--load-alignments cannot be combined with --reverse-target" in refused(*reversed_targets)


def test_best_checkpoint_by_bleu_that_is_not_computed(tiny_data, tmp_path):
    message = refused(*training(tiny_data, tmp_path, *TINY_STOCK, "--best-checkpoint-metric", "bleu"))
    assert message.endswith("--best-checkpoint-metric bleu: add --eval-bleu, which computes it")


class TestChecksOfFairseq:
    """The commands of fairseq check some options themselves; their messages are printed without a traceback."""

    def test_training_without_a_batch_size_or_an_optimizer(self, tiny_data, tmp_path):
        given = ("fairseq-train", tiny_data, *TINY_STOCK, "--save-dir", tmp_path)
        assert "the training has no optimizer: add one, such as --optimizer adam" in refused(*given)
        message = refused(*given, "--optimizer", "adam")
        assert message == "fairseq-train: error: Must specify batch size either with --max-tokens or --batch-size"

    def test_batches_that_are_larger_than_the_buffer(self, tiny_data, tiny_checkpoint):
        given = ("--path", tiny_checkpoint, *TASK, "--cpu", "--batch-size", "2")
        message = refused("fairseq-interactive", tiny_data, *given, stdin=TEXT)
        assert message == "fairseq-interactive: error: --batch-size cannot be larger than --buffer-size"

    def test_other_assertions_keep_their_traceback(self):
        for where in ("", "__name__ = 'fairseq_cli.train'; "):
            script = f"import fairseq; {where}assert False, 'broken'"
            done = run_python("-c", script, check=False)
            assert ("Traceback" in done.stderr) == (not where)


class TestSearch:
    def test_a_missing_input(self, tiny_data, tiny_checkpoint):
        given = ("fairseq-interactive", tiny_data, "--path", tiny_checkpoint, *TASK, "--cpu")
        assert refused(*given, "--input", "none.txt").endswith("--input none.txt: no such file")

    def test_tokenizer_without_languages(self, tiny_data, tiny_checkpoint):
        given = ("--path", tiny_checkpoint, *TASK, "--cpu", "--tokenizer", "moses")
        message = refused("fairseq-interactive", tiny_data, *given, stdin=TEXT)
        assert message.endswith("--tokenizer moses has rules for each language: add the languages, -s SOURCE -t TARGET")
        assert hypotheses(run("fairseq-interactive", tiny_data, *given, "-s", "de", "-t", "en", stdin=TEXT).stdout)

    def test_sub_words_without_their_file(self, tiny_data, tiny_checkpoint):
        given = ("--path", tiny_checkpoint, *TASK, "--cpu", "--bpe", "subword_nmt")
        message = refused("fairseq-interactive", tiny_data, *given, stdin=TEXT)
        assert message.endswith("--bpe subword_nmt needs --bpe-codes FILE")
        message = refused("fairseq-interactive", tiny_data, *given, "--bpe-codes", "no/codes", stdin=TEXT)
        assert message.endswith("--bpe-codes no/codes: no such file")


class TestFormatsOfData:
    @pytest.fixture(scope="class")
    def formats(self, tiny_text, tiny_data, tmp_path_factory):
        folder = tmp_path_factory.mktemp("formats")
        for name in ("lazy", "raw"):
            binarize(tiny_text, folder / name, "--joined-dictionary", "--dataset-impl", name)
        return {"mmap": tiny_data, "lazy": folder / "lazy", "raw": folder / "raw"}

    @pytest.mark.parametrize(
        "flags",
        [(), *(pytest.param(("--dataset-impl", name), marks=LONG) for name in ("cached", "lazy"))],
        ids=str,
    )
    @pytest.mark.parametrize("model", ["ours", pytest.param("stock", marks=LONG)])
    def test_lazy_data_trains_the_same_model(self, formats, tmp_path, model, flags):
        kind = (*TASK, *TINY_LWC[2:]) if model == "ours" else TINY_STOCK
        saved = []
        for name, more in (("mmap", ()), ("lazy", flags)):
            run(*training(formats[name], tmp_path / name, *kind, *more))
            weights = torch.load(tmp_path / name / "checkpoint_last.pt")["model"]
            saved.append({key: value for key, value in weights.items() if not key.endswith("_float_tensor")})
        torch.testing.assert_close(*saved, rtol=0, atol=0)

    @pytest.mark.parametrize(
        ("data", "flag", "expected"),
        [
            ("mmap", "cached", "is in another format (mmap): leave the option out"),
            ("lazy", "mmap", "is in another format (cached): leave the option out"),
            ("mmap", "raw", "its test is binary: leave out --dataset-impl raw"),
            ("raw", None, "its test is raw text: add --dataset-impl raw"),
        ],
    )
    def test_another_format(self, formats, tiny_checkpoint, data, flag, expected):
        flags = ("--dataset-impl", flag) if flag else ()
        done = run(*("fairseq-generate", formats[data], *TASK, "--path", tiny_checkpoint, "--cpu", *flags), check=False)
        assert done.returncode and f"{expected}" in done.stderr.strip().splitlines()[-1]
        assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


class TestScores:
    """fairseq-score, two of whose options end in a traceback in plain fairseq."""

    @pytest.fixture
    def files(self, tmp_path):
        (tmp_path / "sys").write_text("a b c d e\n\nf g h i\n")
        (tmp_path / "ref").write_text("a b c d e\nx y\nf g h j\n")
        return ("--sys", tmp_path / "sys", "--ref", tmp_path / "ref")

    def test_sacrebleu(self, files):
        import sacrebleu

        lines = [path.read_text().splitlines() for path in (files[1], files[3])]
        expected = sacrebleu.corpus_bleu(lines[0], [lines[1]]).format()
        assert run("fairseq-score", *files, "--sacrebleu").stdout.splitlines()[-1] == expected

    def test_sentences(self, files):
        first, empty, last = run("fairseq-score", *files, "--sentence-bleu").stdout.splitlines()[1:]
        assert first.startswith("0 BLEU4 = 100.00") and empty == "1 BLEU4 = 0.00 (syslen=0, reflen=2)"
        assert 50 < float(last.split()[3].rstrip(",")) < 100

    def test_an_empty_translation_counts(self, files):
        assert "syslen=9, reflen=11" in run("fairseq-score", *files).stdout


class TestTasksForOtherModels:
    @ONE_FAMILY
    def test_of_one_pair_of_languages(self, tiny_data, tmp_path, family):
        for task, more in {
            "multilingual_translation": ("--lang-pairs", "de-en"),
            "language_modeling": ("--tokens-per-sample", "64"),
        }.items():
            given = ("--user-dir", "lwc_fairseq", *FAMILIES[family], "--task", task, *more)
            message = refused(*training(tiny_data, tmp_path / "out", *given))
            assert f"--task {task} trains " in message and message.endswith("such as --task translation")

    @ONE_FAMILY
    def test_from_pretrained_bart_works(self, tiny_data, tmp_path, family):
        task = ("--user-dir", "lwc_fairseq", "--task", "translation_from_pretrained_bart")
        given = training(tiny_data, tmp_path, *task, *FAMILIES[family])
        assert "add --langs" in refused(*given)
        run(*given, "--langs", "de,en")
        path = tmp_path / "checkpoint_last.pt"
        flags = (*task, "--langs", "de,en", "-s", "de", "-t", "en", "--cpu", "--path", path, "--max-len-b", "5")
        assert len(hypotheses(run("fairseq-generate", tiny_data, *flags).stdout)) == 20
        assert len(hypotheses(run("fairseq-interactive", tiny_data, *flags, stdin=TEXT).stdout)) == 2


@pytest.mark.parametrize("family", ["abd", pytest.param("deepatt", marks=LONG)])
def test_shared_embeddings(tiny_data, tmp_path, family):
    """LWC always shares them."""
    run(*training(tiny_data, tmp_path, *TASK, *FAMILIES[family], "--share-all-embeddings"))
    weights = torch.load(tmp_path / "checkpoint_last.pt")["model"]
    types = 48  # of the joined dictionary
    tables = [
        value.data_ptr()
        for name, value in weights.items()
        if len(value) == types and value.dim() == 2 and ("embedding" in name or "output" in name)
    ]
    assert tables and len(set(tables)) == 1


def test_missing_folders_of_out_are_made(tiny_data, tiny_checkpoint, tmp_path):
    model = (tiny_checkpoint, "--data", tiny_data)
    run("lwc-fairseq", "align", *model, "--out", tmp_path / "a" / "links")
    weights = ("--weights", tmp_path / "c" / "weights.npz")
    run("lwc-fairseq", "attention", *model, "--source", "ba", "--out", tmp_path / "b" / "picture.svg", *weights)
    run("lwc-fairseq", "average", tiny_checkpoint, "--out", tmp_path / "d" / "mean.pt")
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*"))
    assert names == ["a/links", "b/picture.svg", "c/weights.npz", "d/mean.pt"]
    (tmp_path / "file").write_text("")
    message = refused("lwc-fairseq", "average", tiny_checkpoint, "--out", tmp_path / "file" / "mean.pt")
    assert f"error: --out {tmp_path / 'file'}: " in message
    picture = ("--source", "ba", "--out", tmp_path / "picture.svg", "--weights", tmp_path / "file" / "weights.npz")
    assert f"error: --weights {tmp_path / 'file'}: " in refused("lwc-fairseq", "attention", *model, *picture)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_an_out_that_is_no_file(tiny_data, tiny_checkpoint, tmp_path, make):
    """It is refused before anything is computed, and nothing is left behind."""
    out = tmp_path / "out.png"
    make(out)
    kind = "a folder" if out.is_dir() else "a device or a pipe"
    model = (tiny_checkpoint, "--data", tiny_data)
    commands = [
        ("average", tiny_checkpoint),
        ("align", *model),
        ("attention", *model, "--source", "ba"),
        ("report", tmp_path),
    ]
    for command in commands:
        assert f"--out {out}: {kind}; give the name of a file" in refused("lwc-fairseq", *command, "--out", out)
    assert not out.is_file() and list(tmp_path.iterdir()) == [out]


def test_an_out_that_is_read(tiny_data, tiny_checkpoint, tmp_path):
    model = tmp_path / "model.pt"
    shutil.copy(tiny_checkpoint, model)
    shutil.copytree(tiny_data, tmp_path / "data")
    (tmp_path / "data" / "text.yaml").write_text("source: de\ntarget: en\n")
    pack = ("pack", model, "--data", tmp_path / "data", "--card", ROOT / "README.md", "--out", model)
    average, convert = ("average", model, "--out", model), ("import", model, model, "--data", tiny_data)
    for command, option in ((average, "--out"), (pack, "--out"), (convert, "NEW")):
        assert f"{option} {model}: this file is read, and would be lost: give another name" in refusal(*command)
    assert model.read_bytes() == tiny_checkpoint.read_bytes()


IMPATIENT = """
import lwc_fairseq_compat.commands
from fairseq_cli.{command} import cli_main

lwc_fairseq_compat.commands.QUIET_S = 0.0
cli_main()
"""


def test_slow_batches_show_progress_without_a_terminal(tiny_data, tiny_checkpoint, tmp_path):
    """With a limit of 0 instead of 10 seconds, the second line comes after twice that time, and so on."""
    given = training(tiny_data, tmp_path, *TASK, *TINY_LWC[2:])[1:]
    trained = run_python("-c", IMPATIENT.format(command="train"), *given)
    assert "epoch 001:      1 / " in trained.stdout + trained.stderr
    given = (tiny_data, *TASK, "--path", tiny_checkpoint, "--cpu", "--batch-size", "4")
    translated = run_python("-c", IMPATIENT.format(command="generate"), *given)
    assert "batch:      1 / 5" in translated.stderr
    plain = run("fairseq-generate", *given)
    assert "batch:" not in plain.stderr and hypotheses(plain.stdout) == hypotheses(translated.stdout)
