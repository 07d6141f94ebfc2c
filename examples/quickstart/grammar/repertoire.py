"""All scenes that the corpus plays."""

from . import people as who
from . import things as what
from .casts import Single
from .complements import Journey, Location, Measure, Preposition, Target, sayings
from .scenes import scene

ROOMS = "Küche Wohnzimmer Keller Garage"
CITIES = "Berlin Hamburg München Köln Wien Leipzig"
SHOPS = "Supermarkt Markt Wochenmarkt"
WORKPLACES = "Garten Büro Restaurant Hotel Fahrradwerkstatt Autowerkstatt Blumenladen Stadtbibliothek zu_Hause"
SIGHTS = "Park Stadtpark Stadtmuseum Café Restaurant Stadtbibliothek Wochenmarkt Blumenmarkt Fest Fahrradladen"
ERRANDS = "Arzt Bäckerei Supermarkt Blumenladen Fahrradladen Fahrradwerkstatt Autowerkstatt Schuhladen"
LONG_WAY = ("mit_dem/by Zug/train", "mit_dem/by Auto/car", "mit_dem/by Bus/bus")
SHORT_WAY = ("mit_dem/by Bus/bus", "mit_dem/by Fahrrad/bicycle", "mit_dem/by Auto/car")
GAMES = sayings("Fußball/football Tennis/tennis Schach/chess Klavier/the_piano")
LANGUAGES = sayings("Deutsch/German Englisch/English Spanisch/Spanish Französisch/French")
FOR_TRAIN = Preposition("auf/for", "acc", what.TRANSPORT)
FOR_PERSON = Preposition("auf/for", "acc", who.ANYBODY)
WITH_FAMILY = Preposition("bei/with", "dat", who.FAMILY)
WITH_PERSON = Preposition("mit/to", "dat", who.ANYBODY)
# What nobody does every day.
NOT_A_HABIT = "past future modal"
CHANGING = "present past future"


def fact(verb, subject, measure, when="", moods="present"):
    """A scene about a number, which nobody denies."""
    return scene(verb, subject, also=measure, when=when, moods=moods, negatable=False)


ALONE = (
    scene("schlafen", who.EVERYBODY, where="Hotel Garten zu_Hause", because="tired ill late"),
    scene("arbeiten", who.GROWN_UPS, where=WORKPLACES, when="day day season", although="tired ill late"),
    scene("tanzen", who.EVERYBODY, where="Fest Tanzschule", because="happy", although="tired", liking=True),
    scene(
        "schwimmen",
        who.EVERYBODY,
        where="im_See im_Fluss",
        when="day season",
        because="sunny",
        although="cold",
        liking=True,
    ),
    scene("spielen", who.YOUNGSTERS, where="Garten Park Stadtpark", because="sunny", although="cold", liking=True),
    scene("spielen", who.EVERYBODY, also=GAMES, because="free", although="tired", liking=True, negatable=False),
    scene("wohnen", who.GROWN_UPS, also=Location(CITIES + " Dorf Stadt"), when="", moods="present modal", liking=True),
    scene("wohnen", who.GROWN_UPS, also=WITH_FAMILY, when="", moods="present modal", liking=True),
    scene("bleiben", who.EVERYBODY, also=Location("zu_Hause"), because="ill rainy", although="sunny"),
    scene("fern|sehen", who.EVERYBODY, where="Wohnzimmer zu_Hause", because="rainy", although="late", liking=True),
    scene("ein|kaufen", who.GROWN_UPS, where=SHOPS + " Stadt Fischmarkt", because="guests empty"),
    scene("ein|schlafen", who.EVERYBODY, where="Wohnzimmer im_Zug", when="", moods="past future"),
    scene("auf|stehen", who.EVERYBODY, when="clock", because="work", although="tired", negatable=False),
    scene("zurück|kommen", who.EVERYBODY, when="once clock season", because="late guests"),
    scene("an|kommen", what.TRANSPORT, where="Bahnhof", when="clock", moods=CHANGING),
    scene("an|kommen", what.TRANSPORT, where=CITIES, when="clock", moods=CHANGING),
    scene("an|kommen", who.EVERYBODY, where=CITIES, when="day season", moods="past future"),
    scene("ab|fahren", what.TRANSPORT, when="clock", moods=CHANGING),
    scene("warten", who.EVERYBODY, also=FOR_TRAIN, where="Bahnhof Haltestelle Haltestelle", although="busy cold"),
    scene("warten", who.EVERYBODY, also=FOR_PERSON, where="Bahnhof Park Café", although="busy"),
    scene("sprechen", who.EVERYBODY, also=WITH_PERSON, where="Café Schule Büro"),
)
ON_THE_WAY = (
    scene("gehen", who.EVERYBODY, also=Target(SIGHTS + " zu_Hause"), because="free sunny", although="tired"),
    scene("gehen", who.YOUNGSTERS, also=Target("Schule Musikschule Tanzschule"), although="tired"),
    scene(
        "fahren",
        who.EVERYBODY,
        also=Journey(CITIES, LONG_WAY),
        when="day season season",
        because="free",
        although="ill",
    ),
    scene("fahren", who.GROWN_UPS, also=Journey(ERRANDS, SHORT_WAY), although="ill tired"),
    scene("laufen", who.YOUNGSTERS, also=Target("Garten Wald Haus Küche Keller"), because="cold"),
)
AT_TABLE = (
    scene("kochen", who.GROWN_UPS, what.SOUPS, where="Küche", because="guests hungry", although="busy"),
    scene("backen", who.EVERYBODY, what.CAKES, where="Küche", because="guests", although="busy", liking=True),
    scene("backen", who.BAKERS, what.BAKED_GOODS, where="Bäckerei"),
    scene("essen", who.EVERYBODY, what.SNACKS, where="Küche Garten Park", because="hungry", liking=True),
    scene("essen", who.EVERYBODY, what.SOUPS, where="Restaurant Küche zu_Hause", because="hungry", liking=True),
    scene("essen", who.EVERYBODY, what.SALADS, where="Restaurant Garten", because="hungry", liking=True),
    scene("machen", who.EVERYBODY, what.SALADS, where="Küche", because="guests hungry", although="tired busy"),
    scene("essen", who.EVERYBODY, what.GROCERIES, where="Küche zu_Hause", because="hungry", liking=True),
    scene("trinken", who.EVERYBODY, what.HOT_DRINKS, where="Café Küche Büro", because="cold tired", liking=True),
    scene("trinken", who.EVERYBODY, what.COLD_DRINKS, where="Garten Restaurant", because="thirsty", liking=True),
)
IN_TOWN = (
    scene("kaufen", who.EVERYBODY, what.GROCERIES, where=SHOPS, because="guests empty", although="tired"),
    scene("kaufen", who.EVERYBODY, what.SHOPPING, where=SHOPS, because="guests empty"),
    scene("kaufen", who.EVERYBODY, what.CLOTHES, where="Stadt", because="cold", moods=NOT_A_HABIT),
    scene("kaufen", who.EVERYBODY, what.SHOES, where="Schuhladen", because="cold", moods=NOT_A_HABIT),
    scene("kaufen", who.EVERYBODY, what.BOOKS, where="Buchhandlung"),
    scene("kaufen", who.GROWN_UPS, what.FURNITURE, where="Stadt", moods=NOT_A_HABIT),
    scene("kaufen", who.EVERYBODY, what.BOUQUET, where="Blumenladen Blumenmarkt", because="guests"),
    scene("kaufen", who.GROWN_UPS, what.VEHICLES, when="season", moods=NOT_A_HABIT),
    scene("kaufen", who.EVERYBODY, what.BICYCLES, where="Fahrradladen", moods=NOT_A_HABIT),
    scene("verkaufen", who.BAKERS, what.BAKED_GOODS, where="Bäckerei Wochenmarkt", although="ill"),
    scene("verkaufen", who.FARMERS, what.HARVEST, where="Markt Wochenmarkt", although="cold ill"),
    scene("verkaufen", who.SHOP_ASSISTANTS, what.CLOTHES),
    scene("verkaufen", who.GROWN_UPS, what.OWN_VEHICLES, when="season", moods=NOT_A_HABIT),
    scene("verkaufen", who.GROWN_UPS, what.FURNITURE, moods=NOT_A_HABIT),
    scene(
        "suchen", who.EVERYBODY, what.LOST_THINGS, where="Küche Wohnzimmer Garten", when="once", although="busy tired"
    ),
    scene("suchen", who.GROWN_UPS, what.OWN_VEHICLES, where="Stadt Bahnhof", when="once"),
    scene("finden", who.EVERYBODY, what.LOST_THINGS, where="Küche Park Bahnhof", when="once", moods="past"),
    scene("verlieren", who.EVERYBODY, what.LOST_THINGS, where="Park Stadt Bahnhof", when="once", moods="past"),
    scene("brauchen", who.EVERYBODY, what.SHOPPING, when="", moods="present", because="guests hungry"),
    scene("brauchen", who.EVERYBODY, what.GROCERIES, when="", moods="present", because="guests hungry"),
    scene("brauchen", who.EVERYBODY, what.SHOES, when="", moods="present", because="cold"),
    scene("brauchen", who.GROWN_UPS, what.FURNITURE, when="", moods="present"),
)
AT_HOME = (
    scene("an|ziehen", who.EVERYBODY, what.SHOES, when="day clock", although="tired"),
    scene("an|ziehen", who.KIDS, what.SHOES, because="cold"),
    scene("an|ziehen", who.KIDS, what.SHOES, although="tired"),
    scene("an|ziehen", Single(who.EVERYBODY), what.OUTFIT, because="cold", although="warm"),
    scene("auf|räumen", who.EVERYBODY, what.ROOMS, because="guests", although="tired busy"),
    scene("auf|machen", who.EVERYBODY, what.OPENINGS, because="warm", although="cold"),
    scene("zu|machen", who.EVERYBODY, what.OPENINGS, because="cold", although="warm"),
    scene("an|machen", who.EVERYBODY, what.LAMPS, where=ROOMS, because="dark"),
    scene("an|machen", who.EVERYBODY, what.MACHINES, where=ROOMS),
    scene("putzen", who.EVERYBODY, what.ROOMS, because="guests", although="tired busy"),
    scene("putzen", who.EVERYBODY, what.DIRTY_SHOES, because="guests", although="tired"),
    scene("putzen", who.EVERYBODY, what.WINDOWS, because="guests sunny", although="tired"),
    scene("waschen", who.EVERYBODY, what.LAUNDRY, because="guests", although="tired"),
    scene("waschen", who.EVERYBODY, what.VEHICLES_TO_WASH, where="Garage", because="sunny", although="cold"),
    scene(
        "reparieren",
        who.GROWN_UPS,
        what.BROKEN_THINGS,
        where="Garage Keller",
        when="once",
        because="free",
        although="tired",
    ),
    scene("reparieren", who.MECHANICS, what.WORKSHOP_JOBS, where="Fahrradwerkstatt Autowerkstatt", although="ill"),
    scene("pflanzen", who.GARDENERS, what.PLANTS, where="Garten Park", when="day season", although="cold"),
    scene("pflanzen", who.EVERYBODY, what.PLANTS, where="Garten", when="day season", because="sunny", although="cold"),
    scene("füttern", who.EVERYBODY, what.PETS, where="Garten Küche", although="tired busy"),
    scene("füttern", who.FARMERS, what.FARM_ANIMALS, although="ill cold"),
)
READING_AND_ART = (
    scene("lesen", who.EVERYBODY, what.NEWS, where="Küche Café im_Zug", because="free", liking=True),
    scene("lesen", who.EVERYBODY, what.MAIL, where="Küche Büro", when="once"),
    scene(
        "lesen",
        who.EVERYBODY,
        what.READING,
        where="Garten Bibliothek Bibliothek im_Zug",
        because="free rainy",
        liking=True,
    ),
    scene("schreiben", who.EVERYBODY, what.WRITING, where="Büro Küche Café", because="free", although="tired"),
    scene("singen", who.EVERYBODY, what.SONGS, where="Kirche Garten Musikschule", because="happy", liking=True),
    scene("hören", who.EVERYBODY, what.MUSIC, where="Küche Wohnzimmer Garten", because="happy", liking=True),
    scene(
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
    scene(
        "besuchen",
        who.EVERYBODY,
        who.ANYBODY,
        where=CITIES,
        when="day season",
        because="object:ill free",
        although="busy",
    ),
    scene("besuchen", who.EVERYBODY, what.SIGHTS, when="day season", because="free", although="busy tired"),
    scene("sehen", who.EVERYBODY, who.ANYBODY, where="Park Stadt Supermarkt Bahnhof", moods="present past"),
    scene("sehen", who.EVERYBODY, what.BIRDS, where="Garten Park Wald", moods="present past"),
    scene("sehen", who.EVERYBODY, what.CATTLE, where="Dorf", moods="present past"),
    scene(
        "treffen", who.EVERYBODY, who.ANYBODY, where="Park Café Stadt Bahnhof", when="day clock season", although="busy"
    ),
    scene("kennen", who.EVERYBODY, who.ANYBODY, when="", moods="present"),
    scene("an|rufen", who.EVERYBODY, who.ANYBODY, when="day clock", because="object:ill free", although="late busy"),
    scene("ab|holen", who.GROWN_UPS, who.ANYBODY, where="Bahnhof Schule", when="day clock", because="late"),
    scene("ein|laden", who.EVERYBODY, who.ANYBODY, also=Target("Fest"), because="object:nice", moods=NOT_A_HABIT),
    scene("ein|laden", who.EVERYBODY, who.GUESTS, also=Target("Fest"), moods=NOT_A_HABIT),
    scene("helfen", who.EVERYBODY, None, who.ANYBODY, where="Garten Küche", because="object:ill free", although="busy"),
    scene("zu|hören", who.EVERYBODY, None, who.ANYBODY, because="object:clever", although="tired"),
    scene("gehören", what.BELONGINGS, None, who.ANYBODY, when="", moods="present"),
    scene("gefallen", what.LIKED_THINGS, None, who.ANYBODY, when="", moods="present past", experiencer=True),
)
GIVING = (
    scene("geben", who.EVERYBODY, what.SMALL_THINGS, who.ANYBODY, moods=NOT_A_HABIT),
    scene("geben", who.EVERYBODY, what.TREATS, who.LITTLE_ONES, when="once", because="object:hungry"),
    scene("schenken", who.EVERYBODY, what.PRESENTS, who.LITTLE_ONES, because="object:ill", when="once"),
    scene("schenken", who.EVERYBODY, what.BOOKS, who.ANYBODY, moods=NOT_A_HABIT),
    scene("schenken", who.EVERYBODY, what.BOUQUET, who.ACQUAINTANCES, because="object:nice", when="once"),
    scene("zeigen", who.EVERYBODY, what.SIGHTS, who.ANYBODY, when="once"),
    scene("zeigen", who.EVERYBODY, what.PICTURES, who.ANYBODY, where="Museum Stadtmuseum", when="once"),
    scene("bringen", who.EVERYBODY, what.HOT_DRINKS, who.ANYBODY, because="object:tired cold"),
    scene("bringen", who.EVERYBODY, what.COLD_DRINKS, who.ANYBODY, because="object:thirsty warm"),
    scene("bringen", who.EVERYBODY, what.TREATS, who.ANYBODY, when="once", because="object:hungry object:ill"),
    scene("erklären", who.TEACHERS, what.LESSONS, who.LITTLE_ONES, where="Schule"),
    scene("erklären", who.EVERYBODY, what.LESSONS, who.LITTLE_ONES, because="free", although="busy"),
    scene("vor|lesen", who.GROWN_UPS, what.TALES, who.LITTLE_ONES, because="object:ill free", although="tired"),
)
FEELINGS = "müde/tired krank/ill glücklich/happy hungrig/hungry durstig/thirsty"
TRAITS = "nett/nice freundlich/friendly klug/clever"
STATES = (
    scene("sein", who.EVERYBODY, also=sayings(FEELINGS), when="once", moods="present past"),
    scene("sein", who.UNDESCRIBED, also=sayings(TRAITS), when="", moods="present"),
    scene("haben", who.EVERYBODY, what.TIME, moods="present past"),
    scene("haben", who.GROWN_UPS, what.POSSESSIONS, when="", moods="present past"),
    scene("haben", who.GROWN_UPS, what.OWN_ANIMALS, when="", moods="present past"),
    scene("regnen", who.NOBODY, where=CITIES + " Dorf", moods="past future"),
    scene("schneien", who.NOBODY, where=CITIES + " Dorf", moods="past future"),
    scene(
        "haben (be)",
        who.EVERYBODY,
        also=sayings("Hunger/hungry Durst/thirsty"),
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
REPORTED = {verb: scene(verb, who.EVERYBODY, moods="present past") for verb in ("glauben", "hoffen", "sagen", "wissen")}


def by_verb(scenes):
    """The scenes in groups: a verb is as likely as the next one, however many scenes it has."""
    groups = {}
    for each in scenes:
        groups.setdefault(id(each.verb), []).append(each)
    return tuple(tuple(group) for group in groups.values())


ALL = by_verb(EVERYDAY)
SEPARABLE = tuple(group for group in ALL if group[0].verb.particle)
NUMBER_GROUPS = tuple((each,) for each in NUMBERS)


def draw_scene(dice, numbers=0.45):
    """Any scene; ``numbers`` is the share of those that are about a number."""
    return dice.pick(dice.pick(NUMBER_GROUPS if dice.chance(numbers) else ALL))
