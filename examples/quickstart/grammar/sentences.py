"""The sentence types of the corpus and their shares."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from . import people as who
from . import things as what
from .declension import WE, I
from .dice import Dice
from .drawing import can_open, draw_clause, draw_front
from .features import Case, Number
from .frame_lexicon import ALL, draw_frame, of_speakers
from .moods import PRESENT, MoodKind
from .noun_classes import SingularOnly
from .noun_phrases import PronounPhrase
from .phrases import COMMA, Link, Phrase, Tokens, gloss, new_concept, pair
from .questions import own_question, word_question, yes_no_question
from .relatives import draw_described, frames_for
from .rendering import render
from .slots import Slot
from .subordinates import conditional, meanwhile, nevertheless, reasoned, reported

SHORTEST, LONGEST = 4, 22
"""The lengths of a sentence in tokens, in either language."""
PEOPLE = (who.ADULTS, who.PROFESSIONALS, who.KIDS)
DESCRIBED = (*PEOPLE, what.READING, what.CLOTHES, what.PRESENTS)
"""What carries a relative clause."""
OF_SPEAKERS = of_speakers(MoodKind.PRESENT)
WITH_OBJECT = tuple(
    group for group in ALL if group[0].dative or (group[0].accusative and group[0].accusative.nouns[0].human)
)
"""The frames of the verbs with a dative, or with a person in the accusative."""


@dataclass(frozen=True)
class Sentence:
    """A sentence pair: both sides in tokens with a space between them, and their word alignment."""

    german: str
    english: str
    links: tuple[Link, ...]

    @property
    def alignment(self) -> str:
        return " ".join(f"{i}-{j}" for i, j in self.links)


def statement(dice: Dice) -> Phrase:
    """Am Montag kauft die Frau Brot."""
    clause = draw_clause(dice, draw_frame(dice))
    return render(clause, front=draw_front(dice, clause))


def object_first(dice: Dice) -> Phrase:
    """Den Mann hat die Frau gesehen. Only the case says who saw whom."""
    while True:
        clause = draw_clause(dice, dice.pick(dice.deal("object first", WITH_OBJECT)))
        slots = [slot for slot in (Slot.DATIVE, Slot.ACCUSATIVE) if can_open(clause, slot)]
        if slots:
            return render(clause, front=slots[0])


def own_statement(dice: Dice) -> Phrase:
    """Ich backe einen Kuchen. A type of its own, because no other subject has this form of the verb."""
    frame = dice.pick(dice.deal("own", OF_SPEAKERS))
    several = dice.chance(0.3) and not isinstance(frame.subject, SingularOnly)
    clause = draw_clause(dice, frame, PRESENT, given={Slot.SUBJECT: PronounPhrase(WE if several else I)})
    return render(clause, front=draw_front(dice, clause))


def identification(dice: Dice) -> Phrase:
    """Das ist der Mann, den Anna besucht hat."""
    phrase, relative, _ = draw_described(dice, dice.pick(DESCRIBED))
    opening = gloss("das/this ist/is" if phrase.number is Number.SINGULAR else "das/these sind/are")
    return opening + phrase.phrase(Case.NOMINATIVE, new_concept()) + relative


def described_subject(dice: Dice) -> Phrase:
    """Der Mann, der das Auto repariert, wohnt in Köln."""
    phrase, relative, verb = draw_described(dice, dice.pick(PEOPLE))
    frame = draw_frame(dice)
    while phrase.noun not in frame.subject.nouns or frame.verb is verb:
        frame = draw_frame(dice)
    subject = replace(phrase, relative=relative + COMMA)
    return render(draw_clause(dice, frame, adverbials=0.4, given={Slot.SUBJECT: subject}))


def described_object(dice: Dice) -> Phrase:
    """Ich kenne den Mann, der das Auto repariert. The relative clause ends the sentence in both languages."""
    while True:
        phrase, relative, verb = draw_described(dice, dice.pick(DESCRIBED))
        groups = frames_for(phrase.noun, Slot.ACCUSATIVE)
        if groups:
            frame = dice.pick(dice.pick(groups))
            english = frame.verb.english
            if not (frame.complements or english.suffix or english.to_dative or frame.verb is verb):
                clause = draw_clause(dice, frame, negation=0, adverbials=0, given={Slot.ACCUSATIVE: phrase})
                return render(clause) + relative


class SentenceType(NamedTuple):
    share: int
    draw: Callable[[Dice], Phrase]
    mark: str


TYPES = (
    SentenceType(23, statement, "."),
    SentenceType(4, object_first, "."),
    SentenceType(9, own_statement, "."),
    SentenceType(14, yes_no_question, "?"),
    SentenceType(2, own_question, "?"),
    SentenceType(10, word_question, "?"),
    SentenceType(11, reported, "."),
    SentenceType(5, reasoned, "."),
    SentenceType(4, conditional, "."),
    SentenceType(2, nevertheless, "."),
    SentenceType(4, meanwhile, "."),
    SentenceType(2, identification, "."),
    SentenceType(5, described_subject, "."),
    SentenceType(3, described_object, "."),
)


def draw_sentence(dice: Dice) -> Sentence:
    """A sentence of SHORTEST to LONGEST tokens in both languages."""
    while True:
        kind = dice.pick_weighted([(kind.share, kind) for kind in TYPES])
        phrase = kind.draw(dice) + pair(kind.mark, kind.mark)
        if all(SHORTEST <= len(side) <= LONGEST for side in (phrase.german, phrase.english)):
            return Sentence(text(phrase.german), text(phrase.english), phrase.links())


def text(side: Tokens) -> str:
    words = " ".join(token.text for token in side)
    return words[0].upper() + words[1:]
