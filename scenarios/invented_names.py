"""Invented names: services, tables, pods, versions, people. Nothing here is taken from a real system."""

from random import Random

_HEADS = [
    "bar",
    "cel",
    "dor",
    "fen",
    "gar",
    "hol",
    "jor",
    "kel",
    "lum",
    "mar",
    "nor",
    "pel",
    "quor",
    "ral",
    "sol",
    "tam",
    "ul",
    "ven",
    "wyn",
    "zor",
]
_TAILS = [
    "ado",
    "bek",
    "dil",
    "eth",
    "fas",
    "gon",
    "ima",
    "kor",
    "lis",
    "mun",
    "nel",
    "osk",
    "pra",
    "rin",
    "sta",
    "tor",
    "una",
    "vik",
    "xel",
    "yam",
]
_SUFFIXES = {
    "edge": ("-web", "-gateway", "-front", "-edge", ""),
    "app": ("-api", "-service", "", "-svc", "-worker", ""),
    "database": ("-db", "-pg", "-primary", "-store", ""),
    "cache": ("-cache", "-redis", ""),
}
_TABLES = (
    "accounts",
    "tickets",
    "parcels",
    "readings",
    "invoices",
    "sessions",
    "grants",
    "routes",
    "offers",
    "ledgers",
)
_PEOPLE = (
    "a.kowalczyk",
    "b.adeyemi",
    "c.lindgren",
    "d.moreau",
    "e.castillo",
    "f.nakamura",
    "g.oconnor",
    "h.singh",
)
_HASH = "bcdfghjklmnpqrstvwxz2456789"


def invent_word(random: Random) -> str:
    """Two or three syllables."""
    return random.choice(_HEADS) + "".join(random.choice(_TAILS) for _ in range(random.choice((1, 1, 2))))


def invent_service_name(random: Random, role: str, taken: set[str]) -> str:
    """A name that is not in `taken` (and is put there); its suffix may or may not tell the role."""
    while True:
        name = invent_word(random) + random.choice(_SUFFIXES[role])
        if name not in taken:
            taken.add(name)
            return name


def choose_table_names(random: Random, count: int) -> list[str]:
    """`count` different table names."""
    return random.sample(_TABLES, count)


def choose_person(random: Random) -> str:
    """Who made a change."""
    return random.choice(_PEOPLE)


def draw_letters(random: Random, count: int) -> str:
    """A suffix as Kubernetes draws it."""
    return "".join(random.choice(_HASH) for _ in range(count))


def invent_pod_names(random: Random, service: str, count: int) -> tuple[str, ...]:
    """Names of `count` pods of one replica set."""
    generation = draw_letters(random, 10)
    return tuple(f"{service}-{generation}-{draw_letters(random, 5)}" for _ in range(count))


def invent_versions(random: Random) -> tuple[str, str]:
    """A version and the one that follows it."""
    major, minor, patch = random.randrange(1, 6), random.randrange(40), random.randrange(9)
    after = f"{major}.{minor + 1}.0" if random.random() < 0.5 else f"{major}.{minor}.{patch + 1}"
    return f"{major}.{minor}.{patch}", after
