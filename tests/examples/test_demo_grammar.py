"""Constructions of the demo corpus's grammar: what each says in German and in English, and how the words are aligned.

The expected words and links were written by hand.
"""

from typing import NamedTuple

import pytest

from grammar.clauses import Clause, Negation
from grammar.declension import BARE, HE, MY, NAME, NO, SHE, THE, THIS, WE, A, Determiner, I
from grammar.features import Case, Number
from grammar.frames import frame
from grammar.moods import CAN, LIKING, MUST, PAST, PRESENT, Mood
from grammar.noun_phrases import NounPhrase, Participant, PronounPhrase, QuestionWord
from grammar.numerals import MINUTES, NumberWord, full_hour, half_past, near_hour, number_word
from grammar.people import NOBODY
from grammar.phrases import COMMA, Phrase, gloss, pair
from grammar.places import preposition, prepositional
from grammar.rendering import Order, render
from grammar.slots import CASES, Slot
from grammar.vocabulary import NOUNS, adjectives

PLURAL = Number.PLURAL


def noun(
    word: str,
    determiner: Determiner = THE,
    number: Number = Number.SINGULAR,
    adjective: str = "",
    count: NumberWord | None = None,
) -> NounPhrase:
    found = adjectives(adjective)[0] if adjective else None
    return NounPhrase(NOUNS[word], number, determiner, found, count)


def say(
    verb: str,
    mood: Mood = PRESENT,
    order: Order = Order.STATEMENT,
    front: Slot = Slot.SUBJECT,
    asked: Slot | None = None,
    negation: Negation = Negation.NONE,
    **slots: Participant | Phrase,
) -> Phrase:
    """A clause; the names of `slots` are those of `Slot`."""
    filled = {Slot(name): filler for name, filler in slots.items()}
    participants = {slot: filler for slot, filler in filled.items() if slot in CASES}
    adjuncts = {slot: filler for slot, filler in filled.items() if slot not in CASES}
    verb_frame = frame(verb, NOBODY, experiencer=verb == "gefallen")
    return render(Clause(verb_frame, mood, participants, adjuncts, negation), order, front, asked)


class Example(NamedTuple):
    phrase: Phrase
    german: str
    english: str
    alignment: str


MAN_CALLS_WOMAN = {"subject": noun("Mann"), "accusative": noun("Frau")}
VERBS = {
    "separable verb": Example(
        say("an|rufen", **MAN_CALLS_WOMAN),
        "der Mann ruft die Frau an",
        "the man calls the woman",
        "0-0 1-1 2-2 3-3 4-4 5-2",
    ),
    "separable verb, subordinate": Example(
        gloss("weil/because") + say("an|rufen", order=Order.SUBORDINATE, **MAN_CALLS_WOMAN),
        "weil der Mann die Frau anruft",
        "because the man calls the woman",
        "0-0 1-1 2-2 3-4 4-5 5-3",
    ),
    "separable verb, perfect": Example(
        say("an|rufen", PAST, **MAN_CALLS_WOMAN),
        "der Mann hat die Frau angerufen",
        "the man called the woman",
        "0-0 1-1 2-2 3-3 4-4 5-2",
    ),
    "perfect with sein, at half past seven": Example(
        say("auf|stehen", PAST, front=Slot.CLOCK, subject=noun("Kind", THE, PLURAL), clock=half_past(7)),
        "um halb acht sind die Kinder aufgestanden",
        "at half past seven the children got up",
        "0-0 1-1 1-2 2-3 3-6 4-4 5-5 6-6 6-7",
    ),
    "modal verb, negated": Example(
        say("kommen", MUST, subject=PronounPhrase(SHE), negation=Negation.NICHT),
        "sie muss nicht kommen",
        "she does not have to come",
        "0-0 1-1 1-3 1-4 2-2 3-5",
    ),
    "gern": Example(
        say("lesen", LIKING, subject=noun("Mutter", MY), accusative=noun("Buch", BARE, PLURAL)),
        "meine Mutter liest gern Bücher",
        "my mother likes to read books",
        "0-0 1-1 2-4 3-2 3-3 4-5",
    ),
    "pronoun inside the English verb": Example(
        say("ab|holen", subject=noun("Frau"), accusative=PronounPhrase(HE)),
        "die Frau holt ihn ab",
        "the woman picks him up",
        "0-0 1-1 2-2 2-4 3-3 4-2 4-4",
    ),
}
OBJECTS = {
    "dative": Example(
        say("helfen", subject=noun("Frau"), dative=noun("Junge", adjective="nett")),
        "die Frau hilft dem netten Jungen",
        "the woman helps the nice boy",
        "0-0 1-1 2-2 3-3 4-4 5-5",
    ),
    "two objects, dative plural": Example(
        say(
            "schenken",
            PAST,
            subject=PronounPhrase(I),
            dative=noun("Kind", MY, PLURAL),
            accusative=noun("Fahrrad", A, adjective="alt"),
        ),
        "ich habe meinen Kindern ein altes Fahrrad geschenkt",
        "I gave my children an old bicycle as a present",
        "0-0 1-1 2-2 3-3 4-4 5-5 6-6 7-1 7-7 7-8 7-9",
    ),
    "receiver with to": Example(
        say("erklären", subject=noun("Lehrerin"), dative=noun("Student"), accusative=noun("Regel", THIS)),
        "die Lehrerin erklärt dem Studenten diese Regel",
        "the teacher explains this rule to the student",
        "0-0 1-1 2-2 2-5 3-6 4-7 5-3 6-4",
    ),
    "object first": Example(
        say("sehen", front=Slot.ACCUSATIVE, subject=noun("Frau"), accusative=noun("Mann")),
        "den Mann sieht die Frau",
        "the woman sees the man",
        "0-3 1-4 2-2 3-0 4-1",
    ),
    "experiencer": Example(
        say("gefallen", front=Slot.DATIVE, subject=noun("Buch", THE, PLURAL), dative=noun("Mann")),
        "dem Mann gefallen die Bücher",
        "the man likes the books",
        "0-0 1-1 2-2 3-3 4-4",
    ),
    "number": Example(
        say(
            "kaufen",
            PAST,
            subject=noun("Frau"),
            accusative=noun("Apfel", BARE, PLURAL, "rot", count=number_word(21)),
        ),
        "die Frau hat einundzwanzig rote Äpfel gekauft",
        "the woman bought twenty-one red apples",
        "0-0 1-1 2-2 3-3 4-4 5-5 6-2",
    ),
}
NEGATIONS = {
    "nicht": Example(
        say("schlafen", subject=noun("Kind"), place=gloss("zu/at Hause/home"), negation=Negation.NICHT),
        "das Kind schläft nicht zu Hause",
        "the child does not sleep at home",
        "0-0 1-1 2-2 2-4 3-3 4-5 5-6",
    ),
    "kein with a mass noun": Example(
        say("kaufen", PAST, subject=PronounPhrase(WE), accusative=noun("Brot", NO), negation=Negation.KEIN),
        "wir haben kein Brot gekauft",
        "we did not buy any bread",
        "0-0 1-1 2-2 2-4 3-5 4-3",
    ),
    "kein with can": Example(
        say("reparieren", CAN, subject=PronounPhrase(HE), accusative=noun("Stuhl", NO), negation=Negation.KEIN),
        "er kann keinen Stuhl reparieren",
        "he cannot repair a chair",
        "0-0 1-1 2-1 2-3 3-4 4-2",
    ),
}
QUESTIONS = {
    "yes/no question, frequency": Example(
        say(
            "trinken",
            order=Order.QUESTION,
            subject=noun("Arzt"),
            accusative=noun("Tee", BARE, adjective="heiß"),
            frequency=pair("oft", "often"),
        ),
        "trinkt der Arzt oft heißen Tee",
        "does the doctor often drink hot tea",
        "0-0 0-4 1-1 2-2 3-3 4-5 5-6",
    ),
    "question word": Example(
        say(
            "besuchen",
            PAST,
            Order.QUESTION,
            asked=Slot.ACCUSATIVE,
            subject=noun("Anna", NAME),
            accusative=QuestionWord("wen", "whom"),
            time=gloss("gestern/yesterday"),
        ),
        "wen hat Anna gestern besucht",
        "whom did Anna visit yesterday",
        "0-0 1-1 2-2 3-4 4-3",
    ),
}
WOMAN_SEES = say(
    "sehen",
    order=Order.SUBORDINATE,
    asked=Slot.ACCUSATIVE,
    subject=noun("Frau"),
    accusative=QuestionWord("den", "whom"),
)
WHO_REPAIRED = say(
    "reparieren",
    PAST,
    Order.SUBORDINATE,
    asked=Slot.SUBJECT,
    subject=QuestionWord("die", "who"),
    accusative=noun("Auto"),
)
RELATIVES = {
    "relative clause, object": Example(
        gloss("der/the Mann/man") + COMMA + WOMAN_SEES,
        "der Mann , den die Frau sieht",
        "the man whom the woman sees",
        "0-0 1-1 3-2 4-3 5-4 6-5",
    ),
    "relative clause, subject": Example(
        gloss("die/the Frau/woman") + COMMA + WHO_REPAIRED,
        "die Frau , die das Auto repariert hat",
        "the woman who repaired the car",
        "0-0 1-1 3-2 4-4 5-5 6-3 7-3",
    ),
}
ADVERBIALS = {
    "place and time change places": Example(
        say(
            "arbeiten",
            subject=noun("Bauer", A, adjective="alt"),
            place=prepositional(preposition("in/in"), noun("Fahrradwerkstatt"), Case.DATIVE),
            time=gloss("am/on Montag/Monday"),
        ),
        "ein alter Bauer arbeitet am Montag in der Fahrradwerkstatt",
        "an old farmer works in the bicycle workshop on Monday",
        "0-0 1-1 2-2 3-3 4-8 5-9 6-4 7-5 8-6 8-7",
    ),
    "contraction": Example(
        prepositional(preposition("zu/to"), noun("Bahnhof", adjective="neu"), Case.DATIVE),
        "zum neuen Bahnhof",
        "to the new station",
        "0-0 0-1 1-2 2-3",
    ),
    "one o'clock": Example(full_hour(1), "um ein Uhr", "at one o'clock", "0-0 1-1 2-2"),
    "half past twelve": Example(half_past(12), "um halb eins", "at half past twelve", "0-0 1-1 1-2 2-3"),
    "quarter past three": Example(
        near_hour(MINUTES[0], 3), "um Viertel nach drei", "at a quarter past three", "0-0 1-1 1-2 2-3 3-4"
    ),
}
EXAMPLES = VERBS | OBJECTS | NEGATIONS | QUESTIONS | RELATIVES | ADVERBIALS


@pytest.mark.parametrize("name", EXAMPLES)
def test_construction(name):
    example = EXAMPLES[name]
    assert " ".join(token.text for token in example.phrase.german) == example.german
    assert " ".join(token.text for token in example.phrase.english) == example.english
    assert " ".join(f"{i}-{j}" for i, j in example.phrase.links()) == example.alignment
