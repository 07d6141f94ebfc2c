"""The verbs of the corpus and the moods they are put into."""

from dataclasses import dataclass

from .conjugation import english_verb, verb

# What stands in brackets tells two uses of a verb apart.
VERBS = {
    # Somebody does something.
    "schlafen": verb("schlafen", "schläft", "geschlafen", "sleep/slept"),
    "arbeiten": verb("arbeiten", "arbeitet", "gearbeitet", "work"),
    "tanzen": verb("tanzen", "tanzt", "getanzt", "dance"),
    "schwimmen": verb("schwimmen", "schwimmt", "geschwommen", "swim/swam", helper="sein"),
    "spielen": verb("spielen", "spielt", "gespielt", "play"),
    "wohnen": verb("wohnen", "wohnt", "gewohnt", "live"),
    "bleiben": verb("bleiben", "bleibt", "geblieben", "stay", helper="sein"),
    "warten": verb("warten", "wartet", "gewartet", "wait"),
    "sprechen": verb("sprechen", "spricht", "gesprochen", "talk"),
    "auf|stehen": verb("auf|stehen", "steht", "gestanden", "get/got up", helper="sein"),
    "ein|schlafen": verb("ein|schlafen", "schläft", "geschlafen", "fall/fell asleep", helper="sein"),
    "ein|kaufen": verb("ein|kaufen", "kauft", "gekauft", "go/went shopping"),
    "fern|sehen": verb("fern|sehen", "sieht", "gesehen", "watch television"),
    "an|kommen": verb("an|kommen", "kommt", "gekommen", "arrive", helper="sein"),
    "ab|fahren": verb("ab|fahren", "fährt", "gefahren", "leave/left", helper="sein"),
    "zurück|kommen": verb("zurück|kommen", "kommt", "gekommen", "come/came back", helper="sein"),
    # Somebody goes somewhere.
    "gehen": verb("gehen", "geht", "gegangen", "go/went", helper="sein"),
    "fahren": verb("fahren", "fährt", "gefahren", "go/went", helper="sein"),
    "fahren (km)": verb("fahren", "fährt", "gefahren", "travel/travelled", helper="sein"),
    "laufen": verb("laufen", "läuft", "gelaufen", "run/ran", helper="sein"),
    # Somebody does something to a thing.
    "kochen": verb("kochen", "kocht", "gekocht", "cook"),
    "machen": verb("machen", "macht", "gemacht", "make/made"),
    "backen": verb("backen", "backt", "gebacken", "bake"),
    "essen": verb("essen", "isst", "gegessen", "eat/ate"),
    "trinken": verb("trinken", "trinkt", "getrunken", "drink/drank"),
    "kaufen": verb("kaufen", "kauft", "gekauft", "buy/bought"),
    "verkaufen": verb("verkaufen", "verkauft", "verkauft", "sell/sold"),
    "lesen": verb("lesen", "liest", "gelesen", "read/read"),
    "schreiben": verb("schreiben", "schreibt", "geschrieben", "write/wrote"),
    "singen": verb("singen", "singt", "gesungen", "sing/sang"),
    "hören": verb("hören", "hört", "gehört", "listen to"),
    "lernen": verb("lernen", "lernt", "gelernt", "learn"),
    "reparieren": verb("reparieren", "repariert", "repariert", "repair"),
    "waschen": verb("waschen", "wäscht", "gewaschen", "wash"),
    "putzen": verb("putzen", "putzt", "geputzt", "clean"),
    "pflanzen": verb("pflanzen", "pflanzt", "gepflanzt", "plant"),
    "füttern": verb("füttern", "füttert", "gefüttert", "feed/fed"),
    "suchen": verb("suchen", "sucht", "gesucht", "look for"),
    "finden": verb("finden", "findet", "gefunden", "find/found"),
    "verlieren": verb("verlieren", "verliert", "verloren", "lose/lost"),
    "brauchen": verb("brauchen", "braucht", "gebraucht", "need"),
    "auf|räumen": verb("auf|räumen", "räumt", "geräumt", "tidy"),
    "auf|machen": verb("auf|machen", "macht", "gemacht", "open"),
    "zu|machen": verb("zu|machen", "macht", "gemacht", "close"),
    "an|machen": verb("an|machen", "macht", "gemacht", "turn on"),
    "an|ziehen": verb("an|ziehen", "zieht", "gezogen", "put/put on"),
    # Somebody does something to somebody.
    "besuchen": verb("besuchen", "besucht", "besucht", "visit"),
    "sehen": verb("sehen", "sieht", "gesehen", "see/saw"),
    "treffen": verb("treffen", "trifft", "getroffen", "meet/met"),
    "kennen": verb("kennen", "kennt", "gekannt", "know/knew"),
    "an|rufen": verb("an|rufen", "ruft", "gerufen", "call"),
    "ab|holen": verb("ab|holen", "holt", "geholt", "pick up", shifts=True),
    "ein|laden": verb("ein|laden", "lädt", "geladen", "invite"),
    # The dative: for somebody, to somebody.
    "helfen": verb("helfen", "hilft", "geholfen", "help"),
    "zu|hören": verb("zu|hören", "hört", "gehört", "listen to"),
    "gehören": verb("gehören", "gehört", "gehört", "belong to"),
    "gefallen": verb("gefallen", "gefällt", "gefallen", "like"),
    "geben": verb("geben", "gibt", "gegeben", "give/gave"),
    "schenken": verb("schenken", "schenkt", "geschenkt", "give/gave", suffix="as a present"),
    "zeigen": verb("zeigen", "zeigt", "gezeigt", "show"),
    "bringen": verb("bringen", "bringt", "gebracht", "bring/brought"),
    "erklären": verb("erklären", "erklärt", "erklärt", "explain", to_dative=True),
    "vor|lesen": verb("vor|lesen", "liest", "gelesen", "read/read", to_dative=True),
    # States, weather and what others think of it.
    "sein": verb("sein", "ist", "gewesen", "be/was", "sein", ("war", "waren"), first="bin", plural="sind"),
    "haben": verb("haben", "hat", "gehabt", "have/had", preterite=("hatte", "hatten"), first="habe"),
    "haben (be)": verb("haben", "hat", "gehabt", "be/was", preterite=("hatte", "hatten"), first="habe"),
    "kosten": verb("kosten", "kostet", "gekostet", "cost/cost"),
    "regnen": verb("regnen", "regnet", "geregnet", "rain", ongoing="raining"),
    "schneien": verb("schneien", "schneit", "geschneit", "snow", ongoing="snowing"),
    "scheinen": verb("scheinen", "scheint", "geschienen", "shine/shone", ongoing="shining"),
    "kommen": verb("kommen", "kommt", "gekommen", "come/came", helper="sein", ongoing="coming"),
    "wissen": verb("wissen", "weiß", "gewusst", "know/knew", first="weiß"),
    "glauben": verb("glauben", "glaubt", "geglaubt", "think/thought"),
    "hoffen": verb("hoffen", "hofft", "gehofft", "hope"),
    "sagen": verb("sagen", "sagt", "gesagt", "say/said"),
}
HABEN, SEIN = VERBS["haben"], VERBS["sein"]


@dataclass(frozen=True)
class Mood:
    """Present, past, or a modal verb with an infinitive.

    ``german`` holds the forms for ich, for er and for the plural. ``english`` is an English verb whose tail
    comes between it and the infinitive ("have to", "be allowed to"); ``fixed`` marks can, should and will,
    which never change. ``adverb`` is "gern", which German puts beside a present where English has "like to".
    """

    name: str
    german: tuple = ()
    english: object = None
    fixed: bool = False
    adverb: str = ""

    def finite(self, person):
        first, third, plural = self.german
        return {"1s": first, "3s": third}.get(person, plural)

    @property
    def kind(self):
        """present, past, future or modal."""
        return self.name if self.name in ("present", "past", "future") else "modal"

    @property
    def tense(self):
        """Which adverbials of time go with it: present, past or coming."""
        return self.kind if self.kind in ("present", "past") else "coming"


PRESENT = Mood("present")
PAST = Mood("past")
LIKING = Mood("present", english=english_verb("like to"), adverb="gern")
FUTURE = Mood("future", ("werde", "wird", "werden"), english_verb("will"), fixed=True)
MUST = Mood("must", ("muss", "muss", "müssen"), english_verb("have/had to"))
CAN = Mood("can", ("kann", "kann", "können"), english_verb("can"), fixed=True)
MODALS = (
    CAN,
    CAN,
    Mood("should", ("soll", "soll", "sollen"), english_verb("should"), fixed=True),
    MUST,
    Mood("want", ("will", "will", "wollen"), english_verb("want to")),
    Mood("may", ("darf", "darf", "dürfen"), english_verb("be allowed to")),
)
