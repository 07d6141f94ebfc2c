"""Who does something, and to whom: people, grouped by what is sensible to say of them."""

from .declension import HE, IT, SHE, WE, I
from .noun_classes import Mixture, PronounClass, noun_class

NAMES = noun_class("Paul Jonas Felix Anna Lena Maria", "", "name /")
ADULT_NOUNS = "Mann Frau Nachbar Nachbarin Student Studentin"
JOBS = "Lehrer Lehrerin Arzt Ärztin Bäcker Bauer Gärtner Mechaniker Verkäuferin"
ADULTS = noun_class(ADULT_NOUNS, "alt alt jung nett freundlich", "the the a a a this / the this")
PROFESSIONALS = noun_class(JOBS + " Musiklehrer", "alt alt jung nett freundlich", "the the a a a this / the the this")
# The same people as objects. They are more often plural, so that the dative plural (den Männern) is frequent enough.
ADULTS_SERVED = noun_class(ADULT_NOUNS, "alt jung nett freundlich", "the a this / the the this")
PROFESSIONALS_SERVED = noun_class(JOBS, "alt jung nett freundlich", "the a this / the the this")
KIDS = noun_class("Kind Junge Mädchen Schüler Schülerin", "klein/little nett klug", "the the a a this / the the this")
SIBLINGS = noun_class("Bruder Schwester Sohn Tochter", "klein/little", "my my / my")
ELDERS = noun_class("Vater Mutter Großvater Großmutter Onkel Tante Eltern Großeltern", "", "my / my")
FRIENDS = noun_class("Freund Freundin Kollege", "alt jung nett", "my / my")
SPEAKERS = PronounClass((I, I, I, HE, SHE, WE))
NOBODY = PronounClass((IT,))
LISTENERS = PronounClass((I, HE, WE))

GROWN_UPS = Mixture(((24, SPEAKERS), (12, NAMES), (16, ADULTS), (20, PROFESSIONALS), (12, ELDERS), (8, FRIENDS)))
# Without adjectives, for "Anna ist nett": "die nette Frau ist nett" would say nothing.
PLAIN_PEOPLE = noun_class(ADULT_NOUNS + " " + JOBS, "", "the the this / the this")
UNDESCRIBED = Mixture(((30, SPEAKERS), (20, NAMES), (20, ELDERS), (40, PLAIN_PEOPLE)))
YOUNGSTERS = Mixture(((20, SPEAKERS), (14, NAMES), (32, KIDS), (16, SIBLINGS)))
EVERYBODY = Mixture(((24, GROWN_UPS), (12, YOUNGSTERS)))
FAMILY = Mixture(((3, ELDERS), (1, SIBLINGS), (1, FRIENDS)))
# Those to whom something is done. The pronoun "sie" is left out: as an object it could mean she or they.
ACQUAINTANCES = Mixture(
    (
        (24, LISTENERS),
        (12, NAMES),
        (20, ADULTS_SERVED),
        (34, PROFESSIONALS_SERVED),
        (16, ELDERS),
        (14, FRIENDS),
    )
)
LITTLE_ONES = Mixture(((10, LISTENERS), (10, NAMES), (32, KIDS), (16, SIBLINGS)))
ANYBODY = Mixture(((24, ACQUAINTANCES), (14, LITTLE_ONES)))
BAKERS = noun_class("Bäcker", "alt jung freundlich", "the the a this / the")
FARMERS = noun_class("Bauer", "alt jung freundlich", "the the a this / the")
GARDENERS = noun_class("Gärtner", "alt jung freundlich", "the the a this / the")
MECHANICS = noun_class("Mechaniker", "alt jung freundlich", "the the a this / the")
SHOP_ASSISTANTS = noun_class("Verkäuferin", "jung nett freundlich", "the the a this / the")
TEACHERS = noun_class("Lehrer Lehrerin Musiklehrer", "alt jung nett", "the the a this my / the")
GUESTS = noun_class("Gast", "", "/ many")

# People of an age, for "Mein Großvater ist neunundachtzig Jahre alt".
OLD_PEOPLE = noun_class("Großvater Großmutter", "", "my /")
MIDDLE_AGED = noun_class("Vater Mutter Onkel Tante Kollege Lehrer Lehrerin Nachbar Nachbarin", "", "my /")
YOUNG_PEOPLE = noun_class("Bruder Schwester Sohn Tochter Freund Freundin", "", "my /")
SMALL_CHILDREN = noun_class("Kind Junge Mädchen", "", "the this /")
