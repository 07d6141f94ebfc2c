"""Who does something, and to whom: people sorted by what is sensible to say of them."""

from .casts import Cast, PronounClass
from .declension import HE, IT, SHE, WE, I
from .vocabulary import kind

NAMES = kind("Paul Jonas Felix Anna Lena Maria", "", "name /")
ADULT_NOUNS = "Mann Frau Nachbar Nachbarin Student Studentin"
JOBS = "Lehrer Lehrerin Arzt Ärztin Bäcker Bauer Gärtner Mechaniker Verkäuferin"
ADULTS = kind(ADULT_NOUNS, "alt alt jung nett freundlich", "the the a a a this / the this")
PROFESSIONALS = kind(JOBS + " Musiklehrer", "alt alt jung nett freundlich", "the the a a a this / the the this")
# As objects they are more often plural, for the sake of the dative: den Männern.
ADULTS_SERVED = kind(ADULT_NOUNS, "alt jung nett freundlich", "the a this / the the this")
PROFESSIONALS_SERVED = kind(JOBS, "alt jung nett freundlich", "the a this / the the this")
KIDS = kind("Kind Junge Mädchen Schüler Schülerin", "klein/little nett klug", "the the a a this / the the this")
SIBLINGS = kind("Bruder Schwester Sohn Tochter", "klein/little", "my my / my")
ELDERS = kind("Vater Mutter Großvater Großmutter Onkel Tante Eltern Großeltern", "", "my / my")
FRIENDS = kind("Freund Freundin Kollege", "alt jung nett", "my / my")
SPEAKERS = PronounClass((I, I, I, HE, SHE, WE))
NOBODY = PronounClass((IT,))
LISTENERS = PronounClass((I, HE, WE))

GROWN_UPS = Cast(((24, SPEAKERS), (12, NAMES), (16, ADULTS), (20, PROFESSIONALS), (12, ELDERS), (8, FRIENDS)))
# For "Anna ist nett": "die nette Frau ist nett" would say nothing.
PLAIN_PEOPLE = kind(ADULT_NOUNS + " " + JOBS, "", "the the this / the this")
UNDESCRIBED = Cast(((30, SPEAKERS), (20, NAMES), (20, ELDERS), (40, PLAIN_PEOPLE)))
YOUNGSTERS = Cast(((20, SPEAKERS), (14, NAMES), (32, KIDS), (16, SIBLINGS)))
EVERYBODY = Cast(((24, GROWN_UPS), (12, YOUNGSTERS)))
FAMILY = Cast(((3, ELDERS), (1, SIBLINGS), (1, FRIENDS)))
# Those to whom something is done. "sie" is not among them: as an object it would say she or they.
ACQUAINTANCES = Cast(
    (
        (24, LISTENERS),
        (12, NAMES),
        (20, ADULTS_SERVED),
        (34, PROFESSIONALS_SERVED),
        (16, ELDERS),
        (14, FRIENDS),
    )
)
LITTLE_ONES = Cast(((10, LISTENERS), (10, NAMES), (32, KIDS), (16, SIBLINGS)))
ANYBODY = Cast(((24, ACQUAINTANCES), (14, LITTLE_ONES)))
BAKERS = kind("Bäcker", "alt jung freundlich", "the the a this / the")
FARMERS = kind("Bauer", "alt jung freundlich", "the the a this / the")
GARDENERS = kind("Gärtner", "alt jung freundlich", "the the a this / the")
MECHANICS = kind("Mechaniker", "alt jung freundlich", "the the a this / the")
SHOP_ASSISTANTS = kind("Verkäuferin", "jung nett freundlich", "the the a this / the")
TEACHERS = kind("Lehrer Lehrerin Musiklehrer", "alt jung nett", "the the a this my / the")
GUESTS = kind("Gast", "", "/ many")

# People of an age, for "Mein Großvater ist neunundachtzig Jahre alt".
OLD_PEOPLE = kind("Großvater Großmutter", "", "my /")
MIDDLE_AGED = kind("Vater Mutter Onkel Tante Kollege Lehrer Lehrerin Nachbar Nachbarin", "", "my /")
YOUNG_PEOPLE = kind("Bruder Schwester Sohn Tochter Freund Freundin", "", "my /")
SMALL_CHILDREN = kind("Kind Junge Mädchen", "", "the this /")
