"""Numbers and times of day in words."""

from typing import NamedTuple

from .dice import Dice
from .phrases import Phrase, gloss, pair

GERMAN_ONES = "ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split()
GERMAN_STEMS = "ein zwei drei vier fünf sech sieb acht neun".split()
GERMAN_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
ENGLISH_ONES = (
    "one two three four five six seven eight nine ten eleven twelve "
    "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
).split()
ENGLISH_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()

MINUTES = (
    "um/at Viertel/a_quarter nach/past",
    "um/at Viertel/a_quarter vor/to",
    "um/at fünf/five nach/past",
    "um/at zehn/ten nach/past",
    "um/at zehn/ten vor/to",
    "um/at zwanzig/twenty nach/past",
    "um/at zwanzig/twenty vor/to",
)
"""What stands before the hour."""


class NumberWord(NamedTuple):
    german: str
    english: str


def number_word(number: int) -> NumberWord:
    """The words for 1 to 99 and for the hundreds up to 900."""
    if number >= 100:
        hundreds = number_word(number // 100)
        return NumberWord(hundreds.german.removeprefix("ein") + "hundert", hundreds.english + " hundred")
    return NumberWord(german_number(number), english_number(number))


def german_number(number: int) -> str:
    if number <= 12:
        return GERMAN_ONES[number - 1]
    if number < 20:
        return GERMAN_STEMS[number - 11] + "zehn"
    tens, ones = divmod(number, 10)
    return (GERMAN_ONES[ones - 1] + "und" if ones else "") + GERMAN_TENS[tens - 2]


def english_number(number: int) -> str:
    if number < 20:
        return ENGLISH_ONES[number - 1]
    tens, ones = divmod(number, 10)
    return ENGLISH_TENS[tens - 2] + ("-" + ENGLISH_ONES[ones - 1] if ones else "")


def german_hour(number: int) -> str:
    """The hour without "Uhr": "halb eins", but "ein Uhr"."""
    return "eins" if number == 1 else german_number(number)


def clock_time(dice: Dice) -> Phrase:
    """A time of day: um acht Uhr, um halb acht, um Viertel nach drei."""
    hour = dice.number(1, 12)
    manner = dice.pick(("full", "half", "minutes"))
    if manner == "full":
        return full_hour(hour)
    return half_past(hour) if manner == "half" else near_hour(dice.pick(MINUTES), hour)


def full_hour(hour: int) -> Phrase:
    return gloss("um/at") + pair(*number_word(hour)) + gloss("Uhr/o'clock")


def half_past(hour: int) -> Phrase:
    """Half past seven is "halb acht": half of the eighth hour is over."""
    return gloss("um/at halb/half_past") + pair(german_hour(hour % 12 + 1), english_number(hour))


def near_hour(minutes: str, hour: int) -> Phrase:
    """Some minutes before or after the hour. ``minutes`` is one of ``MINUTES``."""
    return gloss(minutes) + pair(german_hour(hour), english_number(hour))
