"""Numbers and times of day in words."""

from .phrases import gloss, pair

GERMAN_ONES = [
    "ein",
    "zwei",
    "drei",
    "vier",
    "fünf",
    "sechs",
    "sieben",
    "acht",
    "neun",
    "zehn",
    "elf",
    "zwölf",
]
GERMAN_STEMS = ["ein", "zwei", "drei", "vier", "fünf", "sech", "sieb", "acht", "neun"]
GERMAN_TENS = ["zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"]
ENGLISH_ONES = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
ENGLISH_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]

# What is said before the hour.
MINUTES = (
    "um/at Viertel/a_quarter nach/past",
    "um/at Viertel/a_quarter vor/to",
    "um/at fünf/five nach/past",
    "um/at zehn/ten nach/past",
    "um/at zehn/ten vor/to",
    "um/at zwanzig/twenty nach/past",
    "um/at zwanzig/twenty vor/to",
)


def number_word(number):
    """The German and English words for 1 to 99 and for the full hundreds up to 900."""
    if number >= 100:
        german, english = number_word(number // 100)
        return (german.removeprefix("ein") + "hundert"), english + " hundred"
    return german_number(number), english_number(number)


def german_number(number):
    if number <= 12:
        return GERMAN_ONES[number - 1]
    if number < 20:
        return GERMAN_STEMS[number - 11] + "zehn"
    tens, ones = divmod(number, 10)
    return (GERMAN_ONES[ones - 1] + "und" if ones else "") + GERMAN_TENS[tens - 2]


def english_number(number):
    if number < 20:
        return ENGLISH_ONES[number - 1]
    tens, ones = divmod(number, 10)
    return ENGLISH_TENS[tens - 2] + ("-" + ENGLISH_ONES[ones - 1] if ones else "")


def german_hour(number):
    """Half past twelve is "halb eins", while one o'clock is "ein Uhr"."""
    return "eins" if number == 1 else german_number(number)


def clock_time(dice):
    """A time of day: um acht Uhr, um halb acht, um Viertel nach drei."""
    hour = dice.number(1, 12)
    manner = dice.pick(("full", "half", "minutes"))
    if manner == "full":
        return full_hour(hour)
    return half_past(hour) if manner == "half" else near_hour(dice.pick(MINUTES), hour)


def full_hour(hour):
    return gloss("um/at") + pair(*number_word(hour)) + gloss("Uhr/o'clock")


def half_past(hour):
    """Half past seven is "halb acht": half of the eighth hour is over."""
    return gloss("um/at halb/half_past") + pair(german_hour(hour % 12 + 1), english_number(hour))


def near_hour(minutes, hour):
    """Some minutes before or after the hour; ``minutes`` is one of ``MINUTES``."""
    return gloss(minutes) + pair(german_hour(hour), english_number(hour))
