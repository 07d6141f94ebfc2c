"""The recipes from end to end, with tiny archives in the layout of the originals."""

import gzip
import io
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import tarfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import FRONT_DOOR, LONG, ROOT, run

TALKS = ("dev2010", "tst2010", "tst2011", "tst2012", "tst2014")
SMALL = "--cpu --layers 1 --embed-dim 16 --ffn-embed-dim 16 --attention-heads 2 --max-update 2 --max-tokens 1000"
NARROW = "--cpu --embed-dim 12 --hidden-dim 16 --max-update 2"
EXAMPLES = ROOT / "examples"
OUT = "R&D%s"
"""A name of a folder, with characters that bash and `printf` may read as something else."""
SETTINGS = {"MERGES": "60", "OMP_NUM_THREADS": "1"}  # nproc reads the second


def sentences(draw, count: int) -> list[tuple[str, str]]:
    """Pairs whose target has the source's words, with punctuation that a tokenizer splits off."""
    words = "das Haus ist groß und wir sehen es heute nicht".split()
    found = []
    for _ in range(count):
        chosen = draw.choices(words, k=draw.randint(3, 9))
        found.append((" ".join(chosen).capitalize() + ".", " ".join(reversed(chosen)).capitalize() + "!"))
    return found


def pack(path: Path, members: dict[str, str | bytes]) -> None:
    """Write files to the kind of archive that the name says, compressed if the name says so."""
    content = {name: text.encode() if isinstance(text, str) else text for name, text in members.items()}
    content |= {name: gzip.compress(data) for name, data in content.items() if name.endswith(".gz")}
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as written:
            for name, data in content.items():
                written.writestr(name, data)
        return
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as written:
        for name, data in content.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            written.addfile(entry, io.BytesIO(data))


def iwslt14_archives(folder, language: str) -> None:
    """As WIT3's: training text with tags, talks as XML. De-En's is alone, others lie in an archive of all."""
    draw = random.Random(1)
    pair = f"{language}-en"
    training: dict[str, str] = {}
    test: dict[str, str] = {}
    long = " ".join(["lang"] * 60)
    train = [("<< Zitat >> hier.", "<< Quote >> here!"), (long, long), *sentences(draw, 229)]
    for side, name in enumerate((language, "en")):
        lines = ["<url>http://talk</url>", "<title>Ein Titel</title>", "<talkid>1</talkid>", *(p[side] for p in train)]
        training[f"{pair}/train.tags.{pair}.{name}"] = "".join(f"{line}\n" for line in lines)
    for talk in TALKS:
        spoken = sentences(draw, 6)
        for side, name in enumerate((language, "en")):
            segments = "".join(f'<seg id="{i}"> {p[side]} </seg>\n' for i, p in enumerate(spoken, 1))
            xml = f'<?xml version="1.0"?>\n<mteval><doc docid="1">\n<title>T</title>\n{segments}</doc></mteval>\n'
            members = test if talk == "tst2014" else training
            members[f"{pair}/IWSLT14.TED.{talk}.{pair}.{name}.xml"] = xml
    if language == "de":
        pack(folder / "iwslt14-de-en.tgz", training)
        return
    for archive, members in (("iwslt14", training), ("iwslt14-test", test)):
        pack(folder / "pair.tgz", members)
        pack(
            folder / f"{archive}.tgz", {f"{archive}/texts/{language}/en/{pair}.tgz": (folder / "pair.tgz").read_bytes()}
        )


def kill_at(out: Path, pattern: str, *command) -> None:
    """Start a command, and kill it and its children as soon as a file of this pattern exists."""
    settings = {"cwd": ROOT, "env": {**FRONT_DOOR.environment, **SETTINGS}, "start_new_session": True}
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, **settings)
    while not list(out.glob(pattern)):
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def assert_directions(folder: Path, source: str, target: str) -> None:
    """Nearly every pair of each set is one of `sentences`: the target has the source's words from the end."""
    for name in ("train", "valid", "test"):
        pairs = zip(lines(folder / f"{name}.{source}"), lines(folder / f"{name}.{target}"), strict=True)
        words = [[re.sub(r"[.!]", r" \g<0>", side.lower()).split() for side in pair] for pair in pairs]
        sound = [a[-1:] == ["."] and b[-1:] == ["!"] and a[:-1] == b[-2::-1] for a, b in words]
        assert sum(sound) > 0.9 * len(sound), name


def lines(path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_two_scripts_make_the_same(tmp_path):
    """Each writes to a folder of its own. What a killed script has left is removed, and so is what a script leaves."""
    script = f"""
        source {EXAMPLES}/recipe.sh
        make() {{
          mkdir "$making" && touch "$making/$1"
          while [ "$1" = slow -o "$1" = killed ] && [ ! -e made ]; do sleep 0.05; done
          [ "$1" != half ]
        }}
        cd {tmp_path}
        step making $0 make $1
    """
    kill_at(tmp_path, "*/killed", "bash", "-c", script, "made", "killed")
    (left,) = tmp_path.iterdir()
    slow = subprocess.Popen(["bash", "-c", script, "made", "slow"])
    while not list(tmp_path.glob("*/slow")):
        assert slow.poll() is None
    run("bash", "-c", script, "made", "fast")
    assert slow.wait() == 0 and not left.exists()
    assert os.listdir(tmp_path) == ["made"] and os.listdir(tmp_path / "made") == ["fast"]
    failed = run("bash", "-c", script, "other", "half", check=False)
    assert failed.returncode and "stopped while making" in failed.stderr and os.listdir(tmp_path) == ["made"]


def test_what_a_restarted_container_has_left_is_no_part_of_the_result(tmp_path):
    """The script has the number of the one that was killed."""
    script = f"""
        source {EXAMPLES}/recipe.sh
        make() {{ mkdir "$making" && touch "$making/new"; }}
        mkdir {tmp_path}/made.$HOSTNAME.$$.making && touch {tmp_path}/made.$HOSTNAME.$$.making/old
        step making {tmp_path}/made make
    """
    run("bash", "-c", script)
    assert os.listdir(tmp_path / "made") == ["new"]


def test_without_the_environment_they_say_how_to_make_it(tmp_path):
    (tmp_path / "multi30k").mkdir()
    for name in ("recipe.sh", "setup_env.sh", "multi30k/prepare.sh"):
        shutil.copy(EXAMPLES / name, tmp_path / name)
    done = run("bash", tmp_path / "multi30k" / "prepare.sh", check=False, PATH="/usr/bin:/bin")
    assert done.returncode == 1
    assert "prepare.sh: lwc-fairseq is not installed: run `bash " in done.stderr
    done = run("bash", tmp_path / "setup_env.sh", check=False, PATH="/usr/bin:/bin", PYTHON=tmp_path / "none")
    assert "setup_env: no Python 3.11 or newer" in done.stderr


def test_lines_of_any_bytes_are_sorted(tmp_path):
    (tmp_path / "generated").write_bytes(b"H-1\t-1\t\xff b\nT-0\ta\nH-0\t-1\ta\n")
    script = f"source {EXAMPLES}/recipe.sh; in_order {tmp_path}/generated H 3 > {tmp_path}/text"
    run("bash", "-c", script, LC_ALL="C.UTF-8", CDPATH=".:/tmp")
    assert (tmp_path / "text").read_bytes() == b"a\n\xff b\n"


def test_generation_without_translations_is_told(tiny_data, tiny_checkpoint, tmp_path):
    command = ("bash", EXAMPLES / "evaluate.sh", tiny_checkpoint, tiny_data, "--out", tmp_path)
    done = run(*command, "--", "--cpu", "--quiet", check=False)
    assert done.returncode == 1 and f"{tmp_path}/test.generated: there are no translations in it" in done.stderr
    assert not (tmp_path / "test.txt").exists()


@pytest.mark.parametrize(
    ("script", "mark", "before", "words", "now"),
    [
        ("nist_zh_en", "paper", "deepatt", ("abd", "--from", "."), "abd"),
        ("wmt14_en_de", "settings", "lwc", ("lwc", "--stanford"), "lwc --stanford"),
    ],
)
def test_the_folder_of_another_text_is_refused(tmp_path, script, mark, before, words, now):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / mark).write_text(f"{before}\n")
    done = run("bash", EXAMPLES / script / "prepare.sh", *words, "--out", tmp_path, check=False)
    assert done.returncode and f"{tmp_path}/text was made with {before}, not {now}: name another" in done.stderr


class TestIWSLT14:
    FOLDER = EXAMPLES / "iwslt14"

    @pytest.fixture(params=["de", pytest.param("ro", marks=LONG), pytest.param("es", marks=LONG)])
    def language(self, request):
        return request.param

    @pytest.fixture
    def prepare(self, tmp_path, language):
        iwslt14_archives(tmp_path, language)
        return ("bash", self.FOLDER / "prepare.sh", language, "--from", tmp_path, "--out", tmp_path / OUT)

    def test_from_archive_to_score(self, prepare, language, tmp_path):
        out = tmp_path / OUT
        kill_at(out, f"tokens.*.making/dev2010.{language}", *prepare)
        assert (out / "text").exists() and not (out / "tokens").exists()
        done = run(*prepare, **SETTINGS).stdout
        assert done.count("done before") == 1
        # De-En leaves out the pair of 60 words.
        assert done.splitlines()[-1] == f"{out}/data: {'221' if language == 'de' else '232'} training pairs"
        sizes = {name: len(lines(out / "sets" / f"{name}.en")) for name in ("train", "valid", "test")}
        # De-En: every 23rd pair is for validation
        assert tuple(sizes.values()) == ((221, 10, 24) if language == "de" else (232, 24, 6))
        assert_directions(out / "sets", language, "en")
        text = (out / "sets" / "train.en").read_text()
        assert (text == text.lower()) == (language == "de") and "quote" in text.lower()
        assert not list(out.glob("*.making")) and run(*prepare, **SETTINGS).stdout.count("done before") == 6

        other = run(*prepare, "--longest", "60", **SETTINGS, check=False)
        kept = 50 if language == "de" else 175
        assert (
            f"{out}/clean was made with --longest {kept}, not --longest 60: name another folder by --out"
            in other.stderr
        )

        train = ("bash", self.FOLDER / "train.sh", language, "--out", out, "--")
        if language != "de":  # the rest differs in names
            words = shlex.split(run(*train, "--rows", "lwc", "--dry-run").stdout)  # each command is a word of printf
            assert any(word.startswith(f"fairseq-train {shlex.quote(f'{out}/data')} ") for word in words)
            return
        run(*train, "--rows", "lwc_2018", f"--train={SMALL}", "--generate=--cpu")
        checkpoint = next((out / "table").rglob("checkpoint_best.pt"))
        run("bash", self.FOLDER / "evaluate.sh", language, checkpoint, "--out", out)
        translations = lines(checkpoint.with_name("checkpoint_best.test.txt"))
        assert len(translations) == sizes["test"]

    def test_what_is_missing_is_named(self, tmp_path):
        done = run("bash", self.FOLDER / "prepare.sh", "de", "--from", tmp_path, "--out", tmp_path / "out", check=False)
        assert done.returncode and "there is no iwslt14-de-en.tgz and no de-en.tgz" in done.stderr
        done = run("bash", self.FOLDER / "train.sh", "de", "--out", tmp_path / "out", check=False)
        assert done.returncode and "data is missing: run prepare.sh first" in done.stderr
        for flags, settings in ((("--longest", "x"), {}), ((), {"MERGES": "x"})):
            done = run("bash", self.FOLDER / "prepare.sh", "de", *flags, **settings, check=False)
            assert done.returncode == 2 and " x: give a whole number, at least 1" in done.stderr
        for script in ("prepare", "train", "evaluate"):
            done = run("bash", self.FOLDER / f"{script}.sh", "nl", check=False)
            assert done.returncode and "usage: " in done.stderr


@dataclass(frozen=True)
class Recipe:
    """A folder of examples/, and what its archives hold."""

    folder: str
    languages: tuple[str, str]
    corpora: tuple[tuple[str, str, str, int], ...]  # archive, file of the source, file of the target, pairs
    sizes: tuple[int, int, int]  # of train, valid, test
    row: str
    flags: str
    words: tuple[str, ...] = ()
    joined: bool = False

    def pack(self, folder: Path) -> None:
        draw = random.Random(1)
        archives: dict[str, dict[str, str]] = {}
        for archive, source, target, count in self.corpora:
            pairs = sentences(draw, count)
            if "test" not in archive and "dev" not in archive and not source.startswith("newstest"):
                pairs[0] = "Eins\u2028zwei drei.", "Drei\rzwei eins!"  # one line each
                pairs[1] = " ".join(["lang"] * 60), " ".join(["lang"] * 55)
                pairs[2] = "", "Ohne Quelle."
            for side, name in enumerate((source, target)):
                lines = [pair[side] for pair in pairs]
                if name.endswith(".sgm"):
                    lines = [
                        '<doc docid="1">',
                        *(f'<seg id="{i}">{line}</seg>' for i, line in enumerate(lines)),
                        "</doc>",
                    ]
                archives.setdefault(archive, {})[name] = "".join(f"{line}\n" for line in lines)
        for archive, members in archives.items():
            if archive == ".":
                for name, text in members.items():
                    data = text.encode()
                    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
            else:
                pack(folder / archive, members)


def both(archive: str, pattern: str, sides: tuple[str, str], count: int) -> tuple[str, str, str, int]:
    return archive, *(pattern.format(side) for side in sides), count


EN_DE = ("en", "de")
WMT_EN_DE = (
    both("europarl-v7.tgz", "training/europarl-v7.de-en.{}", EN_DE, 60),
    both("commoncrawl.tgz", "commoncrawl.de-en.{}", EN_DE, 50),
)
WMT12 = both("wmt12-test.tgz", "test/newstest2012-src.{}.sgm", EN_DE, 4)
WMT13 = both("wmt13-test.tgz", "test/newstest2013-src.{}.sgm", EN_DE, 5)
WMT14_EN_DE = (
    *WMT_EN_DE,
    both("news-commentary-v9.tgz", "training/news-commentary-v9.de-en.{}", EN_DE, 40),
    WMT12,
    WMT13,
    both("wmt14-test-full.tgz", "test-full/newstest2014-deen-{}.sgm", ("src.en", "ref.de"), 6),
)
STANFORD = tuple(
    both(".", f"{name}.{{}}", EN_DE, count)
    for name, count in (("train", 60), ("newstest2012", 4), ("newstest2013", 5), ("newstest2014", 6))
)
WMT15_EN_DE = (
    *WMT_EN_DE,
    both("news-commentary-v10.tgz", "training-parallel-nc-v10/news-commentary-v10.de-en.{}", EN_DE, 40),
    WMT13,
    both("wmt15-test.tgz", "test/newstest2015-ende-{}.sgm", ("src.en", "ref.de"), 6),
)
WMT16_EN_RO = (
    both("europarl-v8.tgz", "training-parallel-ep-v8/europarl-v8.ro-en.{}", ("en", "ro"), 60),
    both("setimes-en-ro.zip", "SETIMES.en-ro.{}", ("en", "ro"), 50),
    both(".", "corpus.bt.en-ro.{}.gz", ("en", "ro"), 40),
    both("wmt16-dev.tgz", "dev/newsdev2016-enro-{}.sgm", ("src.en", "ref.ro"), 5),
    both("wmt16-test.tgz", "test/newstest2016-enro-{}.sgm", ("src.en", "ref.ro"), 6),
)
WMT14_EN_FR = (
    *(
        both("bitexts.tgz", f"bitexts.selected/{name}.{{}}.gz", ("en", "fr"), 30)
        for name in ("ep7_pc45", "nc9", "dev08_11", "crawl", "ccb2_pc30", "un2000_pc34")
    ),
    both("dev+test.tgz", "dev/ntst1213.{}", ("en", "fr"), 5),
    both("dev+test.tgz", "dev/ntst14.{}", ("en", "fr"), 6),
)
DEEPATT = f"{NARROW} --attention-layers 2 --init-std 0.1"
RECIPES = [
    Recipe("wmt14_en_de", EN_DE, WMT14_EN_DE, (147, 9, 6), "lwc_base", SMALL, ("lwc",), joined=True),
    Recipe("wmt14_en_de", EN_DE, WMT14_EN_DE, (147, 5, 6), "deepatt_adam", DEEPATT, ("deepatt",)),
    Recipe("wmt14_en_de", EN_DE, STANFORD, (59, 9, 6), "lwc_base", SMALL, ("lwc", "--stanford"), joined=True),
    Recipe("wmt14_en_de", EN_DE, STANFORD, (59, 5, 6), "deepatt_adam", DEEPATT, ("deepatt", "--stanford")),
    Recipe("wmt15_en_de", EN_DE, WMT15_EN_DE, (144, 5, 6), "abd", f"{NARROW} --init-std 0.1"),
    Recipe("wmt16_en_ro", ("en", "ro"), WMT16_EN_RO, (147, 5, 6), "lwc_big", SMALL, joined=True),
    Recipe("wmt14_en_fr", ("en", "fr"), WMT14_EN_FR, (174, 5, 6), "deepatt_adam", DEEPATT),
]


@LONG
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: "-".join((recipe.folder, *recipe.words)))
def test_from_archives_to_score(recipe, tmp_path):
    """Every script, on archives in the layout of the originals; empty pairs go, and too long ones."""
    recipe.pack(tmp_path)
    out, folder = tmp_path / OUT, EXAMPLES / recipe.folder
    place = (*recipe.words, "--out", out)
    done = run("bash", folder / "prepare.sh", *place, "--from", tmp_path, **SETTINGS)
    assert done.stdout.splitlines()[-1] == f"{out}/data: {recipe.sizes[0]} training pairs"
    for language in recipe.languages:
        for name, size in zip(("train", "valid", "test"), recipe.sizes, strict=True):
            assert len((out / "bpe" / f"{name}.{language}").read_bytes().splitlines()) == size
    assert_directions(out / "text", *recipe.languages)
    dictionaries = [(out / "data" / f"dict.{language}.txt").read_text() for language in recipe.languages]
    assert (dictionaries[0] == dictionaries[1]) == recipe.joined
    assert ("nwordstgt=50004" in (out / "bpe.binarise.log").read_text()) == (recipe.folder == "wmt15_en_de")

    run("bash", folder / "train.sh", *place, "--", "--rows", recipe.row, f"--train={recipe.flags}", "--generate=--cpu")
    checkpoint = out / "table" / recipe.row / "seed1" / "checkpoint_best.pt"
    evaluate = ("bash", folder / "evaluate.sh", *recipe.words, f"{checkpoint}:{checkpoint}", "--out", out)
    scored = run(*evaluate, "--", "--cpu").stdout
    assert '"name": "BLEU"' in scored and f"tok:{'13a' if recipe.folder == 'wmt16_en_ro' else 'none'}" in scored
    assert len(lines(checkpoint.with_name("checkpoint_best.ensemble.test.txt"))) == recipe.sizes[2]
    if recipe.folder == "wmt16_en_ro":  # the other tables score the test set's tokens
        (row,) = (row for row in json.loads((out / "table" / "table.json").read_text())["rows"] if row["runs"])
        scored = run(*evaluate[:-3], checkpoint, "--out", out, "--", "--cpu").stdout
        assert row["value"] == pytest.approx(json.loads(scored)["score"], abs=0.051)


class TestNIST:
    FOLDER = EXAMPLES / "nist_zh_en"

    @pytest.fixture
    def copy(self, tmp_path):
        """Chinese in words, English as it was printed, four references for the test sets."""
        folder = tmp_path / "copy"
        folder.mkdir()
        draw = random.Random(1)
        pairs = [*sentences(draw, 80), (" ".join(["词"] * 51), "Long.")]
        for side, name in enumerate(("zh", "en")):
            (folder / f"train.{name}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
        for name, size in (("mt02", 3), ("mt03", 4), ("mt04", 5), ("mt05", 6), ("mt06", 7), ("mt08", 8)):
            pairs = sentences(draw, size)
            (folder / f"{name}.zh").write_text("".join(f"{source}\n" for source, _ in pairs))
            for i in range(4):
                (folder / f"{name}.en{i}").write_text("".join(f"{target} {i}\n" for _, target in pairs))
        return folder

    def prepare(self, paper, copy, out):
        done = run("bash", self.FOLDER / "prepare.sh", paper, "--from", copy, "--out", out, **SETTINGS)
        assert done.stdout.splitlines()[-1] == f"{out}/data: 80 training pairs"
        assert lines(out / "clean" / "reference3.en")[0].endswith("! 3")
        assert not any(character.isupper() for character in (out / "clean" / "train.en").read_text())
        assert (out / "data" / "dict.zh.txt").read_text() != (out / "data" / "dict.en.txt").read_text()

    @LONG
    @pytest.mark.parametrize(
        ("paper", "row", "tests"),
        [
            ("abd", "abd", ["mt03", "mt04", "mt05", "mt06"]),
            ("deepatt", "rnnsearch", ["mt02", "mt03", "mt04", "mt06", "mt08"]),
        ],
    )
    def test_from_the_copy_to_the_scores(self, copy, tmp_path, paper, row, tests):
        out = tmp_path / OUT
        self.prepare(paper, copy, out)
        flags = ("--rows", row, f"--train={NARROW} --init-std 0.1", "--generate=--cpu")
        trained = run("bash", self.FOLDER / "train.sh", paper, "--out", out, "--", *flags)
        assert "nrefs:4|case:lc" in (out / "table" / "table.md").read_text(), trained.stdout
        checkpoint = out / "table" / row / "seed1" / "checkpoint_best.pt"
        evaluate = ("bash", self.FOLDER / "evaluate.sh", paper, checkpoint, "--out", out)
        scored = run(*evaluate, "--", "--cpu", "--unnormalized").stdout
        scores = {name: float(value) for name, value in map(str.split, scored.splitlines())}
        assert list(scores) == [*tests, "all", "mean"]
        (found,) = (found for found in json.loads((out / "table" / "table.json").read_text())["rows"] if found["runs"])
        of_tests = {name.lower(): of_test["value"] for name, of_test in found["tests"].items()}
        expected = {name: score for name, score in scores.items() if name in tests and paper == "deepatt"}
        assert of_tests == pytest.approx(expected, abs=0.011)
        assert found["value"] == pytest.approx(scores["all"], abs=0.011)

    def test_each_set_has_its_own_score(self, copy, tmp_path):
        """With a stand-in for fairseq-generate that prints the third reference, and nothing for the last set."""
        out, examples = tmp_path / "out", tmp_path / "examples"
        (copy / "mt04.zh").write_text((copy / "mt04.zh").read_text().removesuffix("\n"))  # its last line has no end
        self.prepare("abd", copy, out)
        shutil.copytree(self.FOLDER, examples / "nist_zh_en")
        shutil.copy(EXAMPLES / "recipe.sh", examples)  # where there is no .venv, the path is the user's
        known = lines(out / "clean" / "reference2.en")[:15] + ["something else"] * 7
        output = "".join(f"H-{i}\t-0.1\t{line}\n" for i, line in reversed(list(enumerate(known))))
        commands = tmp_path / "bin"
        commands.mkdir()
        (commands / "generated").write_text(output)
        (commands / "fairseq-generate").write_text(f"#!/bin/sh\ncat {commands}/generated\n")
        (commands / "fairseq-generate").chmod(0o755)
        (tmp_path / "model.pt").touch()
        evaluate = ("bash", examples / "nist_zh_en" / "evaluate.sh", "abd", tmp_path / "model.pt", "--out", out)
        path = f"{commands}:{FRONT_DOOR.environment['PATH']}"
        scores = dict(line.split() for line in run(*evaluate, PATH=path).stdout.splitlines())
        assert [scores[name] for name in ("mt03", "mt04", "mt05")] == ["100.00"] * 3
        assert float(scores["mt06"]) < 1 and 10 < float(scores["all"]) < 90
        assert float(scores["mean"]) == pytest.approx((300 + float(scores["mt06"])) / 4, abs=0.01)
        (commands / "generated").write_text("".join(output.splitlines(keepends=True)[1:]))
        done = run(*evaluate, PATH=path, check=False)
        assert done.returncode and "has not the 22 sentences" in done.stderr

    def test_what_is_missing_is_named(self, copy, tmp_path):
        prepare = ("bash", self.FOLDER / "prepare.sh", "abd", "--out", tmp_path / "out")
        assert "name the folder of your copy by --from" in run(*prepare, check=False).stderr
        (copy / "mt04.en2").unlink()
        done = run(*prepare, "--from", copy, check=False)
        assert done.returncode and "prepare.sh: stopped while reading the sentences" in done.stderr
        assert "mt04.en2 is not in it" in done.stderr and not (tmp_path / "out" / "text").exists()


class TestExtract:
    @pytest.fixture
    def extract(self, tmp_path):
        command = ("python", EXAMPLES / "extract.py", "en", "de", "--archives", tmp_path, "--to", tmp_path / "train")
        return lambda *corpus: run(*command, "--corpus", *corpus, check=False)

    def test_sides_of_unequal_length_are_refused(self, extract, tmp_path):
        pack(tmp_path / "corpus.tgz", {"a/text.en": "one\ntwo\n", "a/text.de": "eins\n"})
        done = extract("corpus.tgz", "text.en", "text.de")
        assert done.returncode and "text.en has 2 sentences, text.de has 1" in done.stderr

    def test_what_is_not_there_is_named(self, extract, tmp_path):
        pack(tmp_path / "corpus.tgz", {"a/text.en": "one\n"})
        for corpus, message in (
            (("corpus.tgz", "text.en", "text.de"), "text.de is not in it"),
            (("other.tgz", "text.en", "text.de"), "other.tgz"),
        ):
            done = extract(*corpus)
            assert done.returncode and message in done.stderr and "Traceback" not in done.stderr

    def test_half_an_archive_is_refused(self, extract, tmp_path):
        draw = random.Random(1)
        text = "".join(f"{draw.random()}\n" for _ in range(5000))
        pack(tmp_path / "corpus.tgz", {"a/text.en": text, "a/text.de": text})
        whole = (tmp_path / "corpus.tgz").read_bytes()
        (tmp_path / "corpus.tgz").write_bytes(whole[: len(whole) // 2])
        done = extract("corpus.tgz", "text.en", "text.de")
        assert done.returncode and "extract.py: error" in done.stderr and "Traceback" not in done.stderr
