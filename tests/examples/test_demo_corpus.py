"""What the demo corpus guarantees, shown on the corpus of the quickstart and on 30,000 more sentences."""

import hashlib
import itertools
import re
from collections import Counter

import pytest

import corpus
from grammar.dice import Dice
from grammar.features import Case, Gender, Number
from grammar.german_order import AUXILIARIES
from grammar.moods import FUTURE, MODALS
from grammar.sentences import Sentence, draw_sentence
from grammar.verbs import VERBS
from grammar.vocabulary import NOUNS

SIZES = {"test": 500, "valid": 500, "train": 20_000}
CHECKSUM = "c40b7c2c44ed74c7e6ff11acbbd9bd14980d9b40e627432b942b34925be32a2b"


@pytest.fixture(scope="module")
def splits() -> corpus.Corpus:
    """The corpus of the quickstart."""
    return corpus.make_corpus(1, SIZES)


@pytest.fixture(scope="module")
def pairs() -> list[Sentence]:
    """Sentence pairs as they are drawn, with repetitions."""
    dice = Dice(7)
    return [draw_sentence(dice) for _ in range(30_000)]


# Splits.


def test_no_sentence_occurs_twice(splits):
    """Neither in one split nor in two, and neither in German nor in English."""
    assert {split: len(sentences) for split, sentences in splits.items()} == SIZES
    sentences = list(itertools.chain(*splits.values()))
    assert len({sentence.german for sentence in sentences}) == len(sentences)
    assert len({sentence.english for sentence in sentences}) == len(sentences)


def test_a_seed_gives_one_corpus(splits, tmp_path):
    """The results in examples/results were measured on this very corpus: if it changes, they must be measured again.

    On the command line: cat runs/quickstart/text/{train,valid,test}.{de,en,align} | sha256sum
    """
    corpus.write_corpus(splits, tmp_path)
    files = [tmp_path / f"{split}.{suffix}" for split in corpus.SPLITS for suffix in ("de", "en", "align")]
    assert hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest() == CHECKSUM
    assert corpus.make_corpus(2, {"test": 10})["test"] != splits["test"][:10]


def test_the_test_set_does_not_depend_on_the_other_sizes(splits):
    assert corpus.make_corpus(1, {"test": 500, "valid": 10, "train": 10})["test"] == splits["test"]


# Words and lengths.


@pytest.mark.parametrize(("side", "fewest", "most"), [("german", 600, 1000), ("english", 450, 800)])
def test_words_are_few_and_frequent(splits, side, fewest, most):
    """A small model can learn each word: the training set has it at least ten times, and all words of the test set."""
    counts = Counter(words(splits["train"], side))
    rare = {word: number for word, number in counts.items() if number < 15}
    assert fewest <= len(counts) <= most
    assert len(rare) <= 12 and min(counts.values()) >= 10, rare
    assert set(words(splits["test"], side)) <= set(counts)


def words(sentences: list[Sentence], side: str) -> list[str]:
    return [word for sentence in sentences for word in getattr(sentence, side).split()]


@pytest.mark.parametrize("side", ["german", "english"])
def test_sentences_have_4_to_22_tokens(splits, side):
    lengths = [len(getattr(sentence, side).split()) for sentence in splits["train"]]
    assert min(lengths) >= 4 and max(lengths) <= 22
    assert 9.5 <= sum(lengths) / len(lengths) <= 11


def test_sentences_look_like_sentences(pairs):
    """A capital letter first, a full stop or question mark last, and "an" before a vowel."""
    for pair in pairs:
        for side in (pair.german, pair.english):
            assert side[0].isupper() and side.endswith((" .", " ?")), side
            assert side == " ".join(side.split()), side
        assert pair.german[-1] == pair.english[-1]
        for article, following in itertools.pairwise(pair.english.lower().split()):
            if article in ("a", "an"):
                assert article == ("an" if following[0] in "aeiou" else "a"), pair.english


# Translation and word alignment.


def test_a_german_sentence_has_one_translation(pairs):
    translations: dict[str, str] = {}
    for pair in pairs:
        assert translations.setdefault(pair.german, pair.english) == pair.english, pair.german
    assert len(translations) > 27_000


def test_every_word_is_linked(pairs):
    """Only a comma that English does not write has no counterpart."""
    for pair in pairs:
        german, english = pair.german.split(), pair.english.split()
        linked_german, linked_english = ({*indices} for indices in zip(*pair.links, strict=True))
        assert list(pair.links) == sorted({*pair.links})
        assert linked_english == {*range(len(english))}, pair
        unlinked = {*range(len(german))} - linked_german
        assert linked_german <= {*range(len(german))}
        assert all(german[i] == "," for i in unlinked), pair
        assert len(unlinked) == german.count(",") - english.count(","), pair


def test_the_alignment_line_lists_the_links(pairs):
    for pair in pairs[:100]:
        assert [tuple(map(int, link.split("-"))) for link in pair.alignment.split()] == list(pair.links)


# Agreement.

ARTICLES = {
    Gender.MASCULINE: {"der", "den", "dem"},
    Gender.FEMININE: {"die", "der"},
    Gender.NEUTER: {"das", "dem"},
}


def test_articles_agree_with_their_nouns(pairs):
    """An article right before a singular noun fits its gender. After a comma it is a relative pronoun."""
    plurals = {noun.german(case, Number.PLURAL) for noun in NOUNS.values() for case in Case}
    nouns = {word: noun for word, noun in NOUNS.items() if word not in plurals}
    checked = 0
    for pair in pairs:
        tokens = ["", *pair.german.split()]
        for before, article, word in zip(tokens, tokens[1:], tokens[2:], strict=False):
            if before != "," and article.lower() in ("der", "die", "das", "den", "dem") and word in nouns:
                checked += 1
                assert article.lower() in ARTICLES[nouns[word].gender], pair.german
    assert checked > 5_000


FIRST_SINGULAR, THIRD_SINGULAR, PLURAL = range(3)


def finite_forms(person: int) -> set[str]:
    """All finite verbs of the corpus in a person; of separable verbs also the forms with the prefix."""
    modals = {mood.german[person] for mood in (*MODALS, FUTURE)}
    auxiliaries = {forms[person] for forms in AUXILIARIES.values()}
    preterites = [verb.preterite for verb in VERBS.values() if verb.preterite]
    past = {(preterite.singular, preterite.singular, preterite.plural)[person] for preterite in preterites}
    verbs = VERBS.values()
    present = [(verb.particle, (verb.first, verb.third, verb.plural or verb.infinitive)[person]) for verb in verbs]
    joined = {particle + form for particle, form in present}
    return modals | auxiliaries | past | {form for _, form in present} | joined


ANY_FINITE = finite_forms(FIRST_SINGULAR) | finite_forms(THIRD_SINGULAR) | finite_forms(PLURAL)


@pytest.mark.parametrize(
    ("pronoun", "person"), [("Ich", FIRST_SINGULAR), ("Er", THIRD_SINGULAR), ("Es", THIRD_SINGULAR), ("Wir", PLURAL)]
)
def test_verbs_agree_with_their_subjects(pairs, pronoun, person):
    """A pronoun that opens a sentence is its subject, and the finite verb follows: ich kaufe, er kauft, wir kaufen."""
    opened = [pair.german.split() for pair in pairs if pair.german.startswith(pronoun + " ")]
    assert len(opened) > 100
    for tokens in opened:
        assert tokens[1] in finite_forms(person), tokens


# German word order.


QUESTION_WORDS = "Wer Was Wen Wem Wann Wo Wohin Warum Wie".split()


def test_a_yes_no_question_starts_with_the_finite_verb(pairs):
    first_words = [pair.german.split()[0] for pair in pairs if pair.german.endswith("?")]
    verbs = [word.lower() for word in first_words if word not in QUESTION_WORDS]
    assert len(verbs) > 3_000
    assert set(verbs) <= ANY_FINITE


def test_a_subordinate_clause_ends_with_the_finite_verb(pairs):
    ends = [re.search(r", (?:dass|ob|weil|obwohl|wenn|während) .*?(\w+) \.$", pair.german) for pair in pairs]
    assert sum(map(bool, ends)) > 3_000
    for found in filter(None, ends):
        assert found[1] in ANY_FINITE, found.string


def test_a_subordinate_clause_that_opens_the_sentence_takes_the_first_place(pairs):
    """Wenn es regnet, bleibt Paul zu Hause: the finite verbs of both clauses meet at the comma."""
    opened = [re.match(r"(?:Wenn|Während) .*?(\w+) , (\w+) ", pair.german) for pair in pairs]
    assert sum(map(bool, opened)) > 500
    for found in filter(None, opened):
        assert {found[1], found[2]} <= ANY_FINITE, found.string
