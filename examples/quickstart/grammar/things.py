"""What people do something with: things, food and animals, sorted by what is done with them."""

from .vocabulary import kind

# Food and drink.
GROCERIES = kind("Brot Käse Fleisch Fisch", "frisch gut", "the bare bare /", described=0.6)
SHOPPING = kind("Apfel Birne Orange Tomate Kartoffel Kartoffel Ei Brötchen", "frisch groß klein", "/ the bare few few")
SNACKS = kind("Apfel Birne Orange Tomate Ei Brötchen", "frisch groß klein", "the a a / the bare few")
TREATS = kind("Apfel Birne Orange Tomate Ei Brötchen", "frisch groß klein", "a a / some")
HARVEST = kind("Apfel Birne Tomate Kartoffel Ei", "frisch gut", "/ the bare many many many")
BAKED_GOODS = kind("Brötchen Kuchen", "frisch lecker", "/ the bare many many")
SOUPS = kind("Suppe Kartoffelsuppe Tomatensuppe Fischsuppe", "heiß lecker gut", "the a bare /")
SALADS = kind("Salat Kartoffelsalat Tomatensalat", "lecker gut frisch", "a bare bare /")
CAKES = kind("Kuchen Apfelkuchen Schokoladenkuchen Geburtstagskuchen", "groß klein lecker", "the a a this /")
HOT_DRINKS = kind("Kaffee Tee Milch", "heiß kalt", "the bare bare bare /")
COLD_DRINKS = kind("Wasser Apfelsaft Orangensaft", "kalt", "the bare bare bare /")

# Reading, writing and learning.
READING = kind(
    "Buch Roman Geschichte Gedicht", "gut lang kurz interessant", "the a a this / the bare few", described=0.6
)
MAIL = kind("Brief", "lang kurz alt", "the a own / the few")
NEWS = kind("Zeitung", "alt neu", "the the a this own / the bare")
WRITING = kind("Buch Roman Geschichte Gedicht Brief", "lang kurz interessant", "the a a / bare few", described=0.7)
TALES = kind("Geschichte Gedicht Brief", "lang kurz schön alt", "the a a this / the few", described=0.7)
BOOKS = kind("Buch Roman", "neu gut interessant teuer", "the a a this / the few few", described=0.6)
LESSONS = kind("Aufgabe Regel", "neu schwer", "the this / the few", described=0.8)
SONGS = kind("Lied", "alt neu schön kurz", "the a a this / bare few")
MUSIC = kind("Musik", "gut schön", "bare /")
PICTURES = kind("Bild", "groß groß alt schön interessant", "the a a this / the few")

# House and garden.
FURNITURE = kind(
    "Tisch Küchentisch Küchentisch Stuhl Stuhl Lampe", "neu schön teuer klein", "the a a this / few few few"
)
SMALL_THINGS = kind("Buch Brief Zeitung Schlüssel Uhr Ball Bild", "neu alt klein", "the the a own own / the")
MACHINES = kind("Radio Computer Waschmaschine", "neu alt klein", "the own own /")
LAMPS = kind("Lampe", "neu alt klein rot", "the the this / the some")
OPENINGS = kind(
    "Tür Kellertür Garagentür Fenster Küchenfenster Schlafzimmerfenster",
    "groß klein alt",
    "the the this / the",
)
WINDOWS = kind("Fenster Küchenfenster Schlafzimmerfenster", "groß klein alt schmutzig", "the the this / the few")
ROOMS = kind("Zimmer Wohnung Küche Keller Garage", "groß klein alt", "the own own / the")
PLANTS = kind("Apfelbaum Kirschbaum Kirschbaum Blume Rose", "schön klein", "a a a / bare few many many")
BOUQUET = kind("Blume Rose", "schön frisch rot", "/ the bare bare few")
FRIDGE = kind("Kühlschrank", "", "the /")

# Clothes, presents and belongings.
CLOTHES = kind(
    "Jacke Winterjacke Mantel Wintermantel Kleid Sommerkleid Hemd Pullover",
    "neu schön teuer rot blau schwarz",
    "the a a this / the bare some some",
)
SHOES = kind("Schuhe Sportschuhe Winterschuhe", "neu schön teuer rot blau schwarz", "/ the bare this own")
DIRTY_SHOES = kind("Schuhe Sportschuhe Winterschuhe", "schmutzig alt", "/ the this own own")
OUTFIT = kind("Jacke Winterjacke Mantel Wintermantel Hemd Pullover", "neu alt schön rot blau schwarz", "the a a own /")
LAUNDRY = kind("Jacke Mantel Hemd Pullover Kleid", "schmutzig alt", "the the this / the the few")
PRESENTS = kind(
    "Fahrrad Uhr Ball Puppe Gitarre Hemd Radio Tasche",
    "neu schön teuer rot blau schwarz",
    "the a a a this /",
    described=0.7,
)
BELONGINGS = kind("Fahrrad Auto Uhr Buch Gitarre Tasche Koffer Hund Katze", "neu alt schön klein", "the the this / the")
POSSESSIONS = kind("Auto Auto Fahrrad Fahrrad Uhr", "neu teuer rot blau schwarz", "a /", described=0.9)
LOST_THINGS = kind(
    "Schlüssel Hausschlüssel Autoschlüssel Tasche Uhr Koffer Ball", "neu alt klein", "the own own / the some"
)
LIKED_THINGS = kind("Buch Roman Lied Bild Gedicht Haus Auto Kleid Fahrrad", "neu alt schön klein", "the the this / the")

# On the road, in the workshop and in town.
VEHICLES = kind("Auto Fahrrad", "neu teuer rot blau schwarz", "the a a a this / some", described=0.7)
BICYCLES = kind("Fahrrad", "neu teuer rot blau schwarz", "the a a a / some", described=0.7)
OWN_VEHICLES = kind("Auto Fahrrad", "neu alt teuer rot blau schwarz", "the own own own /")
VEHICLES_TO_WASH = kind("Auto Fahrrad", "schmutzig alt", "the the this / the")
TRANSPORT = kind("Zug Bus Straßenbahn", "", "the the this / the")
BROKEN_THINGS = kind(
    "Auto Fahrrad Radio Computer Lampe Stuhl Tisch Tür Waschmaschine Uhr",
    "kaputt kaputt alt",
    "the the this / the",
    described=0.7,
)
WORKSHOP_JOBS = kind("Auto Fahrrad Radio Uhr", "kaputt alt", "/ many")
SIGHTS = kind("Schloss Museum Kirche Turm", "alt groß schön", "the the this /")

# Animals.
PETS = kind("Hund Katze", "alt klein nett", "the the a own / the the")
OWN_ANIMALS = kind("Hund Katze Pferd", "alt klein groß schwarz", "a /", described=0.7)
FARM_ANIMALS = kind("Pferd Kuh", "alt groß klein schwarz", "the / the the many")
BIRDS = kind("Vogel", "groß klein schwarz rot blau", "the a a / few many many")
CATTLE = kind("Pferd Kuh", "groß klein schwarz", "the a a / few many many")

# What there is or is not.
TIME = kind("Zeit", "", "bare /")
SUN = kind("Sonne", "", "the /")
WEATHER = kind("Wetter", "", "the /")
TEST = kind("Prüfung", "schwer", "a /")
VISITORS = kind("Gast", "", "/ bare bare few")

# Things with a number.
PRICED = kind(
    "Buch Roman Lampe Tisch Stuhl Jacke Mantel Kleid Pullover Tasche Koffer Puppe",
    "neu schön",
    "the the this /",
)
THICK_BOOKS = kind("Buch Roman", "neu alt interessant", "the the this /")
VILLAGES = kind("Dorf", "klein alt schön", "the this my /")
