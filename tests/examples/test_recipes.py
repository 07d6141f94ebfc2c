"""The recipes from end to end, with tiny archives in the layout of the originals."""

import random
import tarfile

import pytest

from conftest import ROOT, run

TALKS = ("dev2010", "tst2010", "tst2011", "tst2012", "tst2014")
SMALL = "--cpu --layers 1 --embed-dim 16 --ffn-embed-dim 16 --attention-heads 2 --max-update 2 --max-tokens 1000"


def sentences(draw, count: int) -> list[tuple[str, str]]:
    """Pairs whose target has the source's words, with punctuation that a tokeniser splits off."""
    words = "das Haus ist groß und wir sehen es heute nicht".split()
    found = []
    for _ in range(count):
        chosen = draw.choices(words, k=draw.randint(3, 9))
        found.append((" ".join(chosen).capitalize() + ".", " ".join(reversed(chosen)).capitalize() + "!"))
    return found


def iwslt14_archives(folder, language: str) -> None:
    """As WIT3's: training text with tags, talks as XML; tst2014 in an archive of its own."""
    draw = random.Random(1)
    pair = f"{language}-en"
    files: dict[str, dict[str, str]] = {f"{pair}.tgz": {}, f"iwslt14-test-{pair}.tgz": {}}
    train = sentences(draw, 230)
    for side, name in enumerate((language, "en")):
        lines = ["<url>http://talk</url>", "<title>Ein Titel</title>", "<talkid>1</talkid>", *(p[side] for p in train)]
        files[f"{pair}.tgz"][f"{pair}/train.tags.{pair}.{name}"] = "".join(f"{line}\n" for line in lines)
    for talk in TALKS:
        archive = f"iwslt14-test-{pair}.tgz" if talk == "tst2014" else f"{pair}.tgz"
        spoken = sentences(draw, 6)
        for side, name in enumerate((language, "en")):
            segments = "".join(f'<seg id="{i}"> {p[side]} </seg>\n' for i, p in enumerate(spoken, 1))
            xml = f'<?xml version="1.0"?>\n<mteval><doc docid="1">\n<title>T</title>\n{segments}</doc></mteval>\n'
            files[archive][f"{pair}/IWSLT14.TED.{talk}.{pair}.{name}.xml"] = xml
    for archive, members in files.items():
        for name, text in members.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        with tarfile.open(folder / archive, "w:gz") as written:
            for name in members:
                written.add(folder / name, name)


def lines(path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


class TestIWSLT14:
    FOLDER = ROOT / "examples" / "iwslt14"

    @pytest.fixture(params=["de", "ro"])
    def language(self, request):
        return request.param

    @pytest.fixture
    def prepare(self, tmp_path, language):
        iwslt14_archives(tmp_path, language)
        command = ("bash", self.FOLDER / "prepare.sh", language, "--from", tmp_path, "--out", tmp_path / "out")
        return lambda **settings: run(*command, MERGES="60", **settings)

    def test_from_archive_to_score(self, prepare, language, tmp_path):
        out = tmp_path / "out"
        done = prepare()
        assert done.stdout.splitlines()[-1].startswith(f"{out}/data: ")
        sizes = {name: len(lines(out / "split" / f"{name}.en")) for name in ("train", "valid", "test")}
        expected = {"de": (221, 10, 24), "ro": (231, 24, 6)}  # De-En: every 23rd pair is for validation
        assert tuple(sizes.values()) == expected[language]
        text = lines(out / "split" / "train.en")[0]
        assert text.endswith(("!", "titel", "Titel")) and (text == text.lower()) == (language == "de")
        assert prepare().stdout.count("done before") == 5
        (out / "data").rename(out / "data.making")  # as a step that was killed leaves it
        (out / "data.making" / "dict.en.txt").unlink()
        assert prepare().stdout.count("done before") == 4
        assert (out / "data" / "dict.en.txt").exists() and not (out / "data.making").exists()
        if language != "de":
            return  # the rest differs in one flag

        train = ("bash", self.FOLDER / "train.sh", language, "--out", out, "--")
        run(*train, "--rows", "lwc", f"--train={SMALL}", "--generate=--cpu")
        checkpoint = next((out / "table").rglob("checkpoint_best.pt"))
        run("bash", self.FOLDER / "evaluate.sh", language, checkpoint, "--out", out)
        translations = lines(checkpoint.with_name("checkpoint_best.test.en"))
        assert len(translations) == sizes["test"]

    def test_what_is_missing_is_named(self, tmp_path):
        done = run("bash", self.FOLDER / "prepare.sh", "de", "--from", tmp_path, "--out", tmp_path / "out", check=False)
        assert done.returncode and "there is neither iwslt14-de-en.tgz nor de-en.tgz" in done.stderr
        done = run("bash", self.FOLDER / "train.sh", "de", "--out", tmp_path / "out", check=False)
        assert done.returncode and "data is missing: run prepare.sh de first" in done.stderr
        for script in ("prepare", "train", "evaluate"):
            done = run("bash", self.FOLDER / f"{script}.sh", "nl", check=False)
            assert done.returncode and "usage: " in done.stderr
