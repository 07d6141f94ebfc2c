"""F1 of words by their frequency in the training set, and where these frequencies come from."""

import json
from collections import Counter

import pytest
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

from conftest import refusal, run
from lwc_fairseq.analysis.attention import join
from lwc_fairseq.analysis.frequency import frequency_groups
from lwc_fairseq.analysis.training_words import count_training_words
from lwc_fairseq.tasks.concat_translation import ConcatTranslationConfig, ConcatTranslationTask


def test_groups():
    """`a` is frequent, `b` and `c` were seen once, `d` and `e` never."""
    references = [["a a b", "c d e"], ["a b b", "a"]]
    systems = {"one": ["a b x", "c c d"], "two": ["b", ""]}
    found = frequency_groups(systems, references, {"a": 1000, "b": 1, "c": 1, "unseen": 7})
    assert [(group["from"], group["to"], group["words"]) for group in found] == [(0, 1, 2), (1, 2, 4), (1000, None, 4)]
    # Of each group: twice those shared with either reference / (twice those of the system + those of both references)
    expected = [
        (200 * (1 + 0) / (2 * 2 + 2), 0),  # x d; d e
        (200 * (2 + 1) / (2 * 3 + 4), 200 * (1 + 1) / (2 * 1 + 4)),  # b c c; b c b b
        (200 * (1 + 1) / (2 * 1 + 4), 0),  # a; a a a a
    ]
    for group, values in zip(found, expected, strict=True):
        assert list(group["f1"].values()) == pytest.approx(values, abs=0.005)


def test_a_perfect_translation_has_100_in_each_group():
    lines = ["the old man", "the new hat is new"]
    found = frequency_groups({"same": lines}, [lines], Counter("the the the old new new new new new".split()))
    assert {group["from"]: group["f1"]["same"] for group in found} == {0: 100, 1: 100, 3: 100, 5: 100}


SUBWORDS = {
    "words": [["the old man", "the hat"], ["old hat hat"]],
    "subword-nmt": [["the o@@ l@@ d man", "the h@@ at"], ["o@@ l@@ d hat hat ▁▁"]],
    "sentencepiece": [["▁the ▁o l d ▁man", "▁the ▁h at"], ["▁ old ▁hat ▁hat"]],
}


@pytest.mark.parametrize("kind", SUBWORDS)
def test_the_words_of_binary_data(kind, tmp_path):
    """Those of `train` and `train1`, and of a second folder with the other order of languages; not of the source."""
    first, second = SUBWORDS[kind]
    dictionary = Dictionary()
    for token in " ".join(first + second).split():
        dictionary.add_symbol(token)
    unknown = [first[0], "nowhere " + first[1]]
    files = {"1/train.de-en.en": unknown, "1/train1.de-en.en": second, "2/train.en-de.en": second}
    for name, lines in (files | {"1/train.de-en.de": ["man"]}).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        builder = MMapIndexedDatasetBuilder(f"{tmp_path / name}.bin")
        for line in lines:
            builder.add_item(dictionary.encode_line(line, add_if_not_exist=False))
        builder.finalize(f"{tmp_path / name}.idx")
    lines = [*first, *second, *second]
    expected = Counter(word for line in lines for word in join(line.split()).split())
    for data, words in ((f"{tmp_path / '1'}:{tmp_path / '2'}", expected), (str(tmp_path), Counter())):
        config = ConcatTranslationConfig(data=data, source_lang="de", target_lang="en", dataset_impl=None)
        assert count_training_words(ConcatTranslationTask(config, dictionary, dictionary)) == words


def test_command(tmp_path):
    for name, text in {"ref": "a b c\n", "one": "a b d\n", "two": "a c\n", "train": "a a a\nb\n"}.items():
        (tmp_path / name).write_text(text)
    command = (
        "lwc-fairseq",
        "compare",
        f"one={tmp_path / 'one'}",
        f"two={tmp_path / 'two'}",
        "--ref",
        tmp_path / "ref",
    )
    page = run(*command, "--train-text", tmp_path / "train", "--out", tmp_path / "out").stdout
    assert "| 1 | 1 | 100.00 | 0.00 |" in page and "| 3 | 1 | 100.00 | 100.00 |" in page
    groups = json.loads((tmp_path / "out" / "compare.json").read_text())["frequencies"]
    assert groups[0]["f1"] == {"one": 0, "two": 100}
    assert (tmp_path / "out" / "frequencies.png").read_bytes().startswith(b"\x89PNG")
    assert "no/file" in refusal(*command[1:], "--train-text", "no/file")
