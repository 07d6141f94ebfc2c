"""The sentence types of the corpus and their shares."""

from dataclasses import dataclass, replace

from . import people as who
from . import things as what
from .casting import can_open, draw_clause, draw_front
from .casts import Single
from .clauses import render
from .declension import WE, I
from .noun_phrases import PronounPhrase
from .phrases import COMMA, gloss, pair
from .questions import own_question, word_question, yes_no_question
from .relatives import draw_described, scenes_for
from .repertoire import ALL, draw_scene
from .subordinates import conditional, meanwhile, nevertheless, reasoned, reported
from .verbs import PRESENT

SHORTEST, LONGEST = 4, 22
DESCRIBED = (who.ADULTS, who.PROFESSIONALS, who.KIDS, what.READING, what.CLOTHES, what.PRESENTS)


@dataclass(frozen=True)
class Sentence:
    """A finished pair: both sides as token texts, and the links between them."""

    german: str
    english: str
    links: tuple

    @property
    def alignment(self):
        return " ".join(f"{i}-{j}" for i, j in self.links)


def statement(dice):
    clause = draw_clause(dice, draw_scene(dice))
    return render(clause, front=draw_front(dice, clause))


def object_first(dice):
    """Den Mann hat die Frau gesehen: only the case says who saw whom."""
    while True:
        scene = dice.pick(dice.deal("object first", WITH_OBJECT))
        clause = draw_clause(dice, scene)
        slots = [slot for slot in ("dative", "accusative") if can_open(clause, slot)]
        if slots:
            return render(clause, front=slots[0])


def own_statement(dice):
    """Ich backe einen Kuchen: a form of the verb that nobody else uses, hence a sentence type of its own."""
    scene = dice.pick(dice.deal("own", OWN))
    several = dice.chance(0.3) and not isinstance(scene.subject, Single)
    clause = draw_clause(dice, scene, PRESENT, subject=PronounPhrase(WE if several else I))
    return render(clause, front=draw_front(dice, clause))


def can_be_own(scene):
    return "present" in scene.moods and who.SPEAKERS in scene.subject.classes


def identification(dice):
    """Das ist der Mann, den Anna besucht hat."""
    phrase, relative, _ = draw_described(dice, dice.pick(DESCRIBED))
    opening = gloss("das/this ist/is") if phrase.number == "s" else gloss("das/these sind/are")
    return opening + phrase.phrase("nom") + relative


def described_subject(dice):
    """Der Mann, der das Auto repariert, wohnt in Köln."""
    phrase, relative, verb = draw_described(dice, dice.pick(DESCRIBED[:3]))
    scene = draw_scene(dice)
    while phrase.noun not in scene.subject.nouns or scene.verb is verb:
        scene = draw_scene(dice)
    clause = draw_clause(dice, scene, adverbials=0.4, subject=replace(phrase, relative=relative + COMMA))
    return render(clause)


def described_object(dice):
    """Ich kenne den Mann, der das Auto repariert. The relative clause ends the sentence in both languages."""
    while True:
        phrase, relative, verb = draw_described(dice, dice.pick(DESCRIBED))
        groups = scenes_for(phrase.noun, "accusative")
        if groups:
            scene = dice.pick(dice.pick(groups))
            english = scene.verb.english
            if not (scene.also or english.suffix or english.to_dative or scene.verb is verb):
                clause = draw_clause(dice, scene, negation=0, adverbials=0, accusative=phrase)
                return render(clause) + relative


OWN = tuple(fitting for group in ALL if (fitting := tuple(filter(can_be_own, group))))
WITH_OBJECT = tuple(
    group for group in ALL if group[0].dative or (group[0].accusative and group[0].accusative.nouns[0].human)
)
# (share, sentence type, punctuation mark)
TYPES = (
    (23, statement, "."),
    (4, object_first, "."),
    (9, own_statement, "."),
    (14, yes_no_question, "?"),
    (2, own_question, "?"),
    (10, word_question, "?"),
    (11, reported, "."),
    (5, reasoned, "."),
    (4, conditional, "."),
    (2, nevertheless, "."),
    (4, meanwhile, "."),
    (2, identification, "."),
    (5, described_subject, "."),
    (3, described_object, "."),
)


def draw_sentence(dice):
    """A sentence of a reasonable length."""
    while True:
        _, draw, mark = dice.pick_weighted([(entry[0], entry) for entry in TYPES])
        phrase = draw(dice) + pair(mark, mark)
        if all(SHORTEST <= len(side) <= LONGEST for side in (phrase.german, phrase.english)):
            return Sentence(text(phrase.german), text(phrase.english), tuple(phrase.alignment()))


def text(side):
    words = " ".join(token.text for token in side)
    return words[0].upper() + words[1:]
