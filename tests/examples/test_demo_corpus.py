"""The demo corpus: what is written, what is linked, and whether both languages keep to their grammar."""

import importlib
import itertools
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

QUICKSTART = Path(__file__).resolve().parents[2] / "examples" / "quickstart"
SPLITS = ("train", "valid", "test")
SUFFIXES = ("de", "en", "align")


def load(name):
    """A module of the quickstart, which is a folder of scripts and no package."""
    sys.path.insert(0, str(QUICKSTART))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(QUICKSTART))


corpus = load("corpus")
clauses = load("grammar.clauses")
declension = load("grammar.declension")
noun_phrases = load("grammar.noun_phrases")
numerals = load("grammar.numerals")
phrases = load("grammar.phrases")
places = load("grammar.places")
verbs = load("grammar.verbs")
vocabulary = load("grammar.vocabulary")
scene = load("grammar.scenes").scene


@pytest.fixture(scope="module")
def pairs():
    """Sentences as they are drawn, repetitions included."""
    dice = load("grammar.dice").Dice(7)
    return [corpus.draw_sentence(dice) for _ in range(30_000)]


@pytest.fixture(scope="module")
def splits():
    return corpus.make_corpus(1, {"test": 500, "valid": 500, "train": 20_000})


def written(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# The files.


def test_same_seed_same_files(tmp_path):
    sizes = ["--train", "300", "--valid", "20", "--test", "20"]
    for name, seed in (("one", "5"), ("two", "5"), ("three", "6")):
        corpus.main(["--out", str(tmp_path / name), "--seed", seed, *sizes])
    assert written(tmp_path / "one") == written(tmp_path / "two")
    assert written(tmp_path / "one") != written(tmp_path / "three")


def test_same_files_whatever_the_hash_seed_and_the_folder(tmp_path):
    for name in "12":
        command = [sys.executable, str(QUICKSTART / "corpus.py"), "--out", name]
        command += ["--train", "200", "--valid", "10", "--test", "10"]
        subprocess.run(command, cwd=tmp_path, env={"PYTHONHASHSEED": name}, check=True, capture_output=True)
    assert written(tmp_path / "1") == written(tmp_path / "2")


def test_files_and_summary(tmp_path, capsys):
    corpus.main(["--out", str(tmp_path / "new" / "folder"), "--train", "50", "--valid", "7", "--test", "9"])
    files = written(tmp_path / "new" / "folder")
    assert sorted(files) == sorted(f"{split}.{suffix}" for split in SPLITS for suffix in SUFFIXES)
    for split, size in zip(SPLITS, (50, 7, 9), strict=True):
        for suffix in SUFFIXES:
            text = files[f"{split}.{suffix}"].decode("utf-8")
            assert text.endswith("\n") and "\r" not in text
            assert len(text.splitlines()) == size
    (line,) = capsys.readouterr().out.splitlines()
    assert "train 50, valid 7, test 9 sentences" in line


def test_empty_corpus(tmp_path):
    corpus.main(["--out", str(tmp_path), "--train", "0", "--valid", "0", "--test", "0"])
    assert set(written(tmp_path).values()) == {b""}


def test_an_interrupted_run_leaves_the_old_file(tmp_path):
    path = tmp_path / "train.de"
    path.write_text("old\n")

    def lines():
        yield "new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        corpus.write_lines(path, lines())
    assert written(tmp_path) == {"train.de": b"old\n"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--out"),
        (["--out", "x", "--train", "-1"], "'-1' is not a whole number from 0"),
        (["--out", "x", "--test", "many"], "'many' is not a whole number from 0"),
        (["--out", "x", "--seed", "1.5"], "'1.5' is not a whole number from 0"),
        (["--out", "x", "--train", "2000000"], "add up to more than 1000000 sentences"),
        (["--out", __file__], "is a file; name a folder"),
        (["--out", str(Path(__file__) / "x"), "--train", "1"], "cannot write to --out"),
    ],
)
def test_bad_arguments(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        corpus.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert not list(tmp_path.iterdir())


# The sentences.


def test_no_sentence_comes_up_twice(splits):
    sentences = list(itertools.chain(*splits.values()))
    assert [len(splits[split]) for split in SPLITS] == [20_000, 500, 500]
    assert len({sentence.german for sentence in sentences}) == len(sentences)
    assert len({sentence.english for sentence in sentences}) == len(sentences)


def test_the_test_set_does_not_depend_on_the_training_set(splits):
    assert corpus.make_corpus(1, {"test": 500, "valid": 10, "train": 10})["test"] == splits["test"]


@pytest.mark.parametrize(("side", "fewest", "most"), [("german", 600, 1000), ("english", 450, 800)])
def test_words_are_few_and_frequent(splits, side, fewest, most):
    counts = Counter(word for sentence in splits["train"] for word in getattr(sentence, side).split())
    rare = {word: number for word, number in counts.items() if number < 15}
    assert fewest <= len(counts) <= most
    assert len(rare) <= 12 and min(counts.values()) >= 10, rare
    unseen = {word for sentence in splits["test"] for word in getattr(sentence, side).split()} - set(counts)
    assert not unseen


@pytest.mark.parametrize("side", ["german", "english"])
def test_lengths(splits, side):
    lengths = [len(getattr(sentence, side).split()) for sentence in splits["train"]]
    assert min(lengths) >= 4 and max(lengths) <= 22
    assert 9.5 <= sum(lengths) / len(lengths) <= 11


def test_a_german_sentence_has_one_translation(pairs):
    translations = {}
    for pair in pairs:
        assert translations.setdefault(pair.german, pair.english) == pair.english, pair.german
    assert len(translations) > 27_000


def test_every_word_is_linked(pairs):
    """Only a comma that English does not put has no counterpart."""
    for pair in pairs:
        german, english = pair.german.split(), pair.english.split()
        assert list(pair.links) == sorted(set(pair.links))
        linked_german, linked_english = (set(indices) for indices in zip(*pair.links, strict=True))
        assert linked_english == set(range(len(english))), pair
        unlinked = set(range(len(german))) - linked_german
        assert not linked_german - set(range(len(german)))
        assert {german[i] for i in unlinked} <= {","}, pair
        assert len(unlinked) == german.count(",") - english.count(","), pair


def test_alignment_line(pairs):
    for pair in pairs[:100]:
        links = [tuple(map(int, link.split("-"))) for link in pair.alignment.split()]
        assert links == list(pair.links)


def test_sentences_look_like_sentences(pairs):
    for pair in pairs:
        for side in (pair.german, pair.english):
            assert side[0].isupper() and side.endswith((" .", " ?")), side
            assert side == " ".join(side.split()), side
        assert pair.german[-1] == pair.english[-1]
        for one, following in itertools.pairwise(pair.english.split()):
            if one.lower() in ("a", "an"):
                assert (one.lower() == "an") == (following[0] in "aeiou"), pair.english


ARTICLES = {"m": {"der", "den", "dem"}, "f": {"die", "der"}, "n": {"das", "dem"}}


def test_articles_agree_with_their_nouns(pairs):
    """An article right before a singular noun fits its gender; after a comma it is a relative pronoun."""
    plurals = {noun.german(case, "p") for noun in vocabulary.NOUNS.values() for case in ("nom", "dat")}
    nouns = {word: noun for word, noun in vocabulary.NOUNS.items() if word not in plurals}
    checked = 0
    for pair in pairs:
        words = ["", *pair.german.lower().split()]
        spelled = ["", *pair.german.split()]
        for before, article, word in zip(words, words[1:], spelled[2:], strict=False):
            if before != "," and article in {"der", "die", "das", "den", "dem"} and word in nouns:
                checked += 1
                assert article in ARTICLES[nouns[word].gender], pair.german
    assert checked > 5_000


# Sentences made by hand. The alignments were written down from the words, not from the program.


def a_noun(word, determiner="THE", number="s", adjective="", **more):
    found = vocabulary.adjectives(adjective)[0] if adjective else None
    return noun_phrases.NounPhrase(vocabulary.NOUNS[word], number, getattr(declension, determiner), found, **more)


def a_pronoun(name):
    return noun_phrases.PronounPhrase(getattr(declension, name))


def say(verb, mood="PRESENT", order="statement", front="subject", asked="", **slots):
    extras = {"experiencer": verb == "gefallen"}
    clause = clauses.Clause(scene(verb, None, **extras), getattr(verbs, mood), **slots)
    return clauses.render(clause, order, front, asked)


MAN_CALLS_WOMAN = {"subject": a_noun("Mann"), "accusative": a_noun("Frau")}
HAND_MADE = {
    "separable verb": (
        say("an|rufen", **MAN_CALLS_WOMAN),
        "der Mann ruft die Frau an",
        "the man calls the woman",
        "0-0 1-1 2-2 3-3 4-4 5-2",
    ),
    "separable verb, subordinate": (
        phrases.gloss("weil/because") + say("an|rufen", order="subordinate", **MAN_CALLS_WOMAN),
        "weil der Mann die Frau anruft",
        "because the man calls the woman",
        "0-0 1-1 2-2 3-4 4-5 5-3",
    ),
    "separable verb, perfect": (
        say("an|rufen", "PAST", **MAN_CALLS_WOMAN),
        "der Mann hat die Frau angerufen",
        "the man called the woman",
        "0-0 1-1 2-2 3-3 4-4 5-2",
    ),
    "perfect with sein, at half past seven": (
        say(
            "auf|stehen",
            "PAST",
            front="clock",
            subject=a_noun("Kind", number="p"),
            clock=numerals.half_past(7),
        ),
        "um halb acht sind die Kinder aufgestanden",
        "at half past seven the children got up",
        "0-0 1-1 1-2 2-3 3-6 4-4 5-5 6-6 6-7",
    ),
    "half past twelve": (numerals.half_past(12), "um halb eins", "at half past twelve", "0-0 1-1 1-2 2-3"),
    "quarter past three": (
        numerals.near_hour(numerals.MINUTES[0], 3),
        "um Viertel nach drei",
        "at a quarter past three",
        "0-0 1-1 1-2 2-3 3-4",
    ),
    "one o'clock": (numerals.full_hour(1), "um ein Uhr", "at one o'clock", "0-0 1-1 2-2"),
    "dative": (
        say("helfen", subject=a_noun("Frau"), dative=a_noun("Junge", adjective="nett")),
        "die Frau hilft dem netten Jungen",
        "the woman helps the nice boy",
        "0-0 1-1 2-2 3-3 4-4 5-5",
    ),
    "two objects, dative plural": (
        say(
            "schenken",
            "PAST",
            subject=a_pronoun("I"),
            dative=a_noun("Kind", "MY", "p"),
            accusative=a_noun("Fahrrad", "A", adjective="alt"),
        ),
        "ich habe meinen Kindern ein altes Fahrrad geschenkt",
        "I gave my children an old bicycle as a present",
        "0-0 1-1 2-2 3-3 4-4 5-5 6-6 7-1 7-7 7-8 7-9",
    ),
    "object first": (
        say("sehen", front="accusative", subject=a_noun("Frau"), accusative=a_noun("Mann")),
        "den Mann sieht die Frau",
        "the woman sees the man",
        "0-3 1-4 2-2 3-0 4-1",
    ),
    "experiencer": (
        say("gefallen", front="dative", subject=a_noun("Buch", number="p"), dative=a_noun("Mann")),
        "dem Mann gefallen die Bücher",
        "the man likes the books",
        "0-0 1-1 2-2 3-3 4-4",
    ),
    "number": (
        say(
            "kaufen",
            "PAST",
            subject=a_noun("Frau"),
            accusative=a_noun("Apfel", "BARE", "p", "rot", count=numerals.number_word(21)),
        ),
        "die Frau hat einundzwanzig rote Äpfel gekauft",
        "the woman bought twenty-one red apples",
        "0-0 1-1 2-2 3-3 4-4 5-5 6-2",
    ),
    "relative clause, object": (
        a_noun("Mann").phrase("nom")
        + phrases.COMMA
        + say(
            "sehen",
            order="subordinate",
            asked="accusative",
            subject=a_noun("Frau"),
            accusative=noun_phrases.QuestionWord("den", "whom"),
        ),
        "der Mann , den die Frau sieht",
        "the man whom the woman sees",
        "0-0 1-1 3-2 4-3 5-4 6-5",
    ),
    "relative clause, subject": (
        a_noun("Frau").phrase("nom")
        + phrases.COMMA
        + say(
            "reparieren",
            "PAST",
            order="subordinate",
            asked="subject",
            subject=noun_phrases.QuestionWord("die", "who"),
            accusative=a_noun("Auto"),
        ),
        "die Frau , die das Auto repariert hat",
        "the woman who repaired the car",
        "0-0 1-1 3-2 4-4 5-5 6-3 7-3",
    ),
    "negation": (
        say("schlafen", subject=a_noun("Kind"), place=phrases.gloss("zu/at Hause/home"), negation="nicht"),
        "das Kind schläft nicht zu Hause",
        "the child does not sleep at home",
        "0-0 1-1 2-2 2-4 3-3 4-5 5-6",
    ),
    "kein with a mass noun": (
        say("kaufen", "PAST", subject=a_pronoun("WE"), accusative=a_noun("Brot", "NO"), negation="kein"),
        "wir haben kein Brot gekauft",
        "we did not buy any bread",
        "0-0 1-1 2-2 2-4 3-5 4-3",
    ),
    "kein with can": (
        say("reparieren", "CAN", subject=a_pronoun("HE"), accusative=a_noun("Stuhl", "NO"), negation="kein"),
        "er kann keinen Stuhl reparieren",
        "he cannot repair a chair",
        "0-0 1-1 2-1 2-3 3-4 4-2",
    ),
    "modal verb denied": (
        say("kommen", "MUST", subject=a_pronoun("SHE"), negation="nicht"),
        "sie muss nicht kommen",
        "she does not have to come",
        "0-0 1-1 1-3 1-4 2-2 3-5",
    ),
    "gern": (
        say("lesen", "LIKING", subject=a_noun("Mutter", "MY"), accusative=a_noun("Buch", "BARE", "p")),
        "meine Mutter liest gern Bücher",
        "my mother likes to read books",
        "0-0 1-1 2-4 3-2 3-3 4-5",
    ),
    "yes/no question, frequency": (
        say(
            "trinken",
            order="question",
            subject=a_noun("Arzt"),
            accusative=a_noun("Tee", "BARE", adjective="heiß"),
            frequency=phrases.pair("oft", "often"),
        ),
        "trinkt der Arzt oft heißen Tee",
        "does the doctor often drink hot tea",
        "0-0 0-4 1-1 2-2 3-3 4-5 5-6",
    ),
    "question word": (
        say(
            "besuchen",
            "PAST",
            order="question",
            asked="accusative",
            subject=a_noun("Anna", "NAME"),
            accusative=noun_phrases.QuestionWord("wen", "whom"),
            time=phrases.gloss("gestern/yesterday"),
        ),
        "wen hat Anna gestern besucht",
        "whom did Anna visit yesterday",
        "0-0 1-1 2-2 3-4 4-3",
    ),
    "pronoun inside the English verb": (
        say("ab|holen", subject=a_noun("Frau"), accusative=a_pronoun("HE")),
        "die Frau holt ihn ab",
        "the woman picks him up",
        "0-0 1-1 2-2 2-4 3-3 4-2 4-4",
    ),
    "receiver with to": (
        say(
            "erklären",
            subject=a_noun("Lehrerin"),
            dative=a_noun("Student"),
            accusative=a_noun("Regel", "THIS"),
        ),
        "die Lehrerin erklärt dem Studenten diese Regel",
        "the teacher explains this rule to the student",
        "0-0 1-1 2-2 2-5 3-6 4-7 5-3 6-4",
    ),
    "place and time change places": (
        say(
            "arbeiten",
            subject=a_noun("Bauer", "A", adjective="alt"),
            place=places.prepositional("in", "in", a_noun("Fahrradwerkstatt"), "dat"),
            time=phrases.gloss("am/on Montag/Monday"),
        ),
        "ein alter Bauer arbeitet am Montag in der Fahrradwerkstatt",
        "an old farmer works in the bicycle workshop on Monday",
        "0-0 1-1 2-2 3-3 4-8 5-9 6-4 7-5 8-6 8-7",
    ),
    "contraction": (
        places.prepositional("zu", "to", a_noun("Bahnhof", adjective="neu"), "dat"),
        "zum neuen Bahnhof",
        "to the new station",
        "0-0 0-1 1-2 2-3",
    ),
}


@pytest.mark.parametrize("name", HAND_MADE)
def test_hand_made_sentence(name):
    phrase, german, english, alignment = HAND_MADE[name]
    assert " ".join(token.text for token in phrase.german) == german
    assert " ".join(token.text for token in phrase.english) == english
    assert " ".join(f"{i}-{j}" for i, j in phrase.alignment()) == alignment


@pytest.mark.parametrize(
    ("number", "german", "english"),
    [
        (1, "ein", "one"),
        (7, "sieben", "seven"),
        (12, "zwölf", "twelve"),
        (16, "sechzehn", "sixteen"),
        (17, "siebzehn", "seventeen"),
        (20, "zwanzig", "twenty"),
        (21, "einundzwanzig", "twenty-one"),
        (30, "dreißig", "thirty"),
        (76, "sechsundsiebzig", "seventy-six"),
        (99, "neunundneunzig", "ninety-nine"),
        (100, "hundert", "one hundred"),
        (700, "siebenhundert", "seven hundred"),
    ],
)
def test_number_words(number, german, english):
    assert numerals.number_word(number) == (german, english)


@pytest.mark.parametrize(
    ("determiner", "adjective", "expected"),
    [
        ("THE", "gut", "der gute Student, den guten Studenten, dem guten Studenten"),
        ("A", "gut", "ein guter Student, einen guten Studenten, einem guten Studenten"),
        ("OUR", "teuer", "unser teurer Student, unseren teuren Studenten, unserem teuren Studenten"),
        ("THIS", "gut", "dieser gute Student, diesen guten Studenten, diesem guten Studenten"),
    ],
)
def test_declension(determiner, adjective, expected):
    phrase = a_noun("Student", determiner, adjective=adjective)
    forms = [phrase.phrase(case).german for case in ("nom", "acc", "dat")]
    assert ", ".join(" ".join(token.text for token in form) for form in forms) == expected
