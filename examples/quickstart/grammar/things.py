"""What somebody does something with: things, food and animals, grouped by what is done with them."""

from .noun_classes import noun_class

# Food and drink.
GROCERIES = noun_class("Brot Käse Fleisch Fisch", "frisch gut", "the bare bare /", described=0.6)
SHOPPING = noun_class(
    "Apfel Birne Orange Tomate Kartoffel Kartoffel Ei Brötchen", "frisch groß klein", "/ the bare few few"
)
SNACKS = noun_class("Apfel Birne Orange Tomate Ei Brötchen", "frisch groß klein", "the a a / the bare few")
TREATS = noun_class("Apfel Birne Orange Tomate Ei Brötchen", "frisch groß klein", "a a / some")
HARVEST = noun_class("Apfel Birne Tomate Kartoffel Ei", "frisch gut", "/ the bare many many many")
BAKED_GOODS = noun_class("Brötchen Kuchen", "frisch lecker", "/ the bare many many")
SOUPS = noun_class("Suppe Kartoffelsuppe Tomatensuppe Fischsuppe", "heiß lecker gut", "the a bare /")
SALADS = noun_class("Salat Kartoffelsalat Tomatensalat", "lecker gut frisch", "a bare bare /")
CAKES = noun_class("Kuchen Apfelkuchen Schokoladenkuchen Geburtstagskuchen", "groß klein lecker", "the a a this /")
HOT_DRINKS = noun_class("Kaffee Tee Milch", "heiß kalt", "the bare bare bare /")
COLD_DRINKS = noun_class("Wasser Apfelsaft Orangensaft", "kalt", "the bare bare bare /")

# Reading, writing and learning.
READING = noun_class(
    "Buch Roman Geschichte Gedicht", "gut lang kurz interessant", "the a a this / the bare few", described=0.6
)
MAIL = noun_class("Brief", "lang kurz alt", "the a own / the few")
NEWS = noun_class("Zeitung", "alt neu", "the the a this own / the bare")
WRITING = noun_class(
    "Buch Roman Geschichte Gedicht Brief", "lang kurz interessant", "the a a / bare few", described=0.7
)
TALES = noun_class("Geschichte Gedicht Brief", "lang kurz schön alt", "the a a this / the few", described=0.7)
BOOKS = noun_class("Buch Roman", "neu gut interessant teuer", "the a a this / the few few", described=0.6)
LESSONS = noun_class("Aufgabe Regel", "neu schwer", "the this / the few", described=0.8)
SONGS = noun_class("Lied", "alt neu schön kurz", "the a a this / bare few")
MUSIC = noun_class("Musik", "gut schön", "bare /")
PICTURES = noun_class("Bild", "groß groß alt schön interessant", "the a a this / the few")

# House and garden.
FURNITURE = noun_class(
    "Tisch Küchentisch Küchentisch Stuhl Stuhl Lampe", "neu schön teuer klein", "the a a this / few few few"
)
SMALL_THINGS = noun_class("Buch Brief Zeitung Schlüssel Uhr Ball Bild", "neu alt klein", "the the a own own / the")
MACHINES = noun_class("Radio Computer Waschmaschine", "neu alt klein", "the own own /")
LAMPS = noun_class("Lampe", "neu alt klein rot", "the the this / the some")
OPENINGS = noun_class(
    "Tür Kellertür Garagentür Fenster Küchenfenster Schlafzimmerfenster",
    "groß klein alt",
    "the the this / the",
)
WINDOWS = noun_class("Fenster Küchenfenster Schlafzimmerfenster", "groß klein alt schmutzig", "the the this / the few")
ROOMS = noun_class("Zimmer Wohnung Küche Keller Garage", "groß klein alt", "the own own / the")
PLANTS = noun_class("Apfelbaum Kirschbaum Kirschbaum Blume Rose", "schön klein", "a a a / bare few many many")
BOUQUET = noun_class("Blume Rose", "schön frisch rot", "/ the bare bare few")
FRIDGE = noun_class("Kühlschrank", "", "the /")

# Clothes, presents and belongings.
CLOTHES = noun_class(
    "Jacke Winterjacke Mantel Wintermantel Kleid Sommerkleid Hemd Pullover",
    "neu schön teuer rot blau schwarz",
    "the a a this / the bare some some",
)
SHOES = noun_class("Schuhe Sportschuhe Winterschuhe", "neu schön teuer rot blau schwarz", "/ the bare this own")
DIRTY_SHOES = noun_class("Schuhe Sportschuhe Winterschuhe", "schmutzig alt", "/ the this own own")
OUTFIT = noun_class(
    "Jacke Winterjacke Mantel Wintermantel Hemd Pullover", "neu alt schön rot blau schwarz", "the a a own /"
)
LAUNDRY = noun_class("Jacke Mantel Hemd Pullover Kleid", "schmutzig alt", "the the this / the the few")
PRESENTS = noun_class(
    "Fahrrad Uhr Ball Puppe Gitarre Hemd Radio Tasche",
    "neu schön teuer rot blau schwarz",
    "the a a a this /",
    described=0.7,
)
BELONGINGS = noun_class(
    "Fahrrad Auto Uhr Buch Gitarre Tasche Koffer Hund Katze", "neu alt schön klein", "the the this / the"
)
POSSESSIONS = noun_class("Auto Auto Fahrrad Fahrrad Uhr", "neu teuer rot blau schwarz", "a /", described=0.9)
LOST_THINGS = noun_class(
    "Schlüssel Hausschlüssel Autoschlüssel Tasche Uhr Koffer Ball", "neu alt klein", "the own own / the some"
)
LIKED_THINGS = noun_class(
    "Buch Roman Lied Bild Gedicht Haus Auto Kleid Fahrrad", "neu alt schön klein", "the the this / the"
)

# On the road, in the workshop and in town.
VEHICLES = noun_class("Auto Fahrrad", "neu teuer rot blau schwarz", "the a a a this / some", described=0.7)
BICYCLES = noun_class("Fahrrad", "neu teuer rot blau schwarz", "the a a a / some", described=0.7)
OWN_VEHICLES = noun_class("Auto Fahrrad", "neu alt teuer rot blau schwarz", "the own own own /")
VEHICLES_TO_WASH = noun_class("Auto Fahrrad", "schmutzig alt", "the the this / the")
TRANSPORT = noun_class("Zug Bus Straßenbahn", "", "the the this / the")
BROKEN_THINGS = noun_class(
    "Auto Fahrrad Radio Computer Lampe Stuhl Tisch Tür Waschmaschine Uhr",
    "kaputt kaputt alt",
    "the the this / the",
    described=0.7,
)
WORKSHOP_JOBS = noun_class("Auto Fahrrad Radio Uhr", "kaputt alt", "/ many")
SIGHTS = noun_class("Schloss Museum Kirche Turm", "alt groß schön", "the the this /")

# Animals.
PETS = noun_class("Hund Katze", "alt klein nett", "the the a own / the the")
OWN_ANIMALS = noun_class("Hund Katze Pferd", "alt klein groß schwarz", "a /", described=0.7)
FARM_ANIMALS = noun_class("Pferd Kuh", "alt groß klein schwarz", "the / the the many")
BIRDS = noun_class("Vogel", "groß klein schwarz rot blau", "the a a / few many many")
CATTLE = noun_class("Pferd Kuh", "groß klein schwarz", "the a a / few many many")

# What there is or is not.
TIME = noun_class("Zeit", "", "bare /")
SUN = noun_class("Sonne", "", "the /")
WEATHER = noun_class("Wetter", "", "the /")
TEST = noun_class("Prüfung", "schwer", "a /")
VISITORS = noun_class("Gast", "", "/ bare bare few")

# Things with a number.
PRICED = noun_class(
    "Buch Roman Lampe Tisch Stuhl Jacke Mantel Kleid Pullover Tasche Koffer Puppe",
    "neu schön",
    "the the this /",
)
THICK_BOOKS = noun_class("Buch Roman", "neu alt interessant", "the the this /")
VILLAGES = noun_class("Dorf", "klein alt schön", "the this my /")
