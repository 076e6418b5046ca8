"""Made-up secrets in the forms in which real ones are found, built at run time so that no secret scanner fires on this repository.

A shape describes a token as its vendor documents it: <w36> is 36 letters and digits, <h40> lower-case hex, <H40> upper-case hex, <d10> digits, <u16> upper-case letters and
digits, <l20> lower-case letters and digits, <b40> base64, <s20> URL-safe base64, <uuid> a UUID, <pw> a password as people choose it, <jwt> a signed token.
"""

import base64
import json
import random
import re
import string
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

_ALPHABETS = {
    "w": string.ascii_letters + string.digits,
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "d": string.digits,
    "u": string.ascii_uppercase + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "s": string.ascii_letters + string.digits + "-_",
}
_HOLE = re.compile(r"<([whHdulbs])(\d+)>|<(uuid|pw|jwt|pem)>")
_LINES_OF_PEM = 6


@dataclass(frozen=True)
class PlantedSecret:
    """One text with one secret in it; `needles` are the spellings that may not survive redaction."""

    form: str
    text: str
    needles: tuple[str, ...]


@dataclass(frozen=True)
class SecretForm:
    """A form to plant: `template` has {} where the secret goes, `shape` is how it looks, `encode` is how it is spelled in the text."""

    name: str
    template: str
    shape: str = "<pw>"
    encode: Callable[[str], str] = str


def _signed_token(rng: random.Random) -> str:
    def encode(part: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(part, separators=(",", ":")).encode()).decode().rstrip("=")

    head = encode({"alg": "RS256", "kid": make_secret("<s20>", rng)})
    return f"{head}.{encode({'iss': 'kubernetes/serviceaccount', 'sub': 'system:serviceaccount:shop:checkout'})}.{make_secret('<s120>', rng)}"


def _password(rng: random.Random) -> str:
    """As people choose them: letters of both cases, digits, one sign that needs no quoting."""
    letters = [rng.choice(_ALPHABETS["w"]) for _ in range(rng.randint(9, 18))]
    letters[rng.randrange(1, len(letters) - 1)] = rng.choice("!_.-*+")
    return "".join([rng.choice(string.ascii_letters), *letters, rng.choice(string.digits)])


def _fill_hole(hole: re.Match[str], rng: random.Random) -> str:
    alphabet, length, named = hole.groups()
    if named == "uuid":
        return str(uuid.UUID(int=rng.getrandbits(128), version=4))
    if named == "pw":
        return _password(rng)
    if named == "jwt":
        return _signed_token(rng)
    if named == "pem":
        return "\n".join(
            "".join(rng.choice(_ALPHABETS["b"]) for _ in range(64)) for _ in range(_LINES_OF_PEM)
        )
    return "".join(rng.choice(_ALPHABETS[alphabet]) for _ in range(int(length)))


def make_secret(shape: str, rng: random.Random) -> str:
    """A secret of this shape."""
    return _HOLE.sub(lambda hole: _fill_hole(hole, rng), shape)


def _needles(secret: str, spelled: str) -> tuple[str, ...]:
    """The secret, each of its lines when it has several, and the spelling that stands in the text."""
    return tuple(dict.fromkeys([*secret.split("\n"), *spelled.split("\n")]))


def plant_secret(form: SecretForm, rng: random.Random) -> PlantedSecret:
    """The form, filled in."""
    secret = make_secret(form.shape, rng)
    spelled = form.encode(secret)
    return PlantedSecret(
        form.name, make_secret(form.template, rng).replace("{}", spelled), _needles(secret, spelled)
    )


def plant_all(forms: Iterable[SecretForm], seed: int) -> Iterator[PlantedSecret]:
    """Each form once."""
    rng = random.Random(seed)
    return (plant_secret(form, rng) for form in forms)
