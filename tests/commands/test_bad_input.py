"""Bad input gives one clear line or a defined output, and leaves no file that looks finished."""

import shutil
from types import SimpleNamespace

import pytest

from conftest import LONG, TASK, TINY_LWC, TINY_TRAINING, binarize, hypotheses, refused, run
from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.precision import check_precision


def train(data, out, *flags):
    return ("fairseq-train", data, *TINY_LWC, *TINY_TRAINING, "--task", "concat_translation", "--save-dir", out, *flags)


def test_separate_dictionaries(tiny_text, tmp_path):
    data = binarize(tiny_text, tmp_path / "bin")
    message = refused(*train(data, tmp_path / "out", "--max-update", "1"))
    assert message.startswith("fairseq-train: error: LWC has one vocabulary")
    assert "(24 and 24 types): run fairseq-preprocess with --joined-dictionary" in message
    assert not list((tmp_path / "out").glob("*.pt"))


def test_missing_dictionary(tiny_data, tmp_path):
    shutil.copytree(tiny_data, tmp_path / "bin")
    (tmp_path / "bin" / "dict.en.txt").unlink()
    message = refused(*train(tmp_path / "bin", tmp_path / "out", "-s", "de", "-t", "en"))
    assert f"dictionary not found: {tmp_path / 'bin' / 'dict.en.txt'}" in message


@pytest.mark.parametrize("task", [pytest.param("translation", marks=LONG), "concat_translation"])
def test_missing_data(tiny_data, tmp_path, task):
    missing = tmp_path / "missing"
    command = train(missing, tmp_path / "out", "--task", task)
    assert f"error: data folder {missing}: No such file or directory; give the folder" in refused(*command)
    missing.mkdir()
    assert f"error: data folder {missing}: no data of a language pair in it; give the folder" in refused(*command)
    for flag in ("--train-subset", "--valid-subset"):
        message = refused(*train(tiny_data, tmp_path / "out", "--task", task, flag, "tset"))
        assert message.endswith(f"error: data folder {tiny_data}: no tset in it, only test, train, valid")
    for file in shutil.copytree(tiny_data, tmp_path / "bin").glob("valid.*"):
        file.unlink()
    message = refused(*train(tmp_path / "bin", tmp_path / "out", "--task", task))
    assert message.endswith(": no valid in it, only test, train: fairseq-preprocess writes it from --validpref")


@pytest.mark.parametrize("bad", ["missing", "empty", "shorter"])
def test_text_that_is_not_parallel(tiny_text, tmp_path, bad):
    for split in ("train", "valid"):
        for language in ("de", "en"):
            shutil.copy(tiny_text / f"{split}.{language}", tmp_path)
    path = tmp_path / "valid.en"
    lines = path.read_text().splitlines(keepends=True)
    if bad == "missing":
        path.unlink()
    else:
        path.write_text("" if bad == "empty" else "".join(lines[1:]).rstrip("\n"))
    prefixes = [f"--{split}pref={tmp_path / split}" for split in ("train", "valid")]
    message = refused("fairseq-preprocess", "-s", "de", "-t", "en", *prefixes, "--destdir", tmp_path / "bin")
    expected = {
        "missing": f"--validpref: no such file: {path}",
        "empty": f"--validpref: {path} is empty",
        "shorter": f"--validpref: {tmp_path / 'valid.de'} has {len(lines)} and {path} has {len(lines) - 1} lines: each",
    }[bad]
    assert message.startswith(f"fairseq-preprocess: error: {expected}")
    assert not (tmp_path / "bin").exists()


def test_a_dictionary_in_the_way(tiny_text, tiny_data, tmp_path):
    shutil.copytree(tiny_data, tmp_path / "bin")
    command = ("fairseq-preprocess", "-s", "de", "-t", "en", f"--trainpref={tiny_text / 'train'}")
    message = refused(*command, "--destdir", tmp_path / "bin")
    assert f"error: {tmp_path / 'bin' / 'dict.de.txt'} exists: remove the folder or give another --destdir" in message
    known = ("--srcdict", tiny_data / "dict.de.txt", "--tgtdict", tiny_data / "dict.en.txt")
    run(*command, *known, "--destdir", tmp_path / "bin")


@pytest.mark.parametrize("name", ["fp16", "memory_efficient_fp16", "memory_efficient_bf16"])
def test_weights_in_half_precision_on_a_cpu(name):
    common = {"cpu": True, "memory_efficient_fp16": False, "fp16": False, "memory_efficient_bf16": False}
    with pytest.raises(
        UserError, match=f"^--{name.replace('_', '-')} needs a CUDA device, but --cpu is given: use --bf16"
    ):
        check_precision(SimpleNamespace(**{**common, name: True}))


def test_a_truncated_checkpoint_is_refused_and_kept(tiny_data, tiny_checkpoint, tmp_path):
    path = tmp_path / "checkpoint_last.pt"
    whole = tiny_checkpoint.read_bytes()
    before = whole[: len(whole) // 2]
    path.write_bytes(before)
    message = refused("fairseq-generate", tiny_data, "--path", path, *TASK, "--cpu")
    assert message.startswith(f"fairseq-generate: error: cannot read checkpoint {path}")
    # and training does not start again over it
    assert f"cannot read checkpoint {path}" in refused(*train(tiny_data, tmp_path, "--max-update", "20"))
    assert path.read_bytes() == before


def test_a_checkpoint_of_another_dictionary(tiny_text, tiny_checkpoint, tmp_path):
    data = binarize(tiny_text, tmp_path / "bin", "--joined-dictionary", "--nwordssrc", "20")
    message = refused("fairseq-generate", data, "--path", tiny_checkpoint, *TASK, "--cpu", "--skip-dictionary-check")
    assert "the checkpoint does not fit this LWCTransformerModel" in message and "size mismatch" in message


def test_training_on_a_checkpoint_of_another_size(tiny_data, tiny_checkpoint, tmp_path):
    message = refused(*train(tiny_data, tmp_path / "out", "--layers", "3", "--restore-file", tiny_checkpoint))
    assert f"{tiny_checkpoint}: the checkpoint does not fit this LWCTransformerModel" in message
    assert "layers.2" in message and len(message) < 700


def test_a_line_too_long(tiny_data, tiny_checkpoint):
    """fairseq-interactive cuts it, and the order stays."""
    flags = ("--path", tiny_checkpoint, *TASK, "--cpu", "--max-len-b", "5")
    done = run("fairseq-interactive", tiny_data, *flags, stdin="ba " * 1100 + "\nba\n")
    assert len(hypotheses(done.stdout)) == 2
    assert "a source has 1101 tokens" in done.stderr and "only the first 1024 are translated" in done.stderr


@pytest.mark.parametrize("task", [pytest.param("translation", marks=LONG), "concat_translation"])
def test_a_line_longer_than_max_tokens(tiny_data, tiny_checkpoint, task):
    """fairseq-interactive translates it alone, with a warning; fairseq-generate refuses it."""
    flags = ("--path", tiny_checkpoint, "--user-dir", "lwc_fairseq", "--task", task, "--cpu", "--max-len-b", "5")
    text = "ba\n" + "ba " * 12 + "\nde fi\n" + "fi " * 12 + "\n"
    alone = hypotheses(run("fairseq-interactive", tiny_data, *flags, stdin=text).stdout)
    done = run("fairseq-interactive", tiny_data, *flags, "--buffer-size", "4", "--max-tokens", "9", stdin=text)
    assert [text for text, _ in hypotheses(done.stdout)] == [text for text, _ in alone]
    assert done.stderr.count("a line of 13 tokens, more than --max-tokens 9: translated alone") == 2
    if task == "concat_translation":
        message = refused("fairseq-generate", tiny_data, *flags, "--max-tokens", "9")
        assert "source plus target tokens, more than --max-tokens 9" in message


def test_a_refusal_leaves_no_crash_behind(tiny_data, tmp_path):
    """fairseq saves `crash.pt` after any error of an update; here no update has been made."""
    lstm = ("--arch", "lstm", *TINY_TRAINING, "--criterion", "chunked_cross_entropy", "--save-dir", tmp_path / "out")
    message = refused("fairseq-train", tiny_data, "--user-dir", "lwc_fairseq", *lstm)
    assert "chunked_cross_entropy does not work with this model (LSTMDecoder returns no features" in message
    assert not list((tmp_path / "out").glob("*"))


def test_empty_lines_and_unknown_words_in_a_test_set(tiny_data, tiny_checkpoint, tmp_path):
    (tmp_path / "test.de").write_text("ba de\n\nnever seen before\n\n")
    (tmp_path / "test.en").write_text("DE BA\n\nNO\n\n")
    dictionaries = ("--srcdict", tiny_data / "dict.de.txt", "--joined-dictionary")
    run(
        *("fairseq-preprocess", "-s", "de", "-t", "en", "--testpref", tmp_path / "test", *dictionaries),
        *("--destdir", tmp_path / "bin"),
    )
    flags = ("--path", tiny_checkpoint, *TASK, "--cpu", "--max-len-b", "8", "--batch-size", "4", "--nbest", "2")
    output = run("fairseq-generate", tmp_path / "bin", *flags, "--beam", "2").stdout
    found = hypotheses(output)
    assert found[1] == found[3] == ("", 0.0) and found[0][0] and found[2][0]
