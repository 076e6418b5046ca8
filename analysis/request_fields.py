"""What a line about an HTTP request says of it besides its status: the path, and the upstream that should have answered."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from opsleuth.analysis.log_templates import mask_log_line
from opsleuth.analysis.records import LogLine

_REQUEST_LINE = re.compile(r"(?P<method>[A-Z]{3,7}) (?P<target>\S+)(?: HTTP/[\d.]+)?")
_QUOTED_REQUEST = re.compile(r"\"(?P<method>[A-Z]{3,7}) (?P<target>/[^\s\"]*) HTTP/[\d.]+\"")
_ORIGIN = re.compile(r"(?<![\w+.-])[a-z][\w+.-]{0,40}://[^/\s]+")
_REQUEST_FIELDS = ("request", "request_line", "http_request")
_PATH_FIELDS = ("path", "uri", "request_uri", "url", "target", "http.target", "url.path", "http.path", "route", "http.route", "endpoint")  # fmt: skip
_METHOD_FIELDS = ("method", "request_method", "http_method", "verb", "http.method", "http.request.method")
_UPSTREAM_FIELDS = ("upstream_addr", "upstream", "upstream_host", "upstream_cluster", "backend_name", "backend", "server_name", "server", "proxy_host")  # fmt: skip
_UPSTREAM_OF_ERROR = re.compile(r"\bupstream: \"(?:\w+://)?([^/\"]+)")
# `upstream="10.0.0.7:8080"`, `upstream_addr=10.0.0.7:8080`: fields that a log's own format writes into the line.
_UPSTREAM_IN_TEXT = re.compile(
    r"(?<![\w.-])(?:upstream(?:_(?:addr|host|cluster))?|backend(?:_name)?|proxy_host)=(?:\"([^\"]{0,200})\"|([^\s\",;]{1,200}))"
)
_ACCESS_LOG = re.compile(r"(?:.*[-_.])?access(?:[-_.]?log)?")
_ERROR_LOG = re.compile(r"(?:.*[-_.])?error(?:[-_.]?log)?")
_NOTHING = frozenset(("", "-", "<NOSRV>", "null", "None"))
MOST_NAMED = 3
_LONGEST = 80


def name_requests(service: str) -> str:
    """`requests of cart`; of a log that only has the usual name of one, `requests in access.log`."""
    return f"requests in {service}.log" if is_access_log(service) else f"requests of {service}"


def is_access_log(service: str) -> bool:
    """Whether the name is not that of a service but of the file that a server writes its requests to."""
    return _ACCESS_LOG.fullmatch(service) is not None


def name_server(service: str) -> str:
    """Who to look at: the service, or of a log that only has the usual name of a web server's, that server."""
    is_file = is_access_log(service) or _ERROR_LOG.fullmatch(service) is not None
    return f"the server of {service}.log" if is_file else service


def find_request_path(line: LogLine) -> str:
    """`POST /orders/<n>`, without the query; empty where neither the line's fields nor its text name a path."""
    fields = line.extra or {}
    if (found := _REQUEST_LINE.match(_first_text(fields, _REQUEST_FIELDS))) or (
        found := _QUOTED_REQUEST.search(line.message)
    ):
        method, target = found["method"], found["target"]
    else:
        method, target = _first_text(fields, _METHOD_FIELDS), _first_text(fields, _PATH_FIELDS)
    path = _ORIGIN.sub("", target).partition("?")[0].partition("#")[0]
    return f"{method} {_mask_path(path)}".strip()[:_LONGEST] if path.startswith("/") else ""


def find_upstream(line: LogLine) -> str:
    """The server that the request was passed to, as the fields or the line name it; of several the last; empty where none does."""
    text = _first_text(line.extra or {}, _UPSTREAM_FIELDS)
    if not text and (found := _UPSTREAM_IN_TEXT.search(line.message)):
        text = found[1] or found[2] or ""
    last = re.split(r"\s*[,:]\s+", text)[-1].strip()
    return "" if last in _NOTHING else last[:_LONGEST]


def find_upstream_of_error(line: LogLine) -> str:
    """The upstream that an error of nginx names; empty for other lines."""
    found = _UPSTREAM_OF_ERROR.search(line.message)
    return found[1][:_LONGEST] if found else ""


def describe_counts(counts: Counter[str], whole: int) -> str:
    """`all of them POST /charge`, or the most frequent with their counts; empty where nothing is known."""
    if not counts:
        return ""
    ordered: Sequence[tuple[str, int]] = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    if len(ordered) == 1 and ordered[0][1] == whole:
        return f"all of them {ordered[0][0]}"
    named = ", ".join(f"{name} ({count})" for name, count in ordered[:MOST_NAMED])
    rest = len(ordered) - MOST_NAMED
    return named + (f" and {rest} more" if rest > 0 else "")


def _mask_path(path: str) -> str:
    """The path with ids and numbers masked, part by part, so that requests for one thing count together."""
    return "/".join(
        mask_log_line(part) if re.search(r"\d", part) and not _VERSION.fullmatch(part) else part
        for part in path.split("/")
    )


_VERSION = re.compile(r"v\d{1,2}", re.IGNORECASE)


def _first_text(fields: Mapping[str, object], names: Sequence[str]) -> str:
    for name in names:
        value: object = fields.get(name)
        if isinstance(value, Mapping):
            continue
        if value is not None and str(value) not in _NOTHING:
            return str(value)
    return ""
