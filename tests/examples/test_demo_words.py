"""Forms of words in the demo corpus's grammar: numbers, and declined noun phrases."""

import pytest

from grammar.declension import OUR, THE, THIS, A
from grammar.features import Case, Number
from grammar.noun_phrases import NounPhrase
from grammar.numerals import number_word
from grammar.phrases import new_concept
from grammar.vocabulary import ADJECTIVES, NOUNS


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
    assert number_word(number) == (german, english)


@pytest.mark.parametrize(
    ("determiner", "adjective", "expected"),
    [
        (THE, "gut", "der gute Student, den guten Studenten, dem guten Studenten"),
        (A, "gut", "ein guter Student, einen guten Studenten, einem guten Studenten"),
        (OUR, "teuer", "unser teurer Student, unseren teuren Studenten, unserem teuren Studenten"),
        (THIS, "gut", "dieser gute Student, diesen guten Studenten, diesem guten Studenten"),
    ],
    ids=("the", "a", "our", "this"),
)
def test_declension(determiner, adjective, expected):
    phrase = NounPhrase(NOUNS["Student"], Number.SINGULAR, determiner, ADJECTIVES[adjective])
    forms = [phrase.phrase(case, new_concept()).german for case in Case]
    assert ", ".join(" ".join(token.text for token in form) for form in forms) == expected
