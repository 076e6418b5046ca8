"""The endpoint that a failing line names as the one that did not answer: a host with its port, or a proxy's backend."""

import re
from collections import Counter

_HOST = r"(?:\[[0-9a-fA-F:]{2,45}\]|[A-Za-z0-9](?:[\w-]{0,62}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[\w-]{0,62}[A-Za-z0-9])?){0,8})"
_ENDPOINT = rf"{_HOST}(?::\d{{2,5}})?"
_WITH_PORT = rf"{_HOST}:\d{{2,5}}"
# Most telling first: a field for it, then words that are about the call, then any address with a port.
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\bupstream: \"(?:\w+://)?(?P<at>unix:[^\s:\"]+|{_ENDPOINT})",
        rf"\b(?:upstream(?:_(?:addr|host))?|backend|peer)=\"?(?:\w+://)?(?P<at>{_WITH_PORT})",
        rf"\battempt to connect to (?P<at>{_WITH_PORT})",
        r"\bServer (?P<at>[\w.-]+/[\w.-]+) is (?:going )?DOWN\b",
        r"\b(?:backend|proxy) (?P<at>[\w.-]+) has no server available",
        r"\s(?P<at>[\w.-]+)/<NOSRV>\s",
        rf"\bHTTPS?ConnectionPool\(host='(?P<host>{_HOST})', port=(?P<port>\d+)",
        rf"\b(?:host(?: name)?|server at)[ =:]+[\"']?(?P<host>{_HOST})[\"']?(?: \([\w.:]+\))?(?:,? (?:and )?| and accepting TCP/IP connections on )port[ =:]+[\"']?(?P<port>\d{{2,5}})",
        rf"\b(?:connect(?:ing|ion)?|dial(?:ing)?)(?: refused)?(?: error)?:?(?: (?:to|tcp|tcp4|tcp6|ECONNREFUSED|ETIMEDOUT|EHOSTUNREACH|error|with))*[:\s]+(?:\w+://)?(?:[^@/\s]{{1,100}}@)?(?:{_HOST}/)?(?P<at>{_WITH_PORT})",
        rf"\b[a-z][\w+.-]{{1,20}}://(?:[^@/\s]{{1,100}}@)?(?P<at>{_ENDPOINT})",
        rf"\b(?:to|at|on) ['\"]?(?P<at>{_WITH_PORT})(?!\w|[.:]\w)",
        rf"(?<![\w.:/-])(?P<at>(?:\d{{1,3}}(?:\.\d{{1,3}}){{3}}|{_HOST}\.[a-z]{{2,24}}):\d{{2,5}})(?!\w|[.:]\w)",
    )
)
_OWN = re.compile(r"(?:client|remote|rhost|peer_addr|from)[ =:]+\S*$", re.IGNORECASE)
_SOURCE_FILE = re.compile(r".+\.(?:java|kt|scala|py|go|js|mjs|ts|rb|php|cs|rs|cc?|cpp|h|ex|erl):\d+")
_LONGEST = 4000
_FEW = 3
_FREQUENT = 0.1


def find_called_endpoint(text: str) -> str:
    """`10.0.0.7:8080`, `orders-back/app2`; empty where the line names none."""
    text = text[:_LONGEST]
    for form in _FORMS:
        for found in form.finditer(text):
            groups = found.groupdict()
            named = groups.get("at") or f"{groups['host']}:{groups['port']}"
            is_own = _OWN.search(text, max(0, found.start() - 30), found.start())
            if not is_own and not _SOURCE_FILE.fullmatch(named):
                return named
    return ""


def name_endpoints(endpoints: Counter[str]) -> str:
    """The endpoints that the lines name often, at most three, most frequent first; empty where they name none."""
    whole = endpoints.total()
    often = sorted(
        (name for name, count in endpoints.items() if count >= _FREQUENT * whole),
        key=lambda name: (-endpoints[name], name),
    )
    return " and ".join(often) if len(often) <= _FEW else ""
