"""A clause: what is said, before any language puts it in order."""

from dataclasses import dataclass

from . import english_order, german_order
from .noun_phrases import NounPhrase, PronounPhrase, QuestionWord
from .phrases import Phrase, new_concept
from .scenes import Scene
from .verbs import Mood

STATEMENT, QUESTION, SUBORDINATE = "statement", "question", "subordinate"
CASES = {"subject": "nom", "dative": "dat", "accusative": "acc"}
NOTHING = Phrase()
Participant = NounPhrase | PronounPhrase | QuestionWord


@dataclass(frozen=True)
class Clause:
    """A scene with its roles filled.

    ``negation`` is "", "nicht" or "kein", which is then the determiner of the accusative. ``openers`` are the
    adverbials that can open a statement.
    """

    scene: Scene
    mood: Mood
    subject: Participant
    dative: Participant | None = None
    accusative: Participant | None = None
    complement: Phrase = NOTHING
    place: Phrase = NOTHING
    time: Phrase = NOTHING
    clock: Phrase = NOTHING
    frequency: Phrase = NOTHING
    reason: Phrase = NOTHING
    negation: str = ""
    openers: tuple = ()

    @property
    def parties(self):
        return [party for party in (self.subject, self.dative, self.accusative) if party]

    @property
    def agent(self):
        """The slot of the English subject: what pleases the child in German, the child likes in English."""
        return "dative" if self.scene.experiencer else "subject"

    @property
    def patient(self):
        return "subject" if self.scene.experiencer else "accusative"


class Wording:
    """A clause with every slot put into words, once for both languages, and the concepts of its verb.

    The verb has two concepts: the finite verb (hat, does) and the lexical verb (gekauft, buy); one word may
    express both (kauft, buys, bought).
    """

    def __init__(self, clause):
        self.clause = clause
        self.finite, self.lexical, self.denial, self.liking = (new_concept() for _ in range(4))
        self.slots = {
            slot: getattr(clause, slot) for slot in ("complement", "place", "time", "clock", "frequency", "reason")
        }
        for slot, case in CASES.items():
            filler = getattr(clause, slot)
            english_case = "nom" if slot == clause.agent else ""
            self.slots[slot] = filler.phrase(case, english_case, self.denial) if filler else NOTHING


def render(clause, order=STATEMENT, front="subject", asked=""):
    """The clause as a phrase.

    ``front`` is the slot that opens a German statement ("" for none). ``asked`` is the slot that holds a
    question word or a relative pronoun; it comes first in both languages.
    """
    wording = Wording(clause)
    front = asked or (front if order == STATEMENT else "")
    german = german_order.arrange(wording, front, verb_last=order == SUBORDINATE)
    inverted = order == QUESTION and asked != clause.agent
    return Phrase(german, english_order.arrange(wording, front, asked, inverted))
