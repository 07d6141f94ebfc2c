"""Adverbials of time and frequency.

The present goes with what happens regularly, the past with a time that is over, the future and modal verbs with a time
to come. So each German tense has one English tense: the perfect is always the simple past.
"""

from enum import StrEnum
from typing import NamedTuple

from .dice import Dice
from .moods import Tense
from .numerals import number_word
from .phrases import Phrase, gloss, pair


class Scale(StrEnum):
    """How exactly a time is told."""

    CLOCK = "clock"
    DAY = "day"
    SEASON = "season"
    ONCE = "once"
    """For what is no habit: a day in the past or to come, but no time in the present."""


WEEKDAYS = (
    "Montag/Monday Dienstag/Tuesday Mittwoch/Wednesday Donnerstag/Thursday Freitag/Friday Samstag/Saturday "
    "Sonntag/Sunday"
).split()
MONTHS = (
    "Januar/January Februar/February März/March April/April Mai/May Juni/June Juli/July August/August "
    "September/September Oktober/October November/November Dezember/December"
).split()
SEASONS = "Frühling/spring Sommer/summer Herbst/autumn Winter/winter".split()
PARTS_OF_DAY = "Vormittag/morning Nachmittag/afternoon Abend/evening".split()

ON_DAYS = tuple("am/on " + day for day in WEEKDAYS)
EVERY_DAY = tuple("jeden/every " + day for day in [*WEEKDAYS, "Tag/day", "Morgen/morning", "Abend/evening"])
IN_MONTHS = tuple("im/in " + month for month in MONTHS)
IN_SEASONS = tuple("im/in " + season for season in SEASONS)
IN_PARTS = tuple("am/in_the " + part for part in PARTS_OF_DAY)
WEEKEND = "am/at_the Wochenende/weekend"
EVERY_SEASON = tuple("jeden/every " + season for season in SEASONS)
LAST = ("letzten/last Monat/month",) * 2 + tuple("letzten/last " + s for s in SEASONS)
NEXT = ("nächsten/next Monat/month",) * 2 + tuple("nächsten/next " + s for s in SEASONS)

AGO = "ago"
"""Stands for "vor drei Tagen/three days ago", whose word order differs between the languages."""
CHOICES = {
    (Scale.DAY, Tense.PRESENT): (EVERY_DAY, (*IN_PARTS, WEEKEND)),
    (Scale.DAY, Tense.PAST): (
        ("gestern/yesterday", "heute/today", "gestern/yesterday Abend/evening"),
        ON_DAYS,
        (AGO, WEEKEND),
    ),
    (Scale.DAY, Tense.COMING): (
        ("morgen/tomorrow", "heute/today"),
        ON_DAYS,
        ("nächste/next Woche/week", WEEKEND),
    ),
    (Scale.SEASON, Tense.PRESENT): (IN_SEASONS + EVERY_SEASON, IN_MONTHS),
    (Scale.SEASON, Tense.PAST): (IN_MONTHS, IN_MONTHS, LAST),
    (Scale.SEASON, Tense.COMING): (IN_MONTHS, IN_MONTHS, NEXT),
}
"""Groups of adverbials, each as likely as the next."""


class Frequency(NamedTuple):
    german: str
    english: str
    can_open: bool


FREQUENCIES = (
    Frequency("oft", "often", False),
    Frequency("manchmal", "sometimes", True),
    Frequency("meistens", "usually", True),
    Frequency("meistens", "usually", True),
    Frequency("selten", "rarely", False),
    Frequency("immer", "always", False),
    Frequency("nie", "never", False),
)
NEVER_NEGATED = ("jede", "vor")
PARTS_IN_ENGLISH = ("morning", "afternoon", "evening")


class Adverbial(NamedTuple):
    """An adverbial, and whether it can be the first phrase of a statement."""

    phrase: Phrase
    can_open: bool

    @property
    def can_be_negated(self) -> bool:
        """ "Not every day" is not the negation that "not on Monday" is."""
        return not self.phrase.german[0].text.startswith(NEVER_NEGATED)

    @property
    def is_whole_day(self) -> bool:
        """Whether a time of day can follow: "am Vormittag um drei Uhr" contradicts itself."""
        return self.phrase.english[-1].text not in PARTS_IN_ENGLISH


def draw_time(dice: Dice, scale: Scale, tense: Tense) -> Adverbial:
    """When it happens. The scale is day or season."""
    choices = dice.pick(CHOICES[scale, tense])
    choice = dice.deal("months", choices) if choices is IN_MONTHS else dice.pick(choices)
    if choice == AGO:
        return days_ago(dice.number(2, 6))
    return Adverbial(gloss(choice), can_open=not choice.startswith(("letzten", "nächsten")))


def days_ago(number: int) -> Adverbial:
    ago, count, days = pair("vor", "ago"), pair(*number_word(number)), pair("Tagen", "days")
    german = ago.german + count.german + days.german
    return Adverbial(Phrase(german, count.english + days.english + ago.english), can_open=False)


def draw_frequency(dice: Dice) -> Adverbial:
    """How often it happens."""
    frequency = dice.pick(FREQUENCIES)
    return Adverbial(pair(frequency.german, frequency.english), frequency.can_open)
