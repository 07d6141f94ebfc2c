"""Reverse translations beside the data: `lwc-fairseq reverse` makes them, training and generation read them."""

import fcntl
import re
import resource
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset

from conftest import (
    BIDIRECTIONAL,
    EOS,
    FAMILIES,
    LONG,
    TASK,
    TINY_RECURRENT,
    TINY_TRAINING,
    assert_same_end,
    hypotheses,
    refused,
    run,
    run_python,
)
from lwc_fairseq.data.reverse import reverse_words
from lwc_fairseq.data.reverse_files import Origin, ReverseFiles, describe, open_sources
from lwc_fairseq_compat import UserError

PAIR = ("de", "en")
TRANSLATIONS = ("--reverse-context", "translations")
OVER_TRANSLATIONS = (*TRANSLATIONS, "--backward-target", "translations")
RNMT = ("--arch", "abd_rnmt", "--embed-dim", "16", "--decoder-layers", "2", "--attention-heads", "2", *BIDIRECTIONAL)
MODELS = {**FAMILIES, "abd_rnmt": RNMT}
SETS = {"train": 90, "train1": 50, "valid": 20, "test": 20}


def train(data, out, *flags):
    """Train a model, and return what the command says."""
    done = run("fairseq-train", data, *TASK, *TINY_TRAINING, "--dropout", "0.2", *flags, "--save-dir", out)
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def data(tiny_text, tiny_data, tmp_path_factory):
    """The pairs of `tiny_data` in two folders, the first of which has two training sets."""
    folder = tmp_path_factory.mktemp("shards")
    one, two = folder / "one", folder / "two"
    for name, first, last in (("train", 0, 90), ("train1", 90, 140), ("other", 140, 200)):
        for language in PAIR:
            lines = (tiny_text / f"train.{language}").read_text().splitlines(keepends=True)
            (folder / f"{name}.{language}").write_text("".join(lines[first:last]))
    words = ("--srcdict", tiny_data / "dict.de.txt", "--tgtdict", tiny_data / "dict.en.txt")
    valid = ",".join(map(str, (tiny_text / "valid", folder / "train1", folder / "other")))
    prefixes = ("--trainpref", folder / "train", "--validpref", valid, "--testpref", tiny_text / "test")
    run("fairseq-preprocess", "-s", "de", "-t", "en", *words, *prefixes, "--destdir", one)
    two.mkdir()
    for path in one.glob("dict.*"):
        shutil.copy(path, two)
    for name, new in (("valid1", one / "train1"), ("valid2", two / "train")):
        for path in one.glob(f"{name}.*"):
            path.rename(new.with_name(path.name.replace(name, new.name)))
    return folder


@pytest.fixture(scope="module")
def r2l(tiny_data, tmp_path_factory):
    """A right-to-left model with almost random weights. It translates each source into other words, and some of them
    not up to the limit."""
    out = tmp_path_factory.mktemp("r2l")
    random = ("--arch", "rnnsearch", *TINY_RECURRENT, "--init-std", "1", "--reverse-target", "--max-update", "2")
    train(tiny_data, out, *random)
    state = torch.load(out / "checkpoint_last.pt")
    state["model"]["decoder.output.bias"][EOS] += 3
    state["cfg"]["task"]["gnmt_length_penalty"] = True  # it ranks by log P all the same
    torch.save(state, out / "r2l.pt")
    return out / "r2l.pt"


@pytest.fixture(scope="module")
def translated(data, r2l, tmp_path_factory):
    """A copy of the data, with reverse translations in both folders."""
    folder = tmp_path_factory.mktemp("translated") / "data"
    shutil.copytree(data, folder)
    for name in ("one", "two"):
        run("lwc-fairseq", "reverse", r2l, "--data", folder / name, "--beam", "3")
    return folder


def read(data, split):
    return [row.tolist() for row in MMapIndexedDataset(str(ReverseFiles(data, split, PAIR).prefix))]


def texts(data, rows):
    """Translations in reading order, as text."""
    dictionary = Dictionary.load(str(data / "dict.en.txt"))
    return [dictionary.string(reverse_words(torch.tensor(row), EOS)) for row in rows]


@LONG
@pytest.mark.parametrize("arch", ["nsc_hs", "nsc_rt"])
def test_system_combination_trains_as_with_its_own_search(translated, r2l, tmp_path, arch):
    """Over both folders and both training sets, in shuffled batches."""
    model = ("--arch", arch, *TINY_RECURRENT, "--reverse-model", r2l, "--reverse-beam", "3", "--input-dropout", "0")
    shards = f"{translated / 'one'}:{translated / 'two'}"
    order = ("--batch-size", "20", "--upsample-primary", "2")
    for name, flags in (("search", ()), ("file", TRANSLATIONS)):
        train(shards, tmp_path / name, *model, *flags, *order, "--max-epoch", "2", "--disable-validation")
    assert_same_end(tmp_path / "file", tmp_path / "search")


def write(data, split, rows, **changes):
    """Reverse translations as `lwc-fairseq reverse` would write them."""
    source, target = (Dictionary.load(str(data / f"dict.{language}.txt")) for language in ("de", "en"))
    about = describe(str(data / f"{split}.de-en.de"), (source, target))
    with ReverseFiles(data, split, PAIR).writing(Origin("by hand", "", 1, **about, **changes), 100) as unfinished:
        unfinished.add(list(enumerate(rows)))


@pytest.mark.parametrize("family", [*(pytest.param(family, marks=LONG) for family in ("abd", "abd_rnmt")), "abd_lwc"])
def test_translations_that_are_the_reversed_references(data, tmp_path, family):
    """Training is then that with --reverse-context reference."""
    copy = tmp_path / "data"
    shutil.copytree(data, copy)
    for folder, splits in (("one", ("train", "train1", "valid")), ("two", ("train",))):
        for split in splits:
            targets = open_sources(str(copy / folder / f"{split}.de-en.en"), None)
            write(copy / folder, split, [reverse_words(target, EOS) for target in targets])
    order = ("--max-epoch", "2", "--batch-size", "20", "--upsample-primary", "2", "--disable-validation")
    for name, flags in (("reference", ("--reverse-context", "reference")), ("file", OVER_TRANSLATIONS)):
        train(f"{copy / 'one'}:{copy / 'two'}", tmp_path / name, *MODELS[family], *flags, *order)
    assert_same_end(tmp_path / "file", tmp_path / "reference")


def generate(data, checkpoint, *flags):
    """The reverse translations of a test set, as --print-reverse prints them, and the hypotheses."""
    flags = ("--path", checkpoint, "--beam", "2", "--max-len-b", "10", "--cpu", "--print-reverse", *flags)
    output = run("fairseq-generate", data, *TASK, *flags).stdout
    printed = dict(line[2:].split("\t") for line in output.splitlines() if line.startswith("R-"))
    return [printed[str(number)] for number in range(20)], hypotheses(output)


@pytest.mark.parametrize("family", ["abd", pytest.param("abd_lwc", marks=LONG)])
def test_generation_searches_or_reads(translated, tmp_path, family):
    one, checkpoint = translated / "one", tmp_path / "checkpoint_last.pt"
    train(one, tmp_path, *FAMILIES[family], *TRANSLATIONS, "--max-update", "3")
    own, searched = generate(one, checkpoint)
    given, read_from_data = generate(one, checkpoint, "--reverse-from-data")
    assert given == texts(one, read(one, "test")) != own
    for (_, score), (_, other) in zip(searched, read_from_data, strict=True):
        assert score != other


@LONG
@pytest.mark.parametrize("family", ["abd", "abd_rnmt", "abd_lwc"])
def test_losses_read_in_every_command_and_both_searches_find_the_same(translated, tmp_path, family):
    """In training with BLEU, which searches, the loss of the validation set is that of fairseq-validate."""
    one, checkpoint = translated / "one", tmp_path / "checkpoint_last.pt"
    bleu = ("--eval-bleu", "--eval-bleu-args", '{"beam": 1}', "--log-format", "json")
    log = train(one, tmp_path, *MODELS[family], *OVER_TRANSLATIONS, "--max-update", "3", *bleu)
    validation = ("--valid-subset", "valid", "--batch-size", "20", "--cpu")
    done = run("fairseq-validate", one, *TASK, "--path", checkpoint, *validation)
    found = re.search(r"valid on 'valid' subset \| loss ([\d.]+) .*backward_ppl", done.stdout + done.stderr)
    losses = re.findall(r'"valid_loss": "([\d.]+)"', log)
    assert float(found[1]) == pytest.approx(float(losses[-1]), abs=2e-3)
    (given, once), (again, stock) = (
        generate(one, checkpoint, "--reverse-from-data", *flags)
        for flags in ((), ("--stock-search", "--batch-size", "3"))
    )
    assert given == again
    assert [(text, pytest.approx(score, abs=1e-4)) for text, score in once] == stock


KILLED = """
import os, signal, sys
from lwc_fairseq import cli
from lwc_fairseq.data.reverse_files import Unfinished

add, left = Unfinished.add, int(sys.argv.pop(1))
print("killed after", left, "batches")

def add_some(self, translations):
    global left
    add(self, translations)
    left -= 1
    if left == 0:
        self.file.write(b"\\x07\\0\\0\\0\\x03\\0\\0\\0\\x05\\0")  # a part of a translation
        self.file.flush()
        os.kill(os.getpid(), signal.SIGKILL)

begin = Unfinished.__init__

def count(self, file, sentences):
    begin(self, file, sentences)
    print("missing", len(self.missing), "of", sentences, flush=True)

Unfinished.add, Unfinished.__init__ = add_some, count
sys.argv[0] = "lwc-fairseq"
cli.main()
"""


def test_a_killed_command_goes_on(data, translated, r2l, tmp_path):
    folder = tmp_path / "one"
    shutil.copytree(data / "one", folder)
    command = ("reverse", r2l, "--data", folder, "--beam", "3", "--batch-size", "7")
    missing = []
    for batches in (5, 9, 0):
        done = run_python("-c", KILLED, batches, *command, check=False)
        assert (done.returncode == 0) == (batches == 0)
        missing += [line for line in done.stdout.splitlines() if line.startswith("missing")]
    counts = [int(line.split()[1]) for line in missing if line.endswith("of 20")]  # of test, the first
    assert counts[0] == 20 > counts[1] > 0
    for split in SETS:
        assert read(folder, split) == read(translated / "one", split)
    assert sorted(path.suffix for path in (folder / "reverse").iterdir()) == sorted([".bin", ".idx", ".json"] * 4)
    again = run("lwc-fairseq", "reverse", r2l, "--data", folder, "--beam", "3").stdout
    assert again.count(": done before\n") == 4


def test_translations_of_unknown_origin_are_made_again(data, translated, r2l, tmp_path):
    folder = tmp_path / "one"
    shutil.copytree(data / "one", folder)
    shutil.copytree(translated / "one" / "reverse", folder / "reverse")
    finished, begun = ReverseFiles(folder, "valid", PAIR), ReverseFiles(folder, "test", PAIR)
    finished.record.unlink()
    for path in (begun.record, begun.index, begun.tokens):
        path.unlink()
    begun.part.write_bytes(np.array([0, 2, 5, EOS], dtype=np.int32).tobytes())
    with pytest.raises(KeyboardInterrupt), finished.writing(Origin("other.pt", "", 1, 20, [], ""), 30):
        raise KeyboardInterrupt
    assert finished.index in finished.missing
    finished.record.unlink()
    run("lwc-fairseq", "reverse", r2l, "--data", folder, "--beam", "3")
    for split in SETS:
        assert read(folder, split) == read(translated / "one", split)
    assert finished.origin() == ReverseFiles(translated / "one", "valid", PAIR).origin()


def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path):
    files, origin = ReverseFiles(tmp_path, "train", PAIR), Origin("r2l.pt", "", 1, 500, [], "")
    batches = [[(number, torch.arange(20)) for number in range(i, i + 10)] for i in range(0, 500, 10)]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with (
            pytest.raises(UserError, match=r"train.de-en.part: File too large"),
            files.writing(origin, 30) as unfinished,
        ):
            for batch in batches:
                unfinished.add(batch)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with files.writing(origin, 30) as unfinished:
        assert unfinished.missing[0] == 4096 // (4 * 22)
        unfinished.add(row for batch in batches for row in batch)
    assert read(tmp_path, "train") == [list(range(20))] * 500


def test_translations_of_another_origin_are_kept_or_replaced(translated, r2l, tmp_path):
    """By greedy ones, which are those of fairseq-generate. There, the end symbol counts in another way, so that some
    are longer by a word."""
    folder = tmp_path / "two"
    shutil.copytree(translated / "two", folder)
    command = ("lwc-fairseq", "reverse", r2l, "--data", folder)
    before, prefix = read(folder, "train"), folder / "reverse" / "train.de-en"
    said = f"lwc-fairseq: error: {prefix}: these translations were made with --beam 3: add --fresh to replace them"
    assert refused(*command).startswith(said)
    files = ReverseFiles(folder, "train", PAIR)
    origin = files.origin()
    files.check_origin(replace(origin, checkpoint="the same at another place"))
    for change, difference in (
        ({"content": "another"}, "by another checkpoint"),
        ({"words": "others"}, "of other data"),
    ):
        with pytest.raises(UserError, match=f"these translations were made {difference}"):
            files.check_origin(replace(origin, **change))
    with open(f"{prefix}.part", "ab") as running:
        fcntl.flock(running, fcntl.LOCK_EX)
        assert f"{prefix}.part: another process is writing it" in refused(*command, "--fresh")
    assert read(folder, "train") == before
    run(*command, "--fresh")
    made = read(folder, "train")
    prefix.with_name(f"{prefix.name}.bin").unlink()  # as after half a copy of the folder
    run(*command)
    assert read(folder, "train") == made
    greedy = ("--gen-subset", "train", "--beam", "1", "--max-len-a", "2", "--max-len-b", "0", "--batch-size", "1")
    output = run("fairseq-generate", folder, *TASK, "--path", r2l, "--reverse-target", *greedy, "--cpu").stdout
    sources = open_sources(str(folder / "train.de-en.de"), None)
    limits = [2 * len(source) - 1 for source in sources]  # the end symbol is the last token of 2n
    rows = read(folder, "train")
    found = [text.split()[::-1] for text in texts(folder, rows)]
    expected = [text.split()[::-1][:limit] for (text, _), limit in zip(hypotheses(output), limits, strict=True)]
    for row, ours, theirs in zip(rows, found, expected, strict=True):
        assert ours == theirs or 0 in row  # the symbol <s>, which is in no text, but counts toward the limit
    assert sum(0 not in row for row in rows) > 50
    assert any(len(words) < limit for words, limit in zip(found, limits, strict=True))
    assert len({tuple(words) for words in found}) > 50


def test_what_is_missing_or_stale_is_told_before_training(data, translated, tmp_path):
    def refusal(folder, *flags):
        command = ("fairseq-train", folder, *TASK, *TINY_TRAINING, *FAMILIES["abd"], *TRANSLATIONS, *flags)
        return refused(*command, "--save-dir", tmp_path / "out")

    index = data / "one" / "reverse" / "valid.de-en.idx"
    make = f"make it by `lwc-fairseq reverse CHECKPOINT --data {data / 'one'}`"
    assert f"--reverse-context translations: {index} is missing: {make}" in refusal(data / "one")
    index = data / "two" / "reverse" / "train.de-en.idx"  # of the second epoch
    assert f"{index} is missing" in refusal(f"{translated / 'one'}:{data / 'two'}")
    stale = tmp_path / "stale"
    shutil.copytree(data / "one", stale)
    shutil.copytree(translated / "two" / "reverse", stale / "reverse")
    for kind in ("json", "idx", "bin"):
        shutil.copy(stale / "reverse" / f"train.de-en.{kind}", stale / "reverse" / f"valid.de-en.{kind}")
    assert "the sources of valid have changed since" in refusal(stale)
    (stale / "reverse" / "valid.de-en.bin").unlink()
    assert "valid.de-en.bin is missing: make it by" in refusal(stale)
    shutil.rmtree(stale / "reverse")
    write(stale, "valid", [torch.tensor([EOS])] * 20)
    words = (stale / "dict.de.txt").read_text().splitlines(keepends=True)
    (stale / "dict.de.txt").write_text("".join([*words[1:], words[0]]))
    assert "the words of the dictionaries of valid have changed since" in refusal(stale)
    (stale / "reverse" / "valid.de-en.json").unlink()
    assert "valid.de-en.json is missing: make it by" in refusal(stale)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_a_left_to_right_model_and_other_words_are_refused(tiny_checkpoint, tiny_data, r2l, tmp_path):
    message = refused("lwc-fairseq", "reverse", tiny_checkpoint, "--data", tiny_data)
    assert f"{tiny_checkpoint}: this model was not trained from right to left; train one with" in message
    for path in tiny_data.iterdir():
        shutil.copy(path, tmp_path)
    words = (tmp_path / "dict.en.txt").read_text().splitlines(keepends=True)
    (tmp_path / "dict.en.txt").write_text("".join([*words[1:], words[0]]))
    message = refused("lwc-fairseq", "reverse", r2l, "--data", tmp_path)
    assert f"the words of {tmp_path / 'dict.en.txt'} are not those that the model was trained with" in message
    assert not (tmp_path / "reverse").exists()


@LONG
def test_options_that_need_others(translated, checkpoints, tmp_path):
    one = translated / "one"
    training = ("fairseq-train", one, *TINY_TRAINING, *FAMILIES["abd"], "--save-dir", tmp_path)
    generation = ("fairseq-generate", one, *TASK, "--cpu", "--reverse-from-data")
    plain = ("--user-dir", "lwc_fairseq", "--task", "translation")
    for command, message in (
        ((*training, *TASK, "--backward-target", "translations"), "add --reverse-context translations and --task"),
        ((*training, *plain, *TRANSLATIONS), "--reverse-context translations needs --task concat_translation"),
        (
            (*training, *TASK, *TRANSLATIONS, "--reverse-target"),
            "translations cannot be combined with --reverse-target",
        ),
        ((*training, *TASK, "--reverse-from-data"), "--reverse-from-data is an option of fairseq-generate"),
        ((*generation, "--path", checkpoints["lwc"]), "a model of --path reads no reverse translation"),
        (("fairseq-interactive", *generation[1:], "--path", checkpoints["abd"]), "--reverse-from-data needs binary"),
        ((*generation, "--path", checkpoints["abd"], "--agreement-path", "r2l.pt"), "combined with --reverse-target"),
    ):
        assert message in refused(*command, stdin="ba\n"), message
