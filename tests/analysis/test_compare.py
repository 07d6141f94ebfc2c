"""Comparisons: the numbers of sacrebleu's own command, groups, parts of speech, differences."""

import json
import math
from importlib.util import find_spec
from pathlib import Path

import pytest

from conftest import LONG, refusal, run
from lwc_fairseq.analysis.comparison import Sentences, compare, length_groups, make_groups_figure
from lwc_fairseq.analysis.translations import part_of_speech_bleu
from sentences import REFERENCES, generated, worse


@pytest.fixture
def files(tmp_path):
    (tmp_path / "ref").write_text("\n".join(REFERENCES) + "\n")
    (tmp_path / "src").write_text("".join("wort " * (i + 1) + "\n" for i in range(len(REFERENCES))))
    (tmp_path / "a").write_text("\n".join(line.upper() for line in worse("cat")) + "\n")
    (tmp_path / "b").write_text(generated(worse("x here")))
    return tmp_path


def test_numbers_are_those_of_sacrebleus_command(files):
    page = run(
        *("lwc-fairseq", "compare", f"first={files / 'a'}", f"second={files / 'b'}", "--ref", files / "ref"),
        *("--src", files / "src", "--out", files / "out"),
    ).stdout
    ours = json.loads((files / "out" / "compare.json").read_text())
    for variant, flags in (("BLEU", ()), ("BLEU, lower-cased", ("-lc",)), ("BLEU, 13a", ())):
        tokenize = "13a" if variant.endswith("13a") else "none"
        theirs = json.loads(
            run(
                *("sacrebleu", files / "ref", "-i", files / "a", "--tokenize", tokenize, *flags, "--force"),
                *("--metrics", "bleu", "chrf", "--width", "2"),
            ).stdout
        )
        assert ours["scores"]["first"][variant] == pytest.approx(theirs[0]["score"], abs=0.005)
        assert ours["signatures"][variant] == theirs[0]["signature"]
        assert ours["scores"]["first"]["chrF2"] == pytest.approx(theirs[1]["score"], abs=0.005)
    assert ours["scores"]["second"]["p"] < 0.05 and "p" not in ours["scores"]["first"]
    assert "| first | " in page and "## By source length" in page and "## Where they differ most" in page
    assert (files / "out" / "lengths.png").read_bytes().startswith(b"\x89PNG")
    assert (files / "out" / "compare.md").read_text() == page


FAKE_COMET = Path(__file__).parent / "fake_comet"


def test_a_comparison_removes_the_pictures_of_an_earlier_one(files):
    out, given = files / "out", (f"a={files / 'a'}", "--ref", files / "ref", "--out", files / "out")
    out.mkdir()
    (out / "lengths.png").write_bytes(b"of the user")
    run("lwc-fairseq", "compare", *given)
    assert (out / "lengths.png").exists() and (out / "compare.json").exists()
    run("lwc-fairseq", "compare", *given, "--src", files / "src", "--groups", "9")
    assert (out / "lengths.png").read_bytes() != b"of the user"
    run("lwc-fairseq", "compare", *given)
    assert not (out / "lengths.png").exists()


def test_ter_is_that_of_sacrebleus_command(files):
    flags = ("--ref", files / "ref", "--out", files / "out")
    page = run("lwc-fairseq", "compare", f"a={files / 'a'}", *flags).stdout
    assert "TER" not in page
    page = run("lwc-fairseq", "compare", f"a={files / 'a'}", *flags, "--ter").stdout
    ours = json.loads((files / "out" / "compare.json").read_text())
    theirs = json.loads(run("sacrebleu", files / "ref", "-i", files / "a", "--metrics", "ter", "--width", "2").stdout)
    assert ours["scores"]["a"]["TER"] == pytest.approx(theirs["score"], abs=0.005) and theirs["score"] > 0
    assert f"- TER: `{theirs['signature']}`, lower is better" in page and "| TER |" in page


def test_comet(files):
    """With a stand-in for the package, whose model returns the share of the reference's words."""
    (files / "same").write_text("\n".join(REFERENCES) + "\n")
    (files / "worse").write_text("\n".join(worse("cat")) + "\n")
    systems = (f"same={files / 'same'}", f"worse={files / 'worse'}")
    flags = ("--ref", files / "ref", "--src", files / "src", "--out", files / "out", "--comet")
    page = run("lwc-fairseq", "compare", *systems, *flags, PYTHONPATH=str(FAKE_COMET)).stdout
    scores = json.loads((files / "out" / "compare.json").read_text())["scores"]
    missing = sum("cat" in line for line in REFERENCES) / sum(len(line.split()) for line in REFERENCES)
    assert scores["same"]["COMET"] == 1 and scores["worse"]["COMET"] == pytest.approx(1 - missing, abs=1e-4)
    assert f" {1 - missing:.4f} |" in page
    assert "- COMET: `Unbabel/wmt22-comet-da, unbabel-comet 9.9, first reference`" in page


@pytest.mark.skipif(find_spec("comet") is not None, reason="COMET is installed")
def test_comet_that_is_not_installed(files):
    command = ("lwc-fairseq", "compare", f"a={files / 'a'}", "--ref", files / "ref", "--comet")
    assert_refused(run(*command, check=False), "--src is needed")
    refused = run(*command, "--src", files / "src", check=False)
    assert_refused(
        refused, "No module named 'comet'; install COMET with: pip install '.[comet]' && pip install --no-deps"
    )


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("no/such", "no/such: there is no such file, and COMET cannot download"),
        pytest.param("src", "src: COMET cannot load it: hparams.yaml file is missing", marks=LONG),
    ],
)
def test_a_comet_model_that_cannot_be_used(files, model, message):
    command = ("lwc-fairseq", "compare", f"a={files / 'a'}", "--ref", "ref", "--src", "src", "--comet")
    model = ("--comet-model", model)
    assert_refused(run(*command, *model, check=False, cwd=files, PYTHONPATH=str(FAKE_COMET)), message)


def assert_refused(done, message):
    assert done.returncode and "Traceback" not in done.stderr and not done.stdout
    assert message in done.stderr.splitlines()[-1]


def test_groups_of_source_length():
    source = ["w " * length for length in (1, 9, 10, 19, 50, 70)]
    references = ["a b c d e"] * 6
    systems = {"one": ["a b c d e"] * 4 + ["a"] * 2}
    found = length_groups(Sentences(systems, [references], source), (10, 20, 50))
    assert [(group["from"], group["to"], group["sentences"]) for group in found] == [
        (0, 10, 2),
        (10, 20, 2),
        (50, None, 2),
    ]
    assert [group["bleu"]["one"] for group in found[:2]] == [100, 100] and found[2]["bleu"]["one"] < 10
    assert [group["length"]["one"] for group in found] == [5, 5, 1] and found[2]["reference length"] == 5


def test_parts_of_speech():
    """Only nouns count, including NNS. All are there, in one line in another order."""
    reference = ["the cat sees two dogs", "a house"], ["DT NN VB CD NNS", "DT NN"]
    systems = {"one": (["a cat and dogs", "houses are"], ["DT NN CC NNS", "NNS VB"])}
    (scores,) = part_of_speech_bleu(["NN"], systems, [reference]).values()
    assert scores[0] == pytest.approx(100 * 2 / 3, abs=0.01)  # cat, dogs, not house
    assert scores[1] == pytest.approx(100 * (2 / 3 * 1 / 1) ** 0.5, abs=0.01)
    systems["one"][1][1] = "NNS"
    with pytest.raises(ValueError, match="one, line 2: 2 words, but 1 tags"):
        part_of_speech_bleu(["NN"], systems, [reference])


def test_parts_of_speech_of_two_references():
    """The nouns are `Cat dogs birds` in the first line; the second line has none. The references have four, and one or
    two of them."""
    systems = {"one": (["a Cat , dogs and birds", "it burns"], ["DT NN , NNS CC NNS", "PRP VBZ"])}
    references = [
        (["the cat and dogs see bulls , mice", "the house burns"], ["DT NN CC NNS VBP NNS , NNS", "DT NN VBZ"]),
        (["dogs and birds , cows , mice", "houses , trees burn"], ["NNS CC NNS , NNS , NNS", "NNS , NNS VBP"]),
    ]
    brevity = math.exp(1 - (4 + 1) / 3)
    (scores,) = part_of_speech_bleu(["NN"], systems, references).values()
    assert scores == [round(100 * brevity * value, 2) for value in (2 / 3, (2 / 3 * 1 / 2) ** 0.5, 0, 0)]
    (scores,) = part_of_speech_bleu(["NN"], systems, references, lowercase=True).values()
    assert scores == [round(100 * brevity, 2), round(100 * brevity, 2), 0, 0]  # cat dogs birds is in neither
    (scores,) = part_of_speech_bleu(["NN", "VB"], systems, references).values()
    assert scores[0] == round(100 * math.exp(1 - (4 + 2) / 4) * 3 / 4, 2)  # the lengths that are closest to 3 and 1
    references[1][1][1] = "NNS"
    with pytest.raises(ValueError, match="reference 2, line 2: 4 words, but 1 tags"):
        part_of_speech_bleu(["NN"], systems, references)


def test_the_largest_differences_come_first():
    references = ["the cat sees a dog", "a house", "five words are in here"]
    systems = {"one": references, "two": ["the cat sees a dog", "nothing like it", "five words are in there"]}
    found = compare(Sentences(systems, [references], ["eins", "zwei", "drei"]))
    assert [one["line"] for one in found.differences] == [2, 3]
    assert found.differences[0]["source"] == "zwei" and found.differences[0]["chrf"]["one"] == 100


def test_of_one_system_the_worst_sentences_come_first(files):
    lines = list(REFERENCES)
    lines[3], lines[7] = "nothing like it", lines[7] + " here"
    for name, text in (("one", lines), ("ref", REFERENCES), ("src", (files / "src").read_text().splitlines())):
        (files / name).write_text("\n".join([*text, ""]) + "\n")  # the last sentence is empty
    flags = ("--ref", files / "ref", "--src", files / "src", "--differences", "2", "--out", files / "out")
    page = run("lwc-fairseq", "compare", f"one={files / 'one'}", *flags).stdout
    found = json.loads((files / "out" / "compare.json").read_text())
    assert [entry["line"] for entry in found["worst"]] == [4, 8] and not found["differences"]
    assert "## Where it is worst\n\nLines are numbered from 1: line 951 is H-950" in page
    assert page.index("Line 4\n") < page.index("Line 8\n") and f"- reference: {REFERENCES[3]}\n" in page
    html = (files / "out" / "compare.html").read_text()
    assert html.count("<h3>Line ") == 2 and "<dt>one (chrF2 " in html and "nothing like it</dd>" in html


def test_names_that_look_like_others(files):
    """A system may be called as the reference is in messages; no name begins a tag, or is missing in the legend."""
    names = ("the reference", "reference 1", "_ours", "<b>|")
    systems = [f"{name}={files / file}" for name, file in zip(names, "abab", strict=True)]
    (files / "tags").write_text("".join("NN " * len(line.split()) + "\n" for line in REFERENCES))
    (files / "tags of b").write_text("".join("NN " * len(line.split()) + "\n" for line in worse("x here")))
    flags = ("--ref", files / "ref", "--src", files / "src", "--out", files / "out")
    tags = ("--tags", "NN", "--ref-tags", files / "tags", "--system-tags", f"the reference={files / 'tags of b'}")
    systems[0] = f"the reference={files / 'b'}"
    page = run("lwc-fairseq", "compare", *systems, *flags, *tags).stdout
    assert "| \\<b>\\| |" in page and "- \\<b>|" in page
    content = json.loads((files / "out" / "compare.json").read_text())
    assert set(content["groups"][0]["length"]) == set(names) and content["parts"]["NN"]["the reference"][0] < 100
    for axes in make_groups_figure(content["groups"]).axes:
        assert [text.get_text() for text in axes.get_legend().texts][:4] == list(names)


def test_wrong_input_is_named(files):
    (files / "short").write_text("one line\n")
    (files / "empty").write_text("")
    for words, message in (
        ((f"a={files / 'a'}", f"b={files / 'short'}"), "b has 1 lines, reference 1 has 18"),
        ((f"a={files / 'empty'}",), "the file is empty"),
        ((files / "a",), "give a name and a file"),
        ((f"a={files / 'a'}", f"a={files / 'b'}"), "two systems have the same name, a: give each"),
        ((f"reference={files / 'a'}",), "a system is called reference, as the reference itself is called on pages"),
        ((f"source={files / 'a'}",), "a system is called source, as the source itself is called on pages"),
        ((f"a\tb={files / 'a'}",), r"a system is called 'a\tb': give a name without tabs and line breaks"),
        (
            (f"a={files / 'a'}", "--tags", "NN", "--ref-tags", "none", "--system-tags", "a=b", "--system-tags", "a=c"),
            "--system-tags: two systems have the same name, a",
        ),
        ((f"a={files / 'a'}", "--ref-tags", "none"), "--ref-tags has no effect without --tags: add --tags, or leave"),
        ((f"a={files / 'a'}", "--system-tags", "a=none"), "--system-tags has no effect without --tags"),
        ((f"a={files / 'a'}", "--comet-model", "none"), "--comet-model has no effect without --comet"),
        ((f"a={files / 'a'}", "--groups", "3,5"), "--groups has no effect without --src"),
        ((f"a={files / 'a'}", "--tags", "NN,VB"), "--ref-tags and --system-tags are needed"),
        ((f"a={files / 'a'}", "--tags", "NN,"), "argument --tags: 'NN,': give tags with one comma between them"),
        ((f"a={files / 'a'}", "--out", files / "a" / "out"), f"--out {files / 'a' / 'out'}: Not a directory"),
    ):
        assert message in refusal("compare", "--ref", files / "ref", *words)
