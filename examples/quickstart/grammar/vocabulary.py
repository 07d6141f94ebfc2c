"""The nouns and adjectives of the corpus, by their German dictionary form.

A line of a table of nouns is "article singular | plural | English | English plural".

- The English plural is left out where it is regular.
- "-" is a plural that the corpus does not use. A mass noun has two columns only: it has no plural.
- "der Junge/Jungen" gives the accusative and dative singular after the slash, where they differ from the nominative.
"""

from .declension import GENDER_OF_ARTICLE, Adjective, Noun, compounds, english_plural
from .features import Gender

PEOPLE_TABLE = """
der Mann | Männer | man | men
die Frau | Frauen | woman | women
der Nachbar/Nachbarn | Nachbarn | neighbour
die Nachbarin | Nachbarinnen | neighbour
der Student/Studenten | Studenten | student
die Studentin | Studentinnen | student
der Lehrer | Lehrer | teacher
die Lehrerin | Lehrerinnen | teacher
der Arzt | Ärzte | doctor
die Ärztin | Ärztinnen | doctor
der Bäcker | Bäcker | baker
der Bauer/Bauern | Bauern | farmer
der Gärtner | Gärtner | gardener
der Mechaniker | Mechaniker | mechanic
die Verkäuferin | Verkäuferinnen | shop assistant
das Kind | Kinder | child | children
der Junge/Jungen | Jungen | boy
das Mädchen | Mädchen | girl
der Schüler | Schüler | pupil
die Schülerin | Schülerinnen | pupil
der Bruder | Brüder | brother
die Schwester | Schwestern | sister
der Sohn | Söhne | son
die Tochter | Töchter | daughter
der Vater | - | father
die Mutter | - | mother
der Großvater | - | grandfather
die Großmutter | - | grandmother
der Onkel | - | uncle
die Tante | - | aunt
der Freund | Freunde | friend
die Freundin | Freundinnen | friend
der Kollege/Kollegen | Kollegen | colleague
der Gast | Gäste | guest
"""

THINGS_TABLE = """
das Brot | bread
der Käse | cheese
das Fleisch | meat
der Fisch | fish
das Wasser | water
der Saft | juice
der Kaffee | coffee
der Tee | tea
die Milch | milk
die Suppe | soup
der Salat | salad
der Kuchen | Kuchen | cake
das Brötchen | Brötchen | roll
das Ei | Eier | egg
die Kartoffel | Kartoffeln | potato | potatoes
die Tomate | Tomaten | tomato | tomatoes
der Apfel | Äpfel | apple
die Birne | Birnen | pear
die Orange | Orangen | orange

das Buch | Bücher | book
der Roman | Romane | novel
die Geschichte | Geschichten | story
das Gedicht | Gedichte | poem
der Brief | Briefe | letter
die Zeitung | Zeitungen | newspaper
die Aufgabe | Aufgaben | exercise
die Regel | Regeln | rule
das Bild | Bilder | picture
das Lied | Lieder | song
die Musik | music
die Zeit | time
die Prüfung | - | exam
die Sonne | - | sun
das Wetter | - | weather
der Kühlschrank | - | fridge

der Tisch | - | table
der Stuhl | Stühle | chair
die Lampe | Lampen | lamp
das Radio | Radios | radio
der Computer | - | computer
die Waschmaschine | - | washing machine
die Tür | Türen | door
das Fenster | Fenster | window
das Zimmer | Zimmer | room
die Wohnung | Wohnungen | flat
die Küche | - | kitchen
der Keller | - | cellar
die Garage | - | garage
der Baum | Bäume | tree
die Blume | Blumen | flower
die Rose | Rosen | rose

das Auto | Autos | car
das Fahrrad | Fahrräder | bicycle
der Zug | Züge | train
der Bus | Busse | bus | buses
die Straßenbahn | Straßenbahnen | tram
das Haus | - | house
die Schule | - | school
die Brücke | - | bridge
der Turm | - | tower
die Kirche | - | church
das Schloss | - | castle
das Museum | - | museum

die Jacke | Jacken | jacket
der Mantel | Mäntel | coat
das Kleid | Kleider | dress
das Hemd | Hemden | shirt
der Pullover | Pullover | sweater
die Uhr | Uhren | watch
der Ball | - | ball
die Puppe | - | doll
die Gitarre | - | guitar
der Schlüssel | Schlüssel | key
die Tasche | Taschen | bag
der Koffer | - | suitcase

der Hund | Hunde | dog
die Katze | Katzen | cat
das Pferd | Pferde | horse
die Kuh | Kühe | cow
der Vogel | Vögel | bird
"""

PLACES_TABLE = """
der Garten | - | garden
das Wohnzimmer | - | living room
der Park | - | park
der Wald | - | forest
die Stadt | - | city
das Dorf | - | village
der Markt | - | market
der Supermarkt | - | supermarket
die Bäckerei | - | bakery
das Restaurant | - | restaurant
das Café | - | café
das Hotel | - | hotel
das Krankenhaus | - | hospital
das Büro | - | office
die Bibliothek | - | library
der Bahnhof | - | station
die Haltestelle | - | bus stop
der See | - | lake
der Fluss | - | river
das Fest | - | party
die Buchhandlung | - | bookshop
der Laden | - | shop
die Werkstatt | - | workshop
"""

ONLY_PLURAL = (("Eltern", "parents", True), ("Großeltern", "grandparents", True), ("Schuhe", "shoes", False))
"""(German, English, human)"""
NAMES = ((Gender.MASCULINE, "Paul Jonas Felix"), (Gender.FEMININE, "Anna Lena Maria"))

# Modifiers and head. A compound inflects like its head; "-" is again a plural that the corpus does not use.
COMPOUNDS = """
Musik/music + Lehrer
Kartoffel/potato Tomaten/tomato Fisch/fish + Suppe
Kartoffel/potato Tomaten/tomato + Salat
Apfel/apple Schokoladen/chocolate Geburtstags/birthday + Kuchen -
Apfel/apple Orangen/orange + Saft
Apfel/apple Kirsch/cherry + Baum
Küchen/kitchen + Tisch -
Küchen/kitchen Schlafzimmer/bedroom + Fenster
Keller/cellar Garagen/garage + Tür
Winter/winter + Jacke -
Winter/winter + Mantel -
Sommer/summer + Kleid -
Sport/sports Winter/winter + Schuhe
Haus/house Auto/car + Schlüssel
Stadt/city + Park
Stadt/city + Bibliothek
Stadt/city + Museum
Wochen/weekly Fisch/fish Blumen/flower + Markt
Blumen/flower Schuh/shoe Fahrrad/bicycle + Laden
Fahrrad/bicycle Auto/car + Werkstatt
Musik/music Tanz/dance + Schule
"""

ADJECTIVES_TABLE = """
alt old, neu new, jung young, groß big, klein small, schön beautiful, teuer expensive, kaputt broken,
schmutzig dirty, frisch fresh, gut good, kalt cold, heiß hot, lecker delicious, interessant interesting,
lang long, kurz short, schwer difficult, rot red, blau blue, schwarz black, nett nice,
freundlich friendly, klug clever
"""
ADJECTIVE_STEMS = {"teuer": "teur"}
"""The stems that differ from the dictionary form."""


def parse_noun(line: str, human: bool) -> Noun:
    german, *columns = (column.strip() for column in line.split("|"))
    article, forms = german.split()
    singular, _, weak = forms.partition("/")
    gender = GENDER_OF_ARTICLE[article]
    if len(columns) == 1:
        return Noun(singular, gender, "", columns[0], "")
    plural, english, *irregular = columns
    english_forms = (english, irregular[0] if irregular else english_plural(english))
    return Noun(singular, gender, plural.removeprefix("-"), *english_forms, weak, human)


def read_nouns() -> dict[str, Noun]:
    nouns = []
    for text, human in ((PEOPLE_TABLE, True), (THINGS_TABLE, False), (PLACES_TABLE, False)):
        nouns += [parse_noun(line, human) for line in text.split("\n") if line]
    nouns += [Noun("", Gender.PLURAL, german, english, english, human=human) for german, english, human in ONLY_PLURAL]
    nouns += [Noun(name, gender, "", name, "", human=True) for gender, names in NAMES for name in names.split()]
    table = {dictionary_form(noun): noun for noun in nouns}
    for line in COMPOUNDS.strip().split("\n"):
        modifiers, _, head = line.partition(" + ")
        made = compounds(modifiers, table[head.removesuffix(" -")], plural=not head.endswith("-"))
        table.update((dictionary_form(noun), noun) for noun in made)
    return table


def dictionary_form(noun: Noun) -> str:
    return noun.singular or noun.plural


def read_adjectives() -> dict[str, Adjective]:
    pairs = (entry.split() for entry in ADJECTIVES_TABLE.replace("\n", " ").split(","))
    return {german: Adjective(german, english, ADJECTIVE_STEMS.get(german, german)) for german, english in pairs}


NOUNS = read_nouns()
ADJECTIVES = read_adjectives()


def nouns(text: str) -> tuple[Noun, ...]:
    """``nouns("Brot Käse")``"""
    return tuple(NOUNS[word] for word in text.split())


def adjectives(text: str) -> tuple[Adjective, ...]:
    """``adjectives("alt klein/little")``: what follows a slash replaces the usual translation."""
    chosen = []
    for entry in text.split():
        german, _, english = entry.partition("/")
        usual = ADJECTIVES[german]
        chosen.append(Adjective(german, english or usual.english, usual.stem))
    return tuple(chosen)
