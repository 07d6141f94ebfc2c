"""All verb frames of the corpus, grouped by what they are about."""

from collections.abc import Callable

from . import people as who
from . import things as what
from .complements import Journey, Measure, expressions, location, prepositional_object, target
from .conjugation import Verb
from .dice import Dice
from .features import Case
from .frames import Frame, frame
from .moods import MoodKind
from .noun_classes import ParticipantClass, SingularOnly

ROOMS = "Küche Wohnzimmer Keller Garage"
CITIES = "Berlin Hamburg München Köln Wien Leipzig"
SHOPS = "Supermarkt Markt Wochenmarkt"
WORKPLACES = "Garten Büro Restaurant Hotel Fahrradwerkstatt Autowerkstatt Blumenladen Stadtbibliothek zu_Hause"
SIGHTS = "Park Stadtpark Stadtmuseum Café Restaurant Stadtbibliothek Wochenmarkt Blumenmarkt Fest Fahrradladen"
ERRANDS = "Arzt Bäckerei Supermarkt Blumenladen Fahrradladen Fahrradwerkstatt Autowerkstatt Schuhladen"
LONG_WAY = ("mit_dem/by Zug/train", "mit_dem/by Auto/car", "mit_dem/by Bus/bus")
SHORT_WAY = ("mit_dem/by Bus/bus", "mit_dem/by Fahrrad/bicycle", "mit_dem/by Auto/car")
GAMES = expressions("Fußball/football Tennis/tennis Schach/chess Klavier/the_piano")
LANGUAGES = expressions("Deutsch/German Englisch/English Spanisch/Spanish Französisch/French")
FOR_TRAIN = prepositional_object("auf/for", Case.ACCUSATIVE, what.TRANSPORT)
FOR_PERSON = prepositional_object("auf/for", Case.ACCUSATIVE, who.ANYBODY)
WITH_FAMILY = prepositional_object("bei/with", Case.DATIVE, who.FAMILY)
WITH_PERSON = prepositional_object("mit/to", Case.DATIVE, who.ANYBODY)
# What nobody does every day.
NOT_A_HABIT = "past future modal"
CHANGING = "present past future"


def fact(verb: str, subject: ParticipantClass, measure: Measure, when: str = "", moods: str = "present") -> Frame:
    """A frame about a number. Nobody negates it."""
    return frame(verb, subject, also=measure, when=when, moods=moods, negatable=False)


ALONE = (
    frame("schlafen", who.EVERYBODY, where="Hotel Garten zu_Hause", because="tired ill late"),
    frame("arbeiten", who.GROWN_UPS, where=WORKPLACES, when="day day season", although="tired ill late"),
    frame("tanzen", who.EVERYBODY, where="Fest Tanzschule", because="happy", although="tired", liking=True),
    frame(
        "schwimmen",
        who.EVERYBODY,
        where="im_See im_Fluss",
        when="day season",
        because="sunny",
        although="cold",
        liking=True,
    ),
    frame("spielen", who.YOUNGSTERS, where="Garten Park Stadtpark", because="sunny", although="cold", liking=True),
    frame("spielen", who.EVERYBODY, also=GAMES, because="free", although="tired", liking=True, negatable=False),
    frame("wohnen", who.GROWN_UPS, also=location(CITIES + " Dorf Stadt"), when="", moods="present modal", liking=True),
    frame("wohnen", who.GROWN_UPS, also=WITH_FAMILY, when="", moods="present modal", liking=True),
    frame("bleiben", who.EVERYBODY, also=location("zu_Hause"), because="ill rainy", although="sunny"),
    frame("fern|sehen", who.EVERYBODY, where="Wohnzimmer zu_Hause", because="rainy", although="late", liking=True),
    frame("ein|kaufen", who.GROWN_UPS, where=SHOPS + " Stadt Fischmarkt", because="guests empty"),
    frame("ein|schlafen", who.EVERYBODY, where="Wohnzimmer im_Zug", when="", moods="past future"),
    frame("auf|stehen", who.EVERYBODY, when="clock", because="work", although="tired", negatable=False),
    frame("zurück|kommen", who.EVERYBODY, when="once clock season", because="late guests"),
    frame("an|kommen", what.TRANSPORT, where="Bahnhof", when="clock", moods=CHANGING),
    frame("an|kommen", what.TRANSPORT, where=CITIES, when="clock", moods=CHANGING),
    frame("an|kommen", who.EVERYBODY, where=CITIES, when="day season", moods="past future"),
    frame("ab|fahren", what.TRANSPORT, when="clock", moods=CHANGING),
    frame("warten", who.EVERYBODY, also=FOR_TRAIN, where="Bahnhof Haltestelle Haltestelle", although="busy cold"),
    frame("warten", who.EVERYBODY, also=FOR_PERSON, where="Bahnhof Park Café", although="busy"),
    frame("sprechen", who.EVERYBODY, also=WITH_PERSON, where="Café Schule Büro"),
)
ON_THE_WAY = (
    frame("gehen", who.EVERYBODY, also=target(SIGHTS + " zu_Hause"), because="free sunny", although="tired"),
    frame("gehen", who.YOUNGSTERS, also=target("Schule Musikschule Tanzschule"), although="tired"),
    frame(
        "fahren",
        who.EVERYBODY,
        also=Journey(target(CITIES), LONG_WAY),
        when="day season season",
        because="free",
        although="ill",
    ),
    frame("fahren", who.GROWN_UPS, also=Journey(target(ERRANDS), SHORT_WAY), although="ill tired"),
    frame("laufen", who.YOUNGSTERS, also=target("Garten Wald Haus Küche Keller"), because="cold"),
)
AT_TABLE = (
    frame("kochen", who.GROWN_UPS, what.SOUPS, where="Küche", because="guests hungry", although="busy"),
    frame("backen", who.EVERYBODY, what.CAKES, where="Küche", because="guests", although="busy", liking=True),
    frame("backen", who.BAKERS, what.BAKED_GOODS, where="Bäckerei"),
    frame("essen", who.EVERYBODY, what.SNACKS, where="Küche Garten Park", because="hungry", liking=True),
    frame("essen", who.EVERYBODY, what.SOUPS, where="Restaurant Küche zu_Hause", because="hungry", liking=True),
    frame("essen", who.EVERYBODY, what.SALADS, where="Restaurant Garten", because="hungry", liking=True),
    frame("machen", who.EVERYBODY, what.SALADS, where="Küche", because="guests hungry", although="tired busy"),
    frame("essen", who.EVERYBODY, what.GROCERIES, where="Küche zu_Hause", because="hungry", liking=True),
    frame("trinken", who.EVERYBODY, what.HOT_DRINKS, where="Café Küche Büro", because="cold tired", liking=True),
    frame("trinken", who.EVERYBODY, what.COLD_DRINKS, where="Garten Restaurant", because="thirsty", liking=True),
)
IN_TOWN = (
    frame("kaufen", who.EVERYBODY, what.GROCERIES, where=SHOPS, because="guests empty", although="tired"),
    frame("kaufen", who.EVERYBODY, what.SHOPPING, where=SHOPS, because="guests empty"),
    frame("kaufen", who.EVERYBODY, what.CLOTHES, where="Stadt", because="cold", moods=NOT_A_HABIT),
    frame("kaufen", who.EVERYBODY, what.SHOES, where="Schuhladen", because="cold", moods=NOT_A_HABIT),
    frame("kaufen", who.EVERYBODY, what.BOOKS, where="Buchhandlung"),
    frame("kaufen", who.GROWN_UPS, what.FURNITURE, where="Stadt", moods=NOT_A_HABIT),
    frame("kaufen", who.EVERYBODY, what.BOUQUET, where="Blumenladen Blumenmarkt", because="guests"),
    frame("kaufen", who.GROWN_UPS, what.VEHICLES, when="season", moods=NOT_A_HABIT),
    frame("kaufen", who.EVERYBODY, what.BICYCLES, where="Fahrradladen", moods=NOT_A_HABIT),
    frame("verkaufen", who.BAKERS, what.BAKED_GOODS, where="Bäckerei Wochenmarkt", although="ill"),
    frame("verkaufen", who.FARMERS, what.HARVEST, where="Markt Wochenmarkt", although="cold ill"),
    frame("verkaufen", who.SHOP_ASSISTANTS, what.CLOTHES),
    frame("verkaufen", who.GROWN_UPS, what.OWN_VEHICLES, when="season", moods=NOT_A_HABIT),
    frame("verkaufen", who.GROWN_UPS, what.FURNITURE, moods=NOT_A_HABIT),
    frame(
        "suchen", who.EVERYBODY, what.LOST_THINGS, where="Küche Wohnzimmer Garten", when="once", although="busy tired"
    ),
    frame("suchen", who.GROWN_UPS, what.OWN_VEHICLES, where="Stadt Bahnhof", when="once"),
    frame("finden", who.EVERYBODY, what.LOST_THINGS, where="Küche Park Bahnhof", when="once", moods="past"),
    frame("verlieren", who.EVERYBODY, what.LOST_THINGS, where="Park Stadt Bahnhof", when="once", moods="past"),
    frame("brauchen", who.EVERYBODY, what.SHOPPING, when="", moods="present", because="guests hungry"),
    frame("brauchen", who.EVERYBODY, what.GROCERIES, when="", moods="present", because="guests hungry"),
    frame("brauchen", who.EVERYBODY, what.SHOES, when="", moods="present", because="cold"),
    frame("brauchen", who.GROWN_UPS, what.FURNITURE, when="", moods="present"),
)
AT_HOME = (
    frame("an|ziehen", who.EVERYBODY, what.SHOES, when="day clock", although="tired"),
    frame("an|ziehen", who.KIDS, what.SHOES, because="cold"),
    frame("an|ziehen", who.KIDS, what.SHOES, although="tired"),
    frame("an|ziehen", SingularOnly(who.EVERYBODY), what.OUTFIT, because="cold", although="warm"),
    frame("auf|räumen", who.EVERYBODY, what.ROOMS, because="guests", although="tired busy"),
    frame("auf|machen", who.EVERYBODY, what.OPENINGS, because="warm", although="cold"),
    frame("zu|machen", who.EVERYBODY, what.OPENINGS, because="cold", although="warm"),
    frame("an|machen", who.EVERYBODY, what.LAMPS, where=ROOMS, because="dark"),
    frame("an|machen", who.EVERYBODY, what.MACHINES, where=ROOMS),
    frame("putzen", who.EVERYBODY, what.ROOMS, because="guests", although="tired busy"),
    frame("putzen", who.EVERYBODY, what.DIRTY_SHOES, because="guests", although="tired"),
    frame("putzen", who.EVERYBODY, what.WINDOWS, because="guests sunny", although="tired"),
    frame("waschen", who.EVERYBODY, what.LAUNDRY, because="guests", although="tired"),
    frame("waschen", who.EVERYBODY, what.VEHICLES_TO_WASH, where="Garage", because="sunny", although="cold"),
    frame(
        "reparieren",
        who.GROWN_UPS,
        what.BROKEN_THINGS,
        where="Garage Keller",
        when="once",
        because="free",
        although="tired",
    ),
    frame("reparieren", who.MECHANICS, what.WORKSHOP_JOBS, where="Fahrradwerkstatt Autowerkstatt", although="ill"),
    frame("pflanzen", who.GARDENERS, what.PLANTS, where="Garten Park", when="day season", although="cold"),
    frame("pflanzen", who.EVERYBODY, what.PLANTS, where="Garten", when="day season", because="sunny", although="cold"),
    frame("füttern", who.EVERYBODY, what.PETS, where="Garten Küche", although="tired busy"),
    frame("füttern", who.FARMERS, what.FARM_ANIMALS, although="ill cold"),
)
READING_AND_ART = (
    frame("lesen", who.EVERYBODY, what.NEWS, where="Küche Café im_Zug", because="free", liking=True),
    frame("lesen", who.EVERYBODY, what.MAIL, where="Küche Büro", when="once"),
    frame(
        "lesen",
        who.EVERYBODY,
        what.READING,
        where="Garten Bibliothek Bibliothek im_Zug",
        because="free rainy",
        liking=True,
    ),
    frame("schreiben", who.EVERYBODY, what.WRITING, where="Büro Küche Café", because="free", although="tired"),
    frame("singen", who.EVERYBODY, what.SONGS, where="Kirche Garten Musikschule", because="happy", liking=True),
    frame("hören", who.EVERYBODY, what.MUSIC, where="Küche Wohnzimmer Garten", because="happy", liking=True),
    frame(
        "lernen",
        who.EVERYBODY,
        also=LANGUAGES,
        where="Schule Stadtbibliothek zu_Hause",
        when="day season",
        because="test",
        although="tired",
    ),
)
TOGETHER = (
    frame(
        "besuchen",
        who.EVERYBODY,
        who.ANYBODY,
        where=CITIES,
        when="day season",
        because="object:ill free",
        although="busy",
    ),
    frame("besuchen", who.EVERYBODY, what.SIGHTS, when="day season", because="free", although="busy tired"),
    frame("sehen", who.EVERYBODY, who.ANYBODY, where="Park Stadt Supermarkt Bahnhof", moods="present past"),
    frame("sehen", who.EVERYBODY, what.BIRDS, where="Garten Park Wald", moods="present past"),
    frame("sehen", who.EVERYBODY, what.CATTLE, where="Dorf", moods="present past"),
    frame(
        "treffen", who.EVERYBODY, who.ANYBODY, where="Park Café Stadt Bahnhof", when="day clock season", although="busy"
    ),
    frame("kennen", who.EVERYBODY, who.ANYBODY, when="", moods="present"),
    frame("an|rufen", who.EVERYBODY, who.ANYBODY, when="day clock", because="object:ill free", although="late busy"),
    frame("ab|holen", who.GROWN_UPS, who.ANYBODY, where="Bahnhof Schule", when="day clock", because="late"),
    frame("ein|laden", who.EVERYBODY, who.ANYBODY, also=target("Fest"), because="object:nice", moods=NOT_A_HABIT),
    frame("ein|laden", who.EVERYBODY, who.GUESTS, also=target("Fest"), moods=NOT_A_HABIT),
    frame("helfen", who.EVERYBODY, None, who.ANYBODY, where="Garten Küche", because="object:ill free", although="busy"),
    frame("zu|hören", who.EVERYBODY, None, who.ANYBODY, because="object:clever", although="tired"),
    frame("gehören", what.BELONGINGS, None, who.ANYBODY, when="", moods="present"),
    frame("gefallen", what.LIKED_THINGS, None, who.ANYBODY, when="", moods="present past", experiencer=True),
)
GIVING = (
    frame("geben", who.EVERYBODY, what.SMALL_THINGS, who.ANYBODY, moods=NOT_A_HABIT),
    frame("geben", who.EVERYBODY, what.TREATS, who.LITTLE_ONES, when="once", because="object:hungry"),
    frame("schenken", who.EVERYBODY, what.PRESENTS, who.LITTLE_ONES, because="object:ill", when="once"),
    frame("schenken", who.EVERYBODY, what.BOOKS, who.ANYBODY, moods=NOT_A_HABIT),
    frame("schenken", who.EVERYBODY, what.BOUQUET, who.ACQUAINTANCES, because="object:nice", when="once"),
    frame("zeigen", who.EVERYBODY, what.SIGHTS, who.ANYBODY, when="once"),
    frame("zeigen", who.EVERYBODY, what.PICTURES, who.ANYBODY, where="Museum Stadtmuseum", when="once"),
    frame("bringen", who.EVERYBODY, what.HOT_DRINKS, who.ANYBODY, because="object:tired cold"),
    frame("bringen", who.EVERYBODY, what.COLD_DRINKS, who.ANYBODY, because="object:thirsty warm"),
    frame("bringen", who.EVERYBODY, what.TREATS, who.ANYBODY, when="once", because="object:hungry object:ill"),
    frame("erklären", who.TEACHERS, what.LESSONS, who.LITTLE_ONES, where="Schule"),
    frame("erklären", who.EVERYBODY, what.LESSONS, who.LITTLE_ONES, because="free", although="busy"),
    frame("vor|lesen", who.GROWN_UPS, what.TALES, who.LITTLE_ONES, because="object:ill free", although="tired"),
)
FEELINGS = "müde/tired krank/ill glücklich/happy hungrig/hungry durstig/thirsty"
TRAITS = "nett/nice freundlich/friendly klug/clever"
STATES = (
    frame("sein", who.EVERYBODY, also=expressions(FEELINGS), when="once", moods="present past"),
    frame("sein", who.UNDESCRIBED, also=expressions(TRAITS), when="", moods="present"),
    frame("haben", who.EVERYBODY, what.TIME, moods="present past"),
    frame("haben", who.GROWN_UPS, what.POSSESSIONS, when="", moods="present past"),
    frame("haben", who.GROWN_UPS, what.OWN_ANIMALS, when="", moods="present past"),
    frame("regnen", who.NOBODY, where=CITIES + " Dorf", moods="past future"),
    frame("schneien", who.NOBODY, where=CITIES + " Dorf", moods="past future"),
    frame(
        "haben (be)",
        who.EVERYBODY,
        also=expressions("Hunger/hungry Durst/thirsty"),
        when="once",
        moods="present past",
        negatable=False,
    ),
)
YEARS_OLD = "Jahre/years alt/old"
LATE = Measure(2, 59, "Minuten/minutes Verspätung/late")
NUMBERS = (
    fact("sein", who.OLD_PEOPLE, Measure(60, 99, YEARS_OLD)),
    fact("sein", who.MIDDLE_AGED, Measure(30, 64, YEARS_OLD)),
    fact("sein", who.YOUNG_PEOPLE, Measure(13, 40, YEARS_OLD)),
    fact("sein", who.SMALL_CHILDREN, Measure(2, 13, YEARS_OLD)),
    fact("kosten", what.PRICED, Measure(13, 99, "Euro/euros"), moods="present past"),
    fact("haben", what.THICK_BOOKS, Measure(100, 900, "Seiten/pages", step=100)),
    fact("haben", what.VILLAGES, Measure(100, 900, "Einwohner/inhabitants", step=100)),
    fact("haben (be)", what.TRANSPORT, LATE, moods="present past"),
    fact("fahren (km)", who.GROWN_UPS, Measure(20, 99, "Kilometer/kilometres"), "day", NOT_A_HABIT),
    fact("laufen", who.EVERYBODY, Measure(2, 40, "Kilometer/kilometres"), "day", NOT_A_HABIT),
)
EVERYDAY = ALONE + ON_THE_WAY + AT_TABLE + IN_TOWN + AT_HOME + READING_AND_ART + TOGETHER + GIVING + STATES
REPORTED = {verb: frame(verb, who.EVERYBODY, moods="present past") for verb in ("glauben", "hoffen", "sagen", "wissen")}


Frames = tuple[Frame, ...]


def by_verb(frames: Frames) -> tuple[Frames, ...]:
    """The frames of each verb. Picking a group first makes all verbs equally likely, however many frames they have."""
    groups: dict[Verb, list[Frame]] = {}
    for each in frames:
        groups.setdefault(each.verb, []).append(each)
    return tuple(tuple(group) for group in groups.values())


ALL = by_verb(EVERYDAY)
NUMBER_GROUPS = tuple((each,) for each in NUMBERS)


def select(groups: tuple[Frames, ...], wanted: Callable[[Frame], bool]) -> tuple[Frames, ...]:
    """The frames that are wanted, in the same groups. A group without any is left out."""
    selected = (tuple(filter(wanted, group)) for group in groups)
    return tuple(group for group in selected if group)


def of_speakers(kind: MoodKind) -> tuple[Frames, ...]:
    """The frames in which "ich" can be the subject of a verb in such a mood."""
    return select(ALL, lambda each: kind in each.mood_kinds and who.SPEAKERS in each.subject.classes)


SEPARABLE = select(ALL, lambda each: bool(each.verb.particle))


def draw_frame(dice: Dice, numbers: float = 0.45) -> Frame:
    """Any frame. ``numbers`` is the share of frames about a number."""
    return dice.pick(dice.pick(NUMBER_GROUPS if dice.chance(numbers) else ALL))
