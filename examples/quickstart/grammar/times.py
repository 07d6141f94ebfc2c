"""Adverbials of time, sorted by the tense that they go with.

The present tense goes with what happens as a rule, the perfect with a time that is over, modal verbs and the
future with a time to come. So one German tense is always one English tense.
"""

from dataclasses import dataclass

from .numerals import number_word
from .phrases import Phrase, gloss, pair

WEEKDAYS = [
    "Montag/Monday",
    "Dienstag/Tuesday",
    "Mittwoch/Wednesday",
    "Donnerstag/Thursday",
    "Freitag/Friday",
    "Samstag/Saturday",
    "Sonntag/Sunday",
]
MONTHS = [
    "Januar/January",
    "Februar/February",
    "März/March",
    "April/April",
    "Mai/May",
    "Juni/June",
    "Juli/July",
    "August/August",
    "September/September",
    "Oktober/October",
    "November/November",
    "Dezember/December",
]
SEASONS = ["Frühling/spring", "Sommer/summer", "Herbst/autumn", "Winter/winter"]
PARTS_OF_DAY = ["Vormittag/morning", "Nachmittag/afternoon", "Abend/evening"]

ON_DAYS = tuple("am/on " + day for day in WEEKDAYS)
EVERY_DAY = tuple("jeden/every " + day for day in [*WEEKDAYS, "Tag/day", "Morgen/morning", "Abend/evening"])
IN_MONTHS = tuple("im/in " + month for month in MONTHS)
IN_SEASONS = tuple("im/in " + season for season in SEASONS)
IN_PARTS = tuple("am/in_the " + part for part in PARTS_OF_DAY)
WEEKEND = "am/at_the Wochenende/weekend"
EVERY_SEASON = tuple("jeden/every " + season for season in SEASONS)
LAST = ("letzten/last Monat/month",) * 2 + tuple("letzten/last " + s for s in SEASONS)
NEXT = ("nächsten/next Monat/month",) * 2 + tuple("nächsten/next " + s for s in SEASONS)

# (scale, tense) -> groups of adverbials, each as likely as the next.
CHOICES = {
    ("day", "present"): (EVERY_DAY, IN_PARTS + (WEEKEND,)),
    ("day", "past"): (
        ("gestern/yesterday", "heute/today", "gestern/yesterday Abend/evening"),
        ON_DAYS,
        ("ago", WEEKEND),
    ),
    ("day", "coming"): (("morgen/tomorrow", "heute/today"), ON_DAYS, ("nächste/next Woche/week", WEEKEND)),
    ("season", "present"): (IN_SEASONS + EVERY_SEASON, IN_MONTHS),
    ("season", "past"): (IN_MONTHS, IN_MONTHS, LAST),
    ("season", "coming"): (IN_MONTHS, IN_MONTHS, NEXT),
}

# German word, English word, whether it can open the sentence.
FREQUENCIES = (
    ("oft", "often", False),
    ("manchmal", "sometimes", True),
    ("meistens", "usually", True),
    ("meistens", "usually", True),
    ("selten", "rarely", False),
    ("immer", "always", False),
    ("nie", "never", False),
)
NEVER_NEGATED = ("jede", "vor")


# Times that would quarrel with the clock: not "am Vormittag um drei Uhr".
PART_NAMES = ("morning", "afternoon", "evening")


@dataclass(frozen=True)
class Adverbial:
    phrase: Phrase
    can_open: bool = True

    @property
    def negatable(self):
        """ "Not every day" would be another matter than "not on Monday"."""
        return not self.phrase.german[0].text.startswith(NEVER_NEGATED)

    @property
    def is_whole_day(self):
        return self.phrase.english[-1].text not in PART_NAMES


def time_adverbial(dice, scale, tense):
    """When it happens: ``scale`` is day or season, ``tense`` is present, past or coming."""
    choices = dice.pick(CHOICES[scale, tense])
    choice = dice.deal("months", choices) if choices is IN_MONTHS else dice.pick(choices)
    if choice == "ago":
        return days_ago(dice.number(2, 6))
    return Adverbial(gloss(choice), can_open=not choice.startswith(("letzten", "nächsten")))


def days_ago(number):
    ago, count, days = pair("vor", "ago"), pair(*number_word(number)), pair("Tagen", "days")
    english = count.english + days.english + ago.english
    return Adverbial(Phrase((ago + count + days).german, english), can_open=False)


def frequency_adverbial(dice):
    german, english, can_open = dice.pick(FREQUENCIES)
    return Adverbial(pair(german, english), can_open)
