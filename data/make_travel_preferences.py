"""Write ``travel_preferences.csv`` and ``travel_preferences_truth.csv``: one invented year of a travel assistant.

Forty invented travellers tell an assistant how they like to travel. Most preferences stay, some change once, some
change and return, and now and then a message says something which does not last: a one-off request, a misread reply, a
complaint, an import job. The second file states what the generator knew, so that a revocation can be called right or
wrong. The same seed always gives the same bytes.

Run ``python data/make_travel_preferences.py`` to rewrite the committed files, or add ``--to FILE`` to write elsewhere.
"""

import argparse
import csv
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np

SEED = 20250101
YEAR = 2025
COLUMNS = ("ts", "user", "key", "value", "outcome", "text", "phase", "actor", "source_ref", "ingested_at")
TRUTH_COLUMNS = ("user", "key", "value", "from", "to")
PHASES = ("stable", "light", "reversal", "return")

USER = "user"
AGENT = "booking-agent"
SURVEY = "survey-import"
SYNC = "profile-sync"

ASSERTS = ""
SUPPORTS = "1"
REFUTES = "0"


@dataclass(frozen=True, slots=True)
class Value:
    """How one value of a key is spoken of.

    Attributes
    ----------
    thing : str
        Noun phrase ("a window seat").
    do : str
        Request ("book me a window seat").
    did : str
        What the agent reports ("booked a window seat").
    why : tuple of str
        Whole sentences which assert the value in its own words. They may name ``{city}``.
    """

    thing: str
    do: str
    did: str
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Key:
    """One kind of preference: its values, the settings it is mentioned in, and excuses for an exception."""

    label: str
    values: dict[str, Value]
    contexts: tuple[str, ...]
    excuses: tuple[str, ...]
    mention: float


@dataclass(frozen=True, slots=True)
class LifeEvent:
    """Why preferences change. ``back`` is the reason for the return, None when the change lasts."""

    moves: dict[str, str]
    reason: str
    back: str | None = None


@dataclass(frozen=True, slots=True)
class Spell:
    """A value which really held from ``start`` on, and the sentence fragment that explains the change to it."""

    value: str
    start: datetime
    reason: str | None = None
    returns: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the log before it has a reference. Times are aware."""

    ts: datetime
    user: str
    key: str
    value: str
    outcome: str
    text: str
    actor: str
    ingested_at: datetime


FLIGHT = (
    "on the {hour} to {city}",
    "for the {weekday} flight to {city}",
    "on the way to {city}",
    "to {city} and back",
    "for the {city} trip",
)

KEYS: dict[str, Key] = {
    "seat": Key(
        label="preferred seat",
        values={
            "window": Value(
                "a window seat",
                "book me a window seat",
                "booked a window seat",
                (
                    "Nothing beats the view coming into {city}, so by the window please.",
                    "I want to lean on the wall and sleep until {city}: window.",
                    "Window side again, I would like to see the coast before {city}.",
                ),
            ),
            "aisle": Value(
                "an aisle seat",
                "book me an aisle seat",
                "booked an aisle seat",
                (
                    "I get up a lot, so please keep me on the aisle to {city}.",
                    "Aisle, please. I do not want to climb over anyone on the way to {city}.",
                    "Let me stretch one leg: something on the aisle to {city}.",
                ),
            ),
            "exit row": Value(
                "an exit row seat",
                "book me an exit row seat",
                "booked an exit row seat",
                (
                    "I am 1.96 m, so the exit row to {city} if you can.",
                    "Exit row, please. My knees remember the last flight to {city}.",
                    "Any exit row seat to {city} will do, I need the leg room.",
                ),
            ),
        },
        contexts=FLIGHT,
        excuses=(
            "I have a tight connection",
            "I travel with my mother",
            "the rest is taken",
            "I must be off the plane first",
        ),
        mention=0.74,
    ),
    "meal": Key(
        label="meal on board",
        values={
            "standard": Value(
                "the standard meal",
                "order me the standard meal",
                "ordered the standard meal",
                (
                    "I eat everything, so the normal tray to {city} is fine.",
                    "No special meal for me on the way to {city}, the standard one please.",
                    "Whatever the kitchen serves everybody: standard meal.",
                ),
            ),
            "vegetarian": Value(
                "the vegetarian meal",
                "order me the vegetarian meal",
                "ordered the vegetarian meal",
                (
                    "No meat and no fish for me on the way to {city}, please.",
                    "Vegetarian on board, as long as there is cheese.",
                    "I do not eat meat, so the vegetarian tray to {city}.",
                ),
            ),
            "vegan": Value(
                "the vegan meal",
                "order me the vegan meal",
                "ordered the vegan meal",
                (
                    "Nothing from animals on my tray to {city}, please.",
                    "Vegan on board, and oat milk if they carry it.",
                    "I eat plants only, so the vegan tray to {city}.",
                ),
            ),
            "gluten-free": Value(
                "the gluten-free meal",
                "order me the gluten-free meal",
                "ordered the gluten-free meal",
                (
                    "No wheat for me on the way to {city}, please.",
                    "Gluten-free on board, I cannot risk the bread roll.",
                    "Please make sure that the tray to {city} is gluten-free.",
                ),
            ),
        },
        contexts=FLIGHT,
        excuses=(
            "I have a dinner right after landing",
            "a friend raved about it",
            "my usual one was sold out",
            "the flight is short",
        ),
        mention=0.68,
    ),
    "airline": Key(
        label="preferred airline",
        values={
            "Fjordlink": Value(
                "Fjordlink",
                "fly me with Fjordlink",
                "ticketed Fjordlink",
                (
                    "Fjordlink has the early slot to {city}, take that.",
                    "I collect points with Fjordlink, so please use them to {city}.",
                    "Fjordlink never lost a bag of mine. {city} with them again.",
                ),
            ),
            "Alpenwind": Value(
                "Alpenwind",
                "fly me with Alpenwind",
                "ticketed Alpenwind",
                (
                    "Alpenwind flies to {city} without a stop, so them please.",
                    "I have status with Alpenwind, {city} with them.",
                    "Alpenwind lets me change the ticket for free. Book them to {city}.",
                ),
            ),
            "Costaverde Air": Value(
                "Costaverde Air",
                "fly me with Costaverde Air",
                "ticketed Costaverde Air",
                (
                    "Costaverde Air is the only one that leaves late enough for {city}.",
                    "Costaverde Air to {city}, their crews are lovely.",
                    "My voucher is from Costaverde Air, use it for {city}.",
                ),
            ),
            "Halcyon Jet": Value(
                "Halcyon Jet",
                "fly me with Halcyon Jet",
                "ticketed Halcyon Jet",
                (
                    "Halcyon Jet has decent Wi-Fi to {city}, so them.",
                    "I am in the Halcyon Jet programme, {city} with them please.",
                    "Halcyon Jet flies from the small terminal. {city} with them.",
                ),
            ),
        },
        contexts=FLIGHT,
        excuses=(
            "the others arrive after midnight",
            "it is half the price",
            "the client books it",
            "my usual one is on strike",
        ),
        mention=0.66,
    ),
    "hotel_type": Key(
        label="kind of hotel",
        values={
            "boutique": Value(
                "a boutique hotel",
                "put me in a boutique hotel",
                "reserved a boutique hotel",
                (
                    "Something small with character in {city}, please.",
                    "A boutique place in {city}, no conference towers.",
                    "In {city} I want a hotel with a face, so boutique.",
                ),
            ),
            "chain": Value(
                "a chain hotel",
                "put me in a chain hotel",
                "reserved a chain hotel",
                (
                    "One of the big chains in {city}, I like to know what I get.",
                    "Chain hotel in {city}, my night points should count.",
                    "Please no experiments in {city}: a chain with a gym.",
                ),
            ),
            "apartment": Value(
                "an apartment",
                "put me in an apartment",
                "reserved an apartment",
                (
                    "I would like to cook for myself in {city}, so a flat.",
                    "An apartment with a washing machine in {city}, please.",
                    "A flat in {city} again, I need a door between bed and desk.",
                ),
            ),
            "guesthouse": Value(
                "a guesthouse",
                "put me in a guesthouse",
                "reserved a guesthouse",
                (
                    "A family-run place in {city} with a real breakfast.",
                    "Guesthouse in {city}, I like to know the owners.",
                    "Please look for a guesthouse a little outside {city}.",
                ),
            ),
        },
        contexts=(
            "in {city}",
            "for the nights in {city}",
            "from {weekday} in {city}",
            "for my stay in {city}",
            "while I am in {city}",
        ),
        excuses=(
            "the congress has a block of rooms there",
            "my boss stays there too",
            "everything else is full",
            "I arrive very late",
        ),
        mention=0.62,
    ),
    "airport_transfer": Key(
        label="way from the airport",
        values={
            "train": Value(
                "the train into town",
                "put me on the train into town",
                "reserved the train into town",
                (
                    "The train is quicker than any car in {city}.",
                    "I will take the train from the airport in {city}, I can read there.",
                    "Rail into {city}, please, I get sick in the back of cars.",
                ),
            ),
            "taxi": Value(
                "a taxi into town",
                "get me a taxi into town",
                "ordered a taxi into town",
                (
                    "A cab in {city} please, I will have too many bags.",
                    "Please have a taxi wait for me in {city}.",
                    "Door to door in {city}: a taxi.",
                ),
            ),
            "shuttle": Value(
                "the shared shuttle",
                "book me on the shared shuttle",
                "booked the shared shuttle",
                (
                    "The shuttle in {city} stops right at my door.",
                    "The shared van in {city} is good enough for me.",
                    "I do not mind the detour, so the shuttle in {city}.",
                ),
            ),
            "rental car": Value(
                "a rental car",
                "reserve a rental car",
                "reserved a rental car",
                (
                    "I will drive myself in {city}, a small rental car please.",
                    "Car keys at the airport in {city}, as I have visits all over the county.",
                    "I need my own wheels in {city}.",
                ),
            ),
        },
        contexts=(
            "in {city}",
            "when I land in {city}",
            "on {weekday} in {city}",
            "after the {hour} landing in {city}",
            "at {city} airport",
        ),
        excuses=(
            "it will be past midnight",
            "I carry the trade fair stand",
            "the line is closed that day",
            "a colleague shares it",
        ),
        mention=0.6,
    ),
    "payment": Key(
        label="way to pay",
        values={
            "company card": Value(
                "the company card",
                "charge my company card",
                "charged the company card",
                (
                    "This one is on the firm, so the company card.",
                    "The {city} trip goes on the company card.",
                    "Company card please, accounting wants it all in one place.",
                ),
            ),
            "personal card": Value(
                "the personal card",
                "charge my personal card",
                "charged the personal card",
                (
                    "I pay {city} myself and claim it back: personal card.",
                    "Put {city} on my own card, please.",
                    "My private card, as I want the insurance that comes with it.",
                ),
            ),
            "invoice": Value(
                "payment by invoice",
                "send an invoice",
                "sent an invoice",
                (
                    "Bill me for {city}, I pay by transfer.",
                    "No card for {city}, an invoice to the office will do.",
                    "Please invoice, thirty days as agreed.",
                ),
            ),
        },
        contexts=("for {city}", "for the {city} trip", "for the {weekday} booking", "for everything in {city}"),
        excuses=(
            "the usual way does not work today",
            "the budget code is not open yet",
            "my wallet is at home",
            "the client pays us back",
        ),
        mention=0.56,
    ),
    "newsletter_language": Key(
        label="language of the newsletter",
        values={
            "German": Value(
                "the newsletter in German",
                "send me the newsletter in German",
                "sent the newsletter in German",
                (
                    "I read German best, so keep the letters German.",
                    "Auf Deutsch, bitte, I mean the newsletter.",
                    "German for the fare news, as my wife reads it too.",
                ),
            ),
            "French": Value(
                "the newsletter in French",
                "send me the newsletter in French",
                "sent the newsletter in French",
                (
                    "French is my mother tongue, so the newsletter in French.",
                    "En français, s'il vous plaît, at least the newsletter.",
                    "Keep the fare news in French, I enjoy it more.",
                ),
            ),
            "English": Value(
                "the newsletter in English",
                "send me the newsletter in English",
                "sent the newsletter in English",
                (
                    "English is fine for the fare news.",
                    "I share the newsletter at work, so English.",
                    "Keep sending the letters in English.",
                ),
            ),
            "Spanish": Value(
                "the newsletter in Spanish",
                "send me the newsletter in Spanish",
                "sent the newsletter in Spanish",
                (
                    "En español, por favor, the newsletter I mean.",
                    "Spanish for the fare news, we read it at home.",
                    "Keep the letters in Spanish, it helps my Spanish along.",
                ),
            ),
            "Danish": Value(
                "the newsletter in Danish",
                "send me the newsletter in Danish",
                "sent the newsletter in Danish",
                (
                    "På dansk, tak, for the newsletter.",
                    "Danish for the fare news, my father reads along.",
                    "I like the letters in Danish best.",
                ),
            ),
        },
        contexts=("for the {month} issue", "for the next issue", "this month", "for the coming letter"),
        excuses=(
            "a colleague wants to read it",
            "I need it for a class",
            "my guest reads along",
            "I want to forward it",
        ),
        mention=0.42,
    ),
}

ASSERT = (
    "Please {do} {context}.",
    "{Thing} {context}, please.",
    "As usual, {thing} {context}.",
    "You know me: {thing} {context}.",
    "Could you {do} {context}?",
    "Same as always, so {thing}.",
    "I would like {thing} {context}.",
    "And please {do}, as always.",
    "If it can be had, {thing} {context}.",
    "Do not forget: {thing} {context}.",
)
CONFIRM = (
    "{Did} {context}; confirmed by the traveller.",
    "Offered {thing} {context}, accepted at once.",
    "Asked whether {thing} is still right: yes.",
    "{Did} {context} from the profile, no objection.",
    "Traveller thanked us for {thing} {context}.",
    "Feedback came in: {thing} {context} was right.",
    "Checked before booking: {thing}, yes.",
    "{Did} {context}. Rated five of five afterwards.",
    "Traveller ticked {thing} in the booking form.",
    "Same as last time approved: {thing} {context}.",
)
CHANGE = (
    "{Reason}, please {do} from now on.",
    "Please {do} from now on, {reason}.",
    "I have had to change my habits {reason}: {thing} instead of {old}, please.",
    "I no longer want {old}. {Thing}, please, {reason}.",
    "New rule {reason}: {thing}.",
    "One thing has changed. {Reason} I want {thing}.",
    "{Reason} I prefer {thing} to {old}.",
    "Could you update my profile? It should say {value} {reason}.",
    "It used to be {old} for me, but {reason} it is {thing}.",
    "Small update: {thing} {context}, {reason}.",
    "Things have changed: {thing} {context}, {reason}.",
)
RETURN = (
    "{Reason}, please {do} again.",
    "Back to {thing}, {reason}.",
    "{Reason} I am back to {thing}.",
    "As before, please: {thing} {context}, {reason}.",
    "No need for {old} any more, {reason}. {Thing} again, please.",
    "{Reason}: {thing} {context}, like in spring.",
    "You can switch me back, {reason}: {thing}.",
    "Could you change it back to {value}, {reason}?",
    "At last {thing} again, {reason}.",
    "The old arrangement again {reason}: {thing}.",
)
UNASKED = (
    "Why did the last letter come in English? Please {do}.",
    "I never asked for English. {Thing}, please, as before.",
    "Something went wrong: it should be {thing}, not {old}.",
    "My newsletter was suddenly in English. Please {do} again.",
    "Did somebody change my profile? I want {thing}.",
    "English must be a mistake. {Thing} {context}, please.",
    "Please undo the change to English and {do}.",
    "Two letters in English now. Could you {do} {context}?",
)
ONE_OFF = (
    "Just this once, {do} {context}.",
    "An exception {context}: {thing}. The usual is fine after that.",
    "Only this time, please {do}, {excuse}.",
    "{Thing} {context} please, but only because {excuse}.",
    "My colleague is coming along, so {thing} {context}, this one time.",
    "Could you {do} {context}? One time only, do not change my profile.",
    "For once I would take {thing} {context}, {excuse}.",
    "Not my habit, I know, but {thing} {context} this time.",
    "Special case: {do} {context}, then back to normal.",
    "Let me try {thing} {context}, just out of curiosity.",
    "This one is different because {excuse}: {thing}.",
)
MISREAD = (
    'Reply was "fine, as long as it is not like last time"; noted as {value}.',
    "Voice note was hard to hear; understood {value}.",
    'Traveller wrote "the other one, please"; took it to mean {value}.',
    'One "yes" to two questions; filed as {value}.',
    "Auto-reply quoted an old mail about {thing}; recorded.",
    'Message broke off after "{value} would be"; recorded {value}.',
    "Request of a fellow traveller ({thing}) filed under this profile.",
    'Answer was "same as the others"; the others have {value}.',
    "Chat translation gave {value}; the original was not kept.",
    "Thumbs up under a picture of {thing} {context}; read as a wish.",
)
REFUTE = (
    "No, not {thing} again, please.",
    "Please stop, I do not want {thing} {context}.",
    "I said no to {thing}, did I not?",
    "Anything but {thing} {context}.",
    "That was wrong, {thing} is not what I wanted.",
    "You gave me {thing} again. Please do not.",
    "{Thing} {context}? No, thank you.",
    "Take {thing} off my list, please.",
    "I would rather not have {thing} {context}.",
    "Who asked for {thing}? Not me.",
)
DECLINED = (
    "Offered {thing} {context}, declined.",
    "Suggested {thing} from the profile; traveller said no.",
    "{Did} {context}; traveller asked to undo it.",
    "Traveller struck {thing} from the draft booking.",
    "{Thing} {context} turned down by phone.",
    "Rated one of five afterwards: {thing} {context}.",
    "Traveller cancelled {thing} within the hour.",
    "Asked whether {thing} is still right: no.",
)
ANSWER = (
    "Travel survey, {label}: {Value}.",
    "Survey answer on the {label}: {Value}.",
    "Paper form, box ticked beside {Value} ({label}).",
    "{Label}? {Value}.",
    "Survey wave {wave}, {label}: the traveller chose {Value}.",
    "Form scanned, {label} reads {Value}.",
    "Asked about the {label}, the answer was {Value}.",
    "Questionnaire {wave}, {label} = {Value}.",
)
OPENERS = ("Hi! ", "Hello again. ", "Hello there. ", "Quick message. ", "Hello team. ", "Me again. ", "Greetings! ")
CLOSERS = (" Thanks!", " Thank you.", " Cheers!", " Many thanks.", " That is all.", " Best wishes!", " See you soon.")

CITIES = (
    "Aarhus", "Athens", "Barcelona", "Bergen", "Bologna", "Bordeaux", "Bristol", "Budapest", "Dublin", "Gdańsk",
    "Geneva", "Hamburg", "Helsinki", "Lisbon", "Ljubljana", "Madrid", "Malmö", "Milan", "Nantes", "Oslo", "Porto",
    "Prague", "Riga", "Rotterdam", "Seville", "Tallinn", "Turin", "Vienna", "Vilnius", "Zagreb",
)  # fmt: skip
HOURS = ("06:15", "07:40", "08:05", "09:30", "11:20", "13:10", "15:45", "17:30", "18:55", "20:10")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

LASTING = (
    LifeEvent(
        {"airport_transfer": "train", "airline": "Alpenwind", "newsletter_language": "German"},
        "since I moved to Berlin",
    ),
    LifeEvent({"airline": "Costaverde Air", "newsletter_language": "Spanish"}, "since we moved to Valencia"),
    LifeEvent({"meal": "vegetarian"}, "since I became vegetarian"),
    LifeEvent({"meal": "vegan"}, "since I gave up milk and eggs"),
    LifeEvent({"meal": "gluten-free"}, "since the doctor found that I cannot eat wheat"),
    LifeEvent({"payment": "company card", "hotel_type": "chain"}, "since I started my new job"),
    LifeEvent({"payment": "invoice", "hotel_type": "guesthouse"}, "since I went freelance"),
    LifeEvent({"hotel_type": "apartment", "airport_transfer": "taxi"}, "since the twins travel with me"),
    LifeEvent({"airline": "Halcyon Jet"}, "since I joined the Halcyon Jet programme"),
    LifeEvent({"airport_transfer": "rental car"}, "since I look after the branches outside town"),
    LifeEvent({"seat": "aisle"}, "since I turned sixty and get up more often"),
    LifeEvent({"seat": "window"}, "since I took up photography"),
)
PASSING = (
    LifeEvent(
        {"seat": "aisle", "airport_transfer": "taxi"},
        "because I hurt my back",
        "now that my back is fine again",
    ),
    LifeEvent({"seat": "aisle"}, "because I am pregnant", "now that the baby is here"),
    LifeEvent(
        {"hotel_type": "apartment", "airline": "Costaverde Air"},
        "while I work on the Lisbon project",
        "now that the Lisbon project is over",
    ),
    LifeEvent(
        {"payment": "personal card"},
        "while my other account is blocked",
        "now that my account is open again",
    ),
    LifeEvent(
        {"airport_transfer": "shuttle"},
        "while the summer works go on",
        "now that the works are finished",
    ),
    LifeEvent({"meal": "gluten-free"}, "while I am on my diet", "now that the diet is done"),
    LifeEvent(
        {"newsletter_language": "English"},
        "while my niece practises her English with it",
        "now that my niece has gone home",
    ),
    LifeEvent(
        {"airline": "Fjordlink"},
        "while my usual airline has cut its summer flights",
        "now that the winter timetable is out",
    ),
    LifeEvent(
        {"hotel_type": "chain", "payment": "company card"},
        "while I help out at head office",
        "now that I have left head office",
    ),
    LifeEvent({"seat": "exit row"}, "while my firm pays for leg room", "now that my firm no longer pays for leg room"),
)

# Named travellers carry the stories which README.md tells; everybody else is drawn.
MARA, TOBIAS, INGRID, HEDDA, ILSE, ORLA = "u-mara", "u-tobias", "u-ingrid", "u-hedda", "u-ilse", "u-orla"
SYNCED = {
    "u-benedikt": "German",
    "u-chloe": "French",
    "u-dagny": "Danish",
    "u-esteban": "Spanish",
    "u-franziska": "German",
    "u-gaspard": "French",
    "u-lotte": "German",
    "u-pilar": "Spanish",
}
SILENT_AFTER_SYNC = ("u-dagny", "u-gaspard", "u-pilar")
OTHERS = (
    "u-aiko", "u-amara", "u-bram", "u-callum", "u-danika", "u-emre", "u-farah", "u-giorgos", "u-hana", "u-ivo",
    "u-jonas", "u-kasimir", "u-leila", "u-matteo", "u-nadia", "u-oskar", "u-priya", "u-quentin", "u-rosa", "u-søren",
    "u-tamsin", "u-ulla", "u-viktor", "u-wanda", "u-yusuf", "u-zoë",
)  # fmt: skip
USERS = tuple(sorted((MARA, TOBIAS, INGRID, HEDDA, ILSE, ORLA, *SYNCED, *OTHERS)))
SUMMER_TIME_USERS = ("u-benedikt", "u-lotte", "u-franziska")

SYNC_RUNS = (datetime(YEAR, 6, 12, 3, 0, tzinfo=UTC), datetime(YEAR, 6, 12, 3, 30, tzinfo=UTC))
SURVEY_WAVES = (datetime(YEAR, 2, 17, 8, 0, tzinfo=UTC), datetime(YEAR, 4, 21, 8, 0, tzinfo=UTC))
SURVEY_ARRIVAL = datetime(YEAR, 8, 20, 4, 12, tzinfo=UTC)
BEGINNING = datetime(YEAR, 1, 1, tzinfo=UTC)
END = datetime(YEAR + 1, 1, 1, tzinfo=UTC)

ONE_OFF_SHARE = 0.045
MISREAD_SHARE = 0.02
COMPLAINT_SHARE = 0.015
CONFIRM_SHARE = 0.27
EARLY_SHARE = 0.12
LATE_SHARE = 0.1


def day(month: int, date: int, hour: int = 9, minute: int = 0) -> datetime:
    """Return a UTC time of the year the log covers."""
    return datetime(YEAR, month, date, hour, minute, tzinfo=UTC)


def phase_of(ts: datetime) -> str:
    """Return the phase a time belongs to: one quarter each."""
    return PHASES[(ts.astimezone(UTC).month - 1) // 3]


def capitalised(text: str) -> str:
    """Return the text with its first letter in upper case and the rest untouched."""
    return text[:1].upper() + text[1:]


@dataclass(slots=True)
class Draw:
    """Seeded choices. Phrasings are dealt from a shuffled pack, so none repeats before all have been used."""

    rng: np.random.Generator
    packs: dict[tuple[str, ...], list[str]] = field(default_factory=dict)

    def phrase(self, phrasings: tuple[str, ...]) -> str:
        """Deal the next phrasing of a pack."""
        pack = self.packs.setdefault(phrasings, [])
        if not pack:
            pack.extend(phrasings[i] for i in self.rng.permutation(len(phrasings)))
        return pack.pop()

    def one(self, options: Sequence[str]) -> str:
        """Choose one option, all equally likely."""
        return options[int(self.rng.integers(len(options)))]

    def chance(self, share: float) -> bool:
        """Return True with the given probability."""
        return float(self.rng.random()) < share

    def seconds(self, low: int, high: int) -> timedelta:
        """Return between low and high seconds, high excluded."""
        return timedelta(seconds=int(self.rng.integers(low, high)))

    def time_between(self, start: datetime, end: datetime) -> datetime:
        """Return midnight UTC of a day from start to end, end excluded."""
        return start + timedelta(days=int(self.rng.integers((end - start).days)))


@dataclass(slots=True)
class Log:
    """Collects rows. Every sentence is put together here."""

    draw: Draw
    rows: list[Row] = field(default_factory=list)

    def sentence(
        self,
        phrasings: tuple[str, ...],
        key: str,
        value: str,
        ts: datetime,
        city: str,
        *,
        old: str | None = None,
        reason: str = "",
        wave: int = 0,
    ) -> str:
        """Fill one phrasing of a situation for a value of a key."""
        spec = KEYS[key]
        spoken = spec.values[value]
        setting = {
            "city": city,
            "hour": self.draw.one(HOURS),
            "weekday": self.draw.one(WEEKDAYS),
            "month": MONTHS[ts.month - 1],
        }
        return self.draw.phrase(phrasings).format(
            **setting,
            context=self.draw.phrase(spec.contexts).format(**setting),
            excuse=self.draw.phrase(spec.excuses),
            thing=spoken.thing,
            Thing=capitalised(spoken.thing),
            do=spoken.do,
            Did=capitalised(spoken.did),
            value=value,
            Value=capitalised(value),
            label=spec.label,
            Label=capitalised(spec.label),
            old=spec.values[old].thing if old is not None else "",
            reason=reason,
            Reason=capitalised(reason),
            wave=wave,
        )

    def add(
        self,
        ts: datetime,
        user: str,
        key: str,
        value: str,
        text: str,
        *,
        outcome: str = ASSERTS,
        actor: str = USER,
        ingested_at: datetime | None = None,
        letter: bool = False,
    ) -> None:
        """Append a row. ``letter`` may add a greeting or a farewell; without an arrival time it arrives in seconds."""
        if letter and self.draw.chance(0.25):
            text = self.draw.phrase(OPENERS) + text
        if letter and self.draw.chance(0.25):
            text += self.draw.phrase(CLOSERS)
        arrival = ts + self.draw.seconds(2, 45) if ingested_at is None else ingested_at
        self.rows.append(Row(ts, user, key, value, outcome, text, actor, arrival))

    def says(self, ts: datetime, user: str, key: str, value: str, city: str) -> None:
        """Add a plain statement: the traveller asserts the value, or the agent sees it confirmed."""
        if self.draw.chance(CONFIRM_SHARE):
            text = self.sentence(CONFIRM, key, value, ts, city)
            self.add(ts, user, key, value, text, outcome=SUPPORTS, actor=AGENT)
        else:
            text = self.sentence(ASSERT + KEYS[key].values[value].why, key, value, ts, city)
            self.add(ts, user, key, value, text, letter=True)

    def asks_once(self, ts: datetime, user: str, key: str, value: str, city: str) -> None:
        """Add a request for another value which the traveller does not mean to keep."""
        self.add(ts, user, key, value, self.sentence(ONE_OFF, key, value, ts, city), letter=True)

    def misread(self, ts: datetime, user: str, key: str, value: str, city: str) -> None:
        """Add a value which the agent took from a reply that did not say it."""
        self.add(ts, user, key, value, self.sentence(MISREAD, key, value, ts, city), actor=AGENT)

    def refutes(self, ts: datetime, user: str, key: str, value: str, city: str) -> None:
        """Add a refusal of the value: by the traveller, or as the agent saw it."""
        if self.draw.chance(0.6):
            text = self.sentence(REFUTE, key, value, ts, city)
            self.add(ts, user, key, value, text, outcome=REFUTES, letter=True)
        else:
            text = self.sentence(DECLINED, key, value, ts, city)
            self.add(ts, user, key, value, text, outcome=REFUTES, actor=AGENT)

    def changes(self, ts: datetime, user: str, key: str, spell: Spell, old: str, city: str) -> None:
        """Add a statement of a new (or old and new again) preference together with its reason."""
        phrasings = RETURN if spell.returns else CHANGE
        text = self.sentence(phrasings, key, spell.value, ts, city, old=old, reason=spell.reason or "")
        self.add(ts, user, key, spell.value, text, letter=True)

    def answers(self, ts: datetime, user: str, key: str, value: str, wave: int) -> None:
        """Add a survey answer, spelled as on the form, which was only typed in months later."""
        text = self.sentence(ANSWER, key, value, ts, "", wave=wave)
        arrival = SURVEY_ARRIVAL + self.draw.seconds(0, 900)
        self.add(ts, user, key, capitalised(value), text, actor=SURVEY, ingested_at=arrival)


def held_at(spells: Sequence[Spell], ts: datetime) -> int:
    """Return the position of the spell which holds at a time."""
    return max(i for i, spell in enumerate(spells) if spell.start <= ts)


def draw_lives(draw: Draw, user: str, keys: Sequence[str]) -> dict[str, list[Spell]]:
    """Draw the real preferences of one traveller: a value per key, then a few life events which change some."""
    lives = {key: [Spell(draw.one(tuple(KEYS[key].values)), BEGINNING)] for key in keys}
    if user in SYNCED:
        lives["newsletter_language"] = [Spell(SYNCED[user], BEGINNING)]
    settled = {"newsletter_language"} if user in SYNCED else set()
    for passing in (False, True, draw.chance(0.5)):
        catalogue = PASSING if passing else LASTING
        event = catalogue[int(draw.rng.integers(len(catalogue)))]
        when = float(draw.rng.random())
        if when < EARLY_SHARE:
            start = draw.time_between(day(4, 10, 0), day(6, 20, 0))
        elif passing or when < 1 - LATE_SHARE:
            start = draw.time_between(day(7, 2, 0), day(8, 25, 0))
        else:
            start = draw.time_between(day(10, 2, 0), day(11, 10, 0))
        end = draw.time_between(day(10, 2, 0), day(11, 12, 0))
        for key, target in event.moves.items():
            if key in settled or key not in lives or lives[key][0].value == target:
                continue
            settled.add(key)
            before = lives[key][0].value
            lives[key].append(Spell(target, start, event.reason))
            if event.back is not None:
                lives[key].append(Spell(before, end, event.back, returns=True))
    return lives


def draw_trips(draw: Draw) -> list[tuple[datetime, str]]:
    """Draw one traveller's conversations of the year: a start time and a destination each, at least one a month."""
    trips = []
    for month in range(1, 13):
        first, days = day(month, 1, 0), (28 if month == 2 else 30)
        for chosen in sorted(draw.rng.permutation(days - 1)[: int(draw.rng.integers(1, 4))].tolist()):
            start = first + timedelta(days=chosen) + draw.seconds(6 * 3600, 21 * 3600)
            trips.append((start, draw.one(CITIES)))
    return trips


def write_ordinary_traveller(log: Log, user: str, lives: dict[str, list[Spell]]) -> None:
    """Add the rows of one drawn traveller: statements, changes with their reasons, and noise."""
    draw = log.draw
    told = dict.fromkeys(lives, 0)
    spoken = dict.fromkeys(lives, 2)
    for start, city in draw_trips(draw):
        ts = start
        for key, spells in lives.items():
            position = held_at(spells, start)
            if position == told[key] and not draw.chance(KEYS[key].mention):
                continue
            ts += draw.seconds(20, 400)
            spell = spells[position]
            others = [value for value in KEYS[key].values if value != spell.value]
            if position > told[key]:
                if draw.chance(0.35):
                    log.refutes(ts, user, key, spells[position - 1].value, city)
                    ts += draw.seconds(15, 120)
                log.changes(ts, user, key, spell, spells[position - 1].value, city)
                told[key], spoken[key] = position, 1
            elif spoken[key] < 2:
                log.changes(ts, user, key, spell, spells[position - 1].value, city)
                spoken[key] += 1
            elif user in SYNCED and key == "newsletter_language":
                write_synced_statement(log, ts, user, spell.value, city)
            else:
                roll = float(draw.rng.random())
                if roll < ONE_OFF_SHARE:
                    log.asks_once(ts, user, key, draw.one(others), city)
                elif roll < ONE_OFF_SHARE + MISREAD_SHARE:
                    log.misread(ts, user, key, draw.one(others), city)
                elif roll < ONE_OFF_SHARE + MISREAD_SHARE + COMPLAINT_SHARE:
                    log.refutes(ts, user, key, spell.value, city)
                else:
                    log.says(ts, user, key, spell.value, city)


def write_synced_statement(log: Log, ts: datetime, user: str, value: str, city: str) -> None:
    """Add a newsletter statement of a traveller whose profile the import job overwrote, without any noise."""
    before = ts < SYNC_RUNS[0]
    if before or user not in SILENT_AFTER_SYNC:
        log.says(ts, user, "newsletter_language", value, city)


def write_sync_job(log: Log) -> None:
    """Add the import job: it writes English for eight travellers at one time, fails, and runs once more."""
    texts = (
        "Profile sync, run 1: newsletter_language = English (default of the new mailing system).",
        "Profile sync, run 2 after a timeout: newsletter_language = English (default of the new mailing system).",
    )
    for user, value in SYNCED.items():
        for month in range(1, 6):
            ts = day(month, 24, 10) + log.draw.seconds(0, 6 * 3600)
            log.says(ts, user, "newsletter_language", value, log.draw.one(CITIES))
        for ts, text in zip(SYNC_RUNS, texts, strict=True):
            arrival = ts + log.draw.seconds(1, 20)
            log.add(ts, user, "newsletter_language", "English", text, actor=SYNC, ingested_at=arrival)
        if user in SILENT_AFTER_SYNC:
            continue
        for month in (7, 8, 9, 10):
            ts = day(month, 26, 10) + log.draw.seconds(0, 6 * 3600)
            if month == 7:
                text = log.sentence(UNASKED, "newsletter_language", value, ts, "", old="English")
                log.add(ts, user, "newsletter_language", value, text, letter=True)
            else:
                log.says(ts, user, "newsletter_language", value, "")


def write_surveys(log: Log, lives: dict[str, dict[str, list[Spell]]]) -> None:
    """Add the survey of February and April which was typed in on one night in August."""
    for wave, opened in enumerate(SURVEY_WAVES, start=1):
        for user in OTHERS:
            if not log.draw.chance(0.5):
                continue
            ts = opened + log.draw.seconds(0, 4 * 86400)
            for key, spells in lives[user].items():
                if log.draw.chance(0.35):
                    ts += log.draw.seconds(10, 60)
                    log.answers(ts, user, key, spells[held_at(spells, ts)].value, wave)


def write_mara(log: Log) -> list[Spell]:
    """Add the demonstration pair ``u-mara``, ``seat``: window, then aisle for a summer, then window again."""
    dates = (
        (1, 8), (1, 20), (1, 31), (2, 11), (2, 24), (3, 6), (3, 19), (4, 2), (4, 15), (4, 29), (5, 13), (5, 27),
        (6, 12), (7, 2),
    )  # fmt: skip
    cities = ("Oslo", "Vienna", "Porto", "Riga", "Milan", "Dublin", "Prague")
    for i, (month, date) in enumerate(dates):
        ts = day(month, date, 8) + log.draw.seconds(0, 3 * 3600)
        log.says(ts, MARA, "seat", "window", cities[i % len(cities)])
    own_words = (
        (day(7, 9, 8, 12), "aisle", ASSERTS, USER,
         "I tore a ligament in my knee on Sunday. Can I have the aisle to Hamburg, so that I can stretch it?"),
        (day(7, 11, 16, 40), "window", SUPPORTS, AGENT,
         "Kept 14A, a window seat, on the Vienna flight ticketed in June; she said that will do for one short hop."),
        (day(7, 16, 7, 55), "aisle", ASSERTS, USER,
         "The window seat was a mistake, I could not bend the knee. Aisle from now on, please."),
        (day(7, 21, 9, 31), "aisle", ASSERTS, USER,
         "Aisle again for Lisbon, left side if possible. The knee stays in a brace until autumn."),
        (day(8, 4, 10, 3), "aisle", SUPPORTS, AGENT,
         "Booked 9C to Geneva, aisle; traveller confirmed that she needs the leg room."),
        (day(8, 13, 18, 20), "aisle", ASSERTS, USER, "Same as last week: aisle, because of the knee."),
        (day(8, 27, 7, 48), "aisle", ASSERTS, USER,
         "Aisle to Bologna, please. Physiotherapy is going well, by the way."),
        (day(9, 9, 12, 15), "aisle", SUPPORTS, AGENT, "Offered the aisle in row 7 to Athens, accepted at once."),
        (day(9, 23, 8, 36), "aisle", ASSERTS, USER, "One more month with the brace, so the aisle once again."),
        (day(10, 6, 9, 5), "window", ASSERTS, USER,
         "The brace is off! I would love to have my window back on the way to Bergen."),
        (day(10, 10, 17, 42), "window", ASSERTS, USER, "Window seat to Porto, please. The knee holds."),
        (day(10, 17, 8, 9), "window", ASSERTS, USER,
         "And a window to Vienna. Consider me cured, you can change it back in my profile."),
        (day(10, 29, 11, 27), "window", SUPPORTS, AGENT,
         "Booked 11F to Riga, window; traveller sent a photo of the sunrise."),
        (day(11, 12, 7, 33), "window", ASSERTS, USER, "Window as in the old days, this time to Milan."),
        (day(11, 25, 19, 1), "window", ASSERTS, USER, "You know which side I like: window to Dublin."),
        (day(12, 8, 8, 50), "window", SUPPORTS, AGENT, "Offered a window seat to Prague, accepted at once."),
        (day(12, 18, 9, 14), "window", ASSERTS, USER, "Last trip of the year, to Oslo. By the window, of course."),
    )  # fmt: skip
    for ts, value, outcome, actor, text in own_words:
        log.add(ts, MARA, "seat", value, text, outcome=outcome, actor=actor)
    return [
        Spell("window", BEGINNING),
        Spell("aisle", day(7, 6, 0)),
        Spell("window", day(10, 4, 0)),
    ]


def write_tobias(log: Log) -> list[Spell]:
    """Add ``u-tobias``, ``hotel_type``: a well supported value lost to two one-off requests, soon asserted again."""
    ts = day(1, 9)
    while ts < day(8, 1):
        log.says(ts + log.draw.seconds(0, 6 * 3600), TOBIAS, "hotel_type", "boutique", log.draw.one(CITIES))
        ts += timedelta(days=9)
    own_words = (
        (day(8, 12, 8, 22), "chain",
         "Just for the fair in Hamburg, take the chain hotel at the gate. I have to be on the stand at six."),
        (day(8, 19, 9, 40), "chain",
         "The fair has been extended by two nights, so the same chain hotel once more. After that the usual."),
        (day(9, 2, 10, 11), "boutique", "The fair is over. Please find me something small and pretty in Turin."),
        (day(9, 11, 8, 2), "boutique", "Why did you suggest a chain in Porto? I always stay in boutique hotels."),
        (day(9, 24, 17, 17), "boutique", "Boutique, please, in Ljubljana. The one with the courtyard would be lovely."),
        (day(10, 8, 9, 55), "boutique", "As ever: a boutique hotel, Vienna, three nights."),
        (day(10, 22, 8, 41), "boutique", "A small hotel with character in Bordeaux, please."),
        (day(11, 6, 12, 30), "boutique", "Boutique in Prague. You have got it right again, thank you."),
        (day(11, 27, 9, 20), "boutique", "Seville, two nights, a boutique hotel near the river."),
        (day(12, 11, 10, 45), "boutique", "And for the Christmas market in Riga the same kind of place: boutique."),
    )  # fmt: skip
    for when, value, text in own_words:
        log.add(when, TOBIAS, "hotel_type", value, text)
    return [Spell("boutique", BEGINNING)]


def write_ingrid(log: Log) -> list[Spell]:
    """Add ``u-ingrid``, ``airline``: as for u-tobias, but she repeats herself only twice and stays without a value."""
    ts = day(1, 7)
    while ts < day(11, 1):
        log.says(ts + log.draw.seconds(0, 6 * 3600), INGRID, "airline", "Fjordlink", log.draw.one(CITIES))
        ts += timedelta(days=13)
    own_words = (
        (day(11, 10, 9, 12), "Alpenwind",
         "Only this time: Alpenwind to Vienna, my sister booked the seat next to mine."),
        (day(11, 14, 18, 33), "Alpenwind", "And the way home with Alpenwind too, as it is one ticket. Just that trip."),
        (day(12, 3, 8, 27), "Fjordlink", "Fjordlink to Bergen, as in all these years, please."),
        (day(12, 16, 9, 49), "Fjordlink", "Why do you ask? I fly with Fjordlink."),
    )  # fmt: skip
    for when, value, text in own_words:
        log.add(when, INGRID, "airline", value, text)
    return [Spell("Fjordlink", BEGINNING)]


def write_hedda(log: Log) -> list[Spell]:
    """Add ``u-hedda``, ``airport_transfer``: late survey answers, harmless by event time, misleading by arrival."""
    for month, date in ((1, 14), (2, 4), (3, 5), (3, 26), (4, 16), (5, 8), (5, 29), (6, 19)):
        ts = day(month, date, 7) + log.draw.seconds(0, 8 * 3600)
        log.says(ts, HEDDA, "airport_transfer", "train", log.draw.one(CITIES))
    for wave, ts in enumerate((day(2, 19, 10, 4), day(4, 23, 11, 37)), start=1):
        log.answers(ts, HEDDA, "airport_transfer", "train", wave)
    taxi = Spell("taxi", day(7, 5, 0), "since my eyes are too weak for timetables")
    for i, (month, date) in enumerate(((7, 10), (7, 17), (7, 24), (8, 1), (8, 8), (8, 14), (9, 3), (9, 18), (10, 9),
                                       (10, 30), (11, 20), (12, 10))):  # fmt: skip
        ts = day(month, date, 7) + log.draw.seconds(0, 8 * 3600)
        if i < 3:
            log.changes(ts, HEDDA, "airport_transfer", taxi, "train", log.draw.one(CITIES))
        else:
            log.says(ts, HEDDA, "airport_transfer", "taxi", log.draw.one(CITIES))
    return [Spell("train", BEGINNING), taxi]


def write_ilse(log: Log) -> list[Spell]:
    """Add ``u-ilse``, ``meal``: one value, asserted ten times, never contradicted."""
    for month in (1, 2, 3, 4, 5, 6, 8, 9, 10, 12):
        ts = day(month, 10 + month, 8) + log.draw.seconds(0, 8 * 3600)
        text = log.sentence(ASSERT + KEYS["meal"].values["vegetarian"].why, "meal", "vegetarian", ts,
                            log.draw.one(CITIES))  # fmt: skip
        log.add(ts, ILSE, "meal", "vegetarian", text, letter=True)
    return [Spell("vegetarian", BEGINNING)]


def write_orla(log: Log) -> dict[str, list[Spell]]:
    """Add ``u-orla``: five statements of her employer, then five of her duty. Another key never revokes."""
    employer = (
        (day(1, 13, 9, 2), "I travel for Halden Freight, please put that on the tickets."),
        (day(1, 29, 10, 40), "Employer on the form: Halden Freight."),
        (day(2, 12, 8, 15), "Still with Halden Freight, same billing address."),
        (day(3, 3, 14, 26), "The customs letter should name Halden Freight."),
        (day(3, 20, 9, 58), "Halden Freight again, cost centre as before."),
    )
    duty = (
        (day(4, 8, 9, 11), "Purpose of the trip: payroll audit at the Gdańsk depot."),
        (day(4, 24, 11, 5), "I am in charge of the payroll audit now, so put that as my duty."),
        (day(5, 14, 8, 39), "Duty for the visa form: payroll audit."),
        (day(6, 4, 16, 22), "Payroll audit in Riga this time."),
        (day(6, 25, 9, 47), "Last depot before the summer, payroll audit as usual."),
    )
    for when, text in employer:
        log.add(when, ORLA, "employer", "Halden Freight", text)
    for when, text in duty:
        log.add(when, ORLA, "duty", "payroll audit", text)
    return {"employer": [Spell("Halden Freight", BEGINNING)], "duty": [Spell("payroll audit", day(4, 1, 0))]}


def build(seed: int) -> tuple[list[Row], dict[str, dict[str, list[Spell]]]]:
    """Return the rows in order of arrival, and what was really true.

    Parameters
    ----------
    seed : int
        Seed of the PCG64 generator behind every choice.

    Returns
    -------
    rows : list of Row
        Sorted by arrival time, then user and key.
    lives : dict
        Per user and key the spells, oldest first.
    """
    log = Log(Draw(np.random.Generator(np.random.PCG64(seed))))
    lives: dict[str, dict[str, list[Spell]]] = {}
    scripted = {
        MARA: {"seat"},
        TOBIAS: {"hotel_type"},
        INGRID: {"airline"},
        HEDDA: {"airport_transfer"},
        ILSE: {"meal"},
        ORLA: set(KEYS),
    }
    for user in USERS:
        free = [key for key in KEYS if key not in scripted.get(user, set())]
        if user in OTHERS:
            dropped = {free[i] for i in log.draw.rng.permutation(len(free))[: int(log.draw.rng.integers(0, 3))]}
            free = [key for key in free if key not in dropped]
        if user == ORLA:
            lives[user] = {}
            continue
        lives[user] = draw_lives(log.draw, user, free)
        write_ordinary_traveller(log, user, lives[user])
    lives[MARA]["seat"] = write_mara(log)
    lives[TOBIAS]["hotel_type"] = write_tobias(log)
    lives[INGRID]["airline"] = write_ingrid(log)
    lives[HEDDA]["airport_transfer"] = write_hedda(log)
    lives[ILSE]["meal"] = write_ilse(log)
    lives[ORLA] = write_orla(log)
    write_sync_job(log)
    write_surveys(log, lives)
    rows = [row for row in log.rows if BEGINNING <= row.ts < END]
    return sorted(rows, key=lambda row: (row.ingested_at, row.ts, row.user, row.key)), lives


def stamp(ts: datetime, *, summer_time: bool = False) -> str:
    """Return ISO 8601 text with ``Z``, or with ``+02:00`` for a traveller whose device sends summer time."""
    if summer_time:
        return ts.astimezone(timezone(timedelta(hours=2))).strftime("%Y-%m-%dT%H:%M:%S+02:00")
    return ts.strftime("%Y-%m-%dT%H:%M:%SZ")


def sends_summer_time(row: Row) -> bool:
    """Return whether a row carries its time with an offset: own messages of a few travellers in the summer months."""
    return row.user in SUMMER_TIME_USERS and row.actor == USER and day(4, 1, 0) <= row.ts < day(10, 1, 0)


def write(to: Path, seed: int) -> tuple[int, Path]:
    """Write the log to ``to`` and the truth beside it; return the number of rows and the path of the truth."""
    rows, lives = build(seed)
    with to.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(COLUMNS)
        for number, row in enumerate(rows, start=1):
            ts = stamp(row.ts, summer_time=sends_summer_time(row))
            said = (row.user, row.key, row.value, row.outcome, row.text)
            out.writerow((ts, *said, phase_of(row.ts), row.actor, f"msg-{number:06d}", stamp(row.ingested_at)))
    truth = to.with_name(f"{to.stem}_truth.csv")
    with truth.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(TRUTH_COLUMNS)
        for user in sorted(lives):
            for key in sorted(lives[user]):
                spells = lives[user][key]
                ends = [stamp(spell.start) for spell in spells[1:]] + [""]
                out.writerows(
                    (user, key, spell.value, stamp(spell.start), end) for spell, end in zip(spells, ends, strict=True)
                )
    return len(rows), truth


def main(argv: Sequence[str] | None = None) -> None:
    """Parse the command line and write both files."""
    parser = argparse.ArgumentParser(description="Write the invented travel assistant's log and its truth file.")
    parser.add_argument(
        "--to",
        type=Path,
        default=Path(__file__).with_name("travel_preferences.csv"),
        help="where the log goes; the truth is written beside it as <name>_truth.csv",
    )
    parser.add_argument("--seed", type=int, default=SEED, help="seed of the generator (default: %(default)s)")
    given = parser.parse_args(argv)
    rows, truth = write(given.to, given.seed)
    logging.getLogger(__name__).info("%d rows in %s, truth in %s", rows, given.to, truth)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main()
