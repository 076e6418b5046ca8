"""Secrets that are announced by a name: `password=`, `--token`, `<secret>`, `"api_key":`, `IDENTIFIED BY`.

After a strong name everything is a secret. After a weak one what is long enough, and after a vague one what also looks random: letters
and digits, no words. Counts, states and names of objects are not secrets.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from opsleuth.redaction.secret_patterns import (
    LOOKS_CHOSEN,
    FoundSecret,
    compile_regex,
    find_literals,
    is_secret,
    lower_keeping_length,
)

_FOREIGN = (
    "kennwort", "mot de passe", "motdepasse", "mot_de_passe", "senha", "wachtwoord", "lösenord", "adgangskode", "passord", "hasło", "heslo", "şifre",
    "парол", "пароль", "密码", "密碼", "口令", "パスワード", "비밀번호", "암호",
)  # fmt: skip
"""What a password is called in other languages than English."""
_STRONG = (
    "password",
    "passwd",
    "passphrase",
    "passwort",
    "passcode",
    "pwd",
    "secret",
    "pass",
    "contraseña",
    "requirepass",
    "masterauth",
    "authtok",
    "psk",
    *_FOREIGN,
)
_PATS = ("_pat", "-pat", "pat")
_SHORT = ("bindpw", "rootpw", "userpw", "dbpw", "adminpw", "_pw", "-pw")
_KEYS = tuple(
    f"{word}{joint}key"
    for word in ("api", "access", "secret", "private", "signing", "encryption", "account", "auth", "master", "shared", "storage", "application",
        "insert", "consumer", "webhook", "deploy", "ingest", "write", "integration", "subscription", "admin", "session", "client", "bot", "jwt", "hmac",
        "cipher", "aes", "crypto", "preshared", "pre-shared", "pre_shared", "unseal", "recovery", "wrapping", "unlock", "fernet")
    for joint in ("", "_", "-")
)  # fmt: skip
_WEAK = (
    "token",
    *_KEYS,
    "credential",
    "credentials",
    "creds",
    "auth",
    "x-amz-signature",
    "_authtoken",
    "client-key-data",
    "cookie_secret",
)
_VAGUE = (
    *(f"{word}{joint}key" for word in ("routing", "license", "service", "app", "user", "function", "functions", "auth", "install") for joint in ("", "_", "-")),
    "&sig", "?sig", ";sig", "&code", "?code", "&key", "?key", "signature", "jwt", "session", "sessionid", "session_id", "session-id",
    "authorization_code", *_PATS, "&appid", "?appid", "_salt", "-salt", "_community", "sonar.login", "logged_in_key", "nonce_key",
)  # fmt: skip
_SPELLED = (
    dict.fromkeys(_VAGUE, "vague")
    | dict.fromkeys(_WEAK, "weak")
    | dict.fromkeys((*_STRONG, *_SHORT), "strong")
)
NAMES = tuple(_SPELLED)
"""What a telling name ends with."""
NAME_MARKS = (
    "pass",
    "pwd",
    "secret",
    "token",
    "key",
    "cred",
    "auth",
    "jwt",
    "session",
    "identified",
    "contraseña",
    "signature",
    "_pat",
    "-pat",
    "pat=",
    *_SHORT,
    *(n for n in NAMES if n[0] in "&?;"),
    "community",
    "psk",
    "salt",
    "sonar.login",
    *_FOREIGN,
)

_WHOLE = frozenset(("auth", "pat", "jwt", "session", "signature", "psk"))
"""Names that count as words of their own only: not the end of `oauth`."""
_NO_SECRET_BEFORE = re.compile(r"(?:checksum|hash|sha\d{1,3}|digest)[/._-]\Z|\barn:[\w:-]{1,100}:\Z")
"""Before the name: a checksum of a secret (Helm's `checksum/secret`), or an address of one (`arn:aws:secretsmanager:...:secret:`)."""
_NOT_PASS = ("bypass", "compass", "trespass", "overpass", "underpass", "surpass", "encompass", "multipass")
_SUFFIX = (
    r"(?:[_-](?i:base|data|value|val|plain|text|b64|base64|prod|production|staging|stage|dev|test|live|old|new|primary|secondary|current|previous"
    r"|default|admin|main|\d{1,3})|Base|Data|Value|Text|Prod|Production|Staging|Dev|Old|New|\d{1,3})?"
)
_SUFFIX_AT_END = rf"{_SUFFIX}\Z"

_WRAPPED = r"(?:(?:[BNEUbnurf]{1,2}|<<|(?:Some|Ok|Just|String|Secret|SecretStr|Secret\.new|Password|SecretString|Redacted|Text|Value)[ ]?\(?)(?=\\*+[\"']))?"
"""What stands around a quoted value: `b'abc'`, `N'abc'`, `<<"abc">>`, `Some("abc")`."""

# The quotes may be escaped, once or more (JSON within JSON); a quote that is never closed runs to the line's end.
_QUOTED = r"""
      "(?P<double>(?:[^"\\\r\n]|\\.)*+)"
      | '(?P<single>(?:[^'\\\r\n]|\\.)*+)'
      | (?P<quote>\\+["'])(?P<escaped>[^\r\n]*?)(?<!\\)(?P=quote)
      | \\*+["'](?P<open>[^\r\n]++)"""
_VALUE = rf"""(?x)
    {_SUFFIX}
    (?: </key>\s{{0,40}}<string>(?P<plist>[^<>]{{1,4000}})<
      | (?:[ \t][^<>\r\n]{{0,200}})?>(?:<!\[CDATA\[)?(?P<element>[^<>\]]{{1,4000}})(?:\]\]>)?</
      | (?: (?:\[\])?\\*+["'\])]{{0,2}}[ \t]{{0,8}} (?P<sign> :[ \t]{{0,4}}(?:str|String|string|bytes|SecretStr)\b[ \t]{{0,4}}= | =>|->|→|:=|==?|: | ["',]?\s{{0,40}}(?:\{{\s{{0,8}})?\\*+["']?(?:default\\*+["']?\s{{0,4}}[=:]|value\\*+["']?\s{{0,4}}[=:])
                 | ,(?=<<) | \.{{3,}} | (?<=["'])(?P<comma>,)(?=(?:\s{{0,40}}|\s{{0,4}}<<)\\*["']) )
              (?:[ \t]{{0,8}}(?:\[|@)(?=\\*["']))?
              [ \t]{{0,8}}(?P<block>[|>][+-]?[ \t]*(?:\r?\n|\\{{1,4}}n)[ \t]{{1,40}})?[ \t]{{0,8}} )
        (?: {_WRAPPED}(?:{_QUOTED})
          | (?P<bare>(?:[^\s"'&,;\\<]|<(?!/)|[,;](?!\w{{1,40}}=)|\\(?!["']))++)
        )
    )"""
_SPACED = r"""(?x)\\*+["']?(?:,\s{0,4}|\s{1,4})(?:"(?P<double>[^"\r\n]{1,400})"|'(?P<single>[^'\r\n]{1,400})'|\\*+["']?(?P<bare>[^\s"'\\<>|,;&-][^\s"'\\<>|]{1,400}))"""
_LOOKS_RANDOM = r"(?=[^\s\"'`]{0,80}\d)(?=[^\s\"'`]{0,80}[a-z])(?=[^\s\"'`]{0,80}[A-Z])"
_LINE_END = r"[ \t]*(?:[\r\n\"'\\]|\Z)"
_OF_WHOM = r"(?:(?:for|of)\s{1,4}(?:[\w.@-]{1,60}\s{1,4}){1,3})?"
_PROSE = rf"(?i)\s{{1,4}}{_OF_WHOM}(?:is|was|=|to|:)(?::|\s)[ \t]{{0,4}}[\"'`]?(?P<value>{LOOKS_CHOSEN}[^\s\"'`,;]{{6,200}})"
_PROSE_OF = rf"(?i)\s{{1,4}}(?:for|of)\s{{1,4}}(?:[\w.@-]{{1,60}}\s{{1,4}}){{0,2}}[\w.@-]{{1,60}}:[ \t]{{1,4}}(?P<value>{LOOKS_CHOSEN}\S{{6,200}})"
_DIRECTIVES: tuple[tuple[str, str], ...] = (
    (
        "identified",
        r"(?i)\s{1,4}(?:with\s{1,4}\S{1,60}\s{1,4})?(?:by|as)\s{1,4}(?:password\s{1,4})?\\*+'(?P<value>(?:[^'\\\r\n]|\\.)++)\\*'",
    ),
    (
        "password",
        r"(?i)(?:\s{1,4}for\s{1,4}\S{1,60}\s{0,4}=\s{0,4}|\s{1,4}|\s{0,4}\()\(?\\*+'(?P<value>(?=[^']{0,400}\w)[^'\\\r\n]{1,400})\\*+'",
    ),
    (
        "password",
        rf"(?:(?<=\s.{{8}})|(?<=^.{{8}}))\s{{1,4}}(?P<value>{LOOKS_CHOSEN}[^\s\"'(){{}}:,;=\\]{{6,200}}){_LINE_END}",
    ),
    ("password", rf"\s{{1,4}}\\*+\"(?P<value>{LOOKS_CHOSEN}[^\"\\\r\n]{{6,400}})\\*+\""),
    (
        "password",
        rf"\s{{1,4}}(?P<value>{_LOOKS_RANDOM}[^\s\"'(){{}}:,;=\\]{{8,200}})(?=\s{{1,4}}[a-z]|[,;.]\s|\))",
    ),
    *(
        (
            word,
            rf":[ \t]{{0,8}}(?:\r?\n|\\{{1,4}}n)[ \t]{{0,40}}(?P<value>{LOOKS_CHOSEN}[^\s\"':=\\]{{6,200}}){_LINE_END}",
        )
        for word in ("password", "passphrase", "passwd")
    ),
    (
        "auth",
        r"=(?:[\w.]{0,60})?\(\s{0,4}\\*+[\"'][^\"'\\]{0,100}\\*+[\"'],\s{0,4}\\*+[\"'](?P<value>[^\"'\\\r\n]{1,400})",
    ),
    *(
        (word, r"6?\s{1,4}\"?(?P<value>(?!public\b)[^\s\"']{1,200})")
        for word in ("snmp-server community", "rocommunity", "rwcommunity")
    ),
    *((word, r"\s{1,4}[05789]\s{1,4}(?P<value>[^\s\"']{4,200})") for word in ("secret", "password")),
    ("requirepass", r"\s{1,4}\\*[\"']?(?P<value>[^\s\"'\\]{1,400})"),
    ("masterauth", r"\s{1,4}\\*[\"']?(?P<value>[^\s\"'\\]{1,400})"),
    *(
        (word, r"(?:\s{1,4}\d{1,2})?:\s{1,4}(?P<value>[\w+/=.-]{20,400})")
        for word in ("unseal key", "recovery key", "root token")
    ),
    ("auth-pass", r"\s{1,4}\S{1,60}\s{1,4}(?P<value>[^\s\"']{1,400})"),
    *(
        (word, _PROSE)
        for word in (
            "password",
            "passphrase",
            "passcode",
            "passwd",
            "pwd",
            "secret",
            "token",
            "api key",
            "api-key",
            "api_key",
        )
    ),
    *((word, _PROSE_OF) for word in ("password", "passphrase", "passcode")),
)
"""Words of configuration, SQL and prose that take a secret without a sign, and what follows them."""
_DESCRIBED = r"<[^<>\r\n]{1,200}>|\d{1,12} bytes\b"
"""What kubectl shows in the place of a secret: `16 bytes`, `<set to the key 'password' in secret 'db'>`."""
_GROUPS = ("double", "single", "escaped", "open", "bare", "plist", "element")
_LONG_OR_NUMBERED = r"\d|.{20}"
_RANDOM = r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[\w+/=.~%:-]{16,}"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_GOES_ON = ("password", "passwd", "passphrase")
_ABOUT_IT = (
    "policy|policies|length|len|min|max|file|path|reset|changed|change|at|expires|expiry|expired|url|uri|id|name|count|field|attempts|strength|required"
    "|enabled|encryption|scheme|method|mode|source|store|provider|grace|locked|complexity|algorithm|type|hint|rotation|ttl|version|age|history|status|error|errors|ref|manager|encoder|validator|prompt|grant|days|check|set|column"
)
_REST_OF_NAME = rf"(?:_(?!(?:{_ABOUT_IT})(?:_|\b))[a-z]{{2,20}}){{1,3}}(?=[\"'\]]{{0,2}}[ \t]{{0,8}}[=:])"
_OBJECT_NAME = r"(?:[a-z0-9.-]{1,60}/)?(?:[a-z0-9]{1,40}-){0,6}(?:secrets?|credentials?|creds|tls|tokens?|keys?|certs?|config|auth|regcred|passwords?)(?:-[a-z0-9]{1,40}){0,3}"
_STOPWORDS = frozenset(
    [
        "is",
        "was",
        "are",
        "it",
        "to",
        "or",
        "and",
        "the",
        "a",
        "an",
        "in",
        "on",
        "of",
        "for",
        "from",
        "with",
        "not",
        "no",
        "if",
        "when",
        "file",
        "flag",
        "option",
        "must",
        "be",
        "should",
        "has",
        "have",
        "value",
        "via",
        "as",
        "at",
        "by",
        "instead",
        "authentication",
        "password",
        "expiry",
    ]
)


@lru_cache(maxsize=4_096)
def strength_of(key: str) -> str | None:
    """`strong`, `weak` or `vague` if a field of this name holds secrets, else None."""
    for name in (key, compile_regex(_SUFFIX_AT_END).sub("", key, count=1)):
        low = lower_keeping_length(name)
        for ending, strength in _SPELLED.items():
            if low.endswith(ending) and _is_whole(name, len(name) - len(ending), ending):
                return strength
    return None


OBJECT_KIND = frozenset({"secret", "secrets"})
"""Names that are a secret's as well as that of a kind of object, of which there is a count."""
_COUNT_DIGITS = 3


def is_object_count(value: object, name: str) -> bool:
    """Whether a number stands under a kind of object, as its API spells it: so many of them there are."""
    return isinstance(value, int) and name.lower() in OBJECT_KIND and name[:1] == "S" and 0 <= value < 100_000


def is_named_secret(value: str, strength: str, name: str = "") -> bool:
    """Whether the value of a field with a telling name is a secret."""
    if strength == "vague":
        return bool(compile_regex(_RANDOM).fullmatch(value)) and not compile_regex(_UUID).fullmatch(value)
    if not is_secret(value, weak=strength == "weak"):
        return False
    low = lower_keeping_length(name)
    count = value.rstrip(";,.)")
    if low in OBJECT_KIND and count.isdigit() and len(count) <= _COUNT_DIGITS:
        return False
    if low.endswith("secret") and compile_regex(_OBJECT_NAME).fullmatch(value):
        return False
    return not (low.endswith(("pass", "pwd")) and _is_count_or_folder(value))


def find_named_values(text: str) -> Iterator[FoundSecret]:
    """Values after `password=`, `"api_key":` and similar ones."""
    done = 0
    for at, name in sorted(find_literals(lower_keeping_length(text), NAMES)):
        if at < done or not _is_whole(text, at, name):
            continue
        strength = _SPELLED[name]
        match, group = _match_value(text, at, name)
        if match is None:
            continue
        if group == "bare" and compile_regex(_DESCRIBED).match(text, match.start(group)):
            continue
        value = match[group].strip() if group in ("element", "plist") else match[group]
        listed = "vague" if match.groupdict().get("comma") and not _is_constant(text, at) else strength
        if _is_prose(match, group, strength) or not is_named_secret(value, listed, name):
            done = max(done, match.end() if name == "pwd" else 0)
            continue
        start = match.start(group) + match[group].index(value)
        done = match.end()
        yield FoundSecret(start, start + len(value), "password" if strength == "strong" else "token")


def find_directives(text: str) -> Iterator[FoundSecret]:
    """Secrets after words of configuration, SQL and prose."""
    low = lower_keeping_length(text)
    for word, pattern in _DIRECTIVES:
        done = 0
        for at, _ in find_literals(low, (word,)):
            match = compile_regex(pattern, re.MULTILINE).match(text, at + len(word)) if at >= done else None
            if match and is_secret(match["value"]) and match["value"].lower() not in _STOPWORDS:
                done = match.end("value")
                yield FoundSecret(*match.span("value"), "password")


def _match_value(text: str, at: int, name: str) -> tuple[re.Match[str] | None, str]:
    """What follows the name, and the group of the match that is the value."""
    end = at + len(name)
    match = compile_regex(_VALUE).match(text, end) or _match_long_name(text, name, end)
    if (match is None or match["comma"]) and _is_option(text, at):
        match = compile_regex(_SPACED).match(text, end)
        if match and (match["bare"] or "").lower() in _STOPWORDS:
            return None, ""
    if match is None:
        return None, ""
    return match, next(
        group for group in _GROUPS if group in match.re.groupindex and match[group] is not None
    )


def _match_long_name(text: str, name: str, end: int) -> re.Match[str] | None:
    """What follows a password whose name goes on, as `password_super_secure`; not what only mentions one, as `password_policy`."""
    if name not in _GOES_ON:
        return None
    rest = compile_regex(_REST_OF_NAME).match(text, end)
    return compile_regex(_VALUE).match(text, rest.end()) if rest else None


def _is_constant(text: str, at: int) -> bool:
    """Whether the name is that of a constant of PHP: `define('DB_PASSWORD', 'abc')`; in other lists the next item is another name."""
    before = text[max(0, at - 60) : at]
    return (
        "define(" in before and compile_regex(r"define\(\s{0,4}\\*[\"']\w{0,40}\Z").search(before) is not None
    )


def _is_option(text: str, at: int) -> bool:
    """Whether the name appears in an option: `--db-password`, `-pass`, or after ENV in a Dockerfile."""
    start = at
    while start > max(0, at - 60) and (text[start - 1].isalnum() or text[start - 1] in "-_."):
        start -= 1
    return (
        text[start] == "-"
        or text[max(0, start - 4) : start] == "ENV "
        or text[max(0, start - 5) : start] == "setx "
    )


def _is_prose(match: re.Match[str], group: str, strength: str) -> bool:
    """A short bare word after a weak name and a colon is prose: `unexpected token: identifier`."""
    if group != "bare" or match.groupdict().get("sign") != ":":
        return False
    if strength == "strong":
        return match[group].lower() in _STOPWORDS
    return not compile_regex(_LONG_OR_NUMBERED).search(match[group])


def _is_whole(text: str, at: int, name: str) -> bool:
    """Whether the name is a word of its own, or the end of a longer one where that tells the same."""
    before = text[at - 1 : at] if at else ""
    if before in ("/", ".", "_", "-", ":") and _NO_SECRET_BEFORE.search(
        lower_keeping_length(text[max(0, at - 120) : at])
    ):
        return False
    if name == "pass":
        return text[max(0, at - 4) : at] != "--- " and not lower_keeping_length(
            text[max(0, at - 5) : at + 4]
        ).endswith(_NOT_PASS)
    if name not in _WHOLE:
        return True
    return not before.isalpha() or (before.islower() and text[at].isupper())


def _is_count_or_folder(value: str) -> bool:
    return value.rstrip(";,.)").isdigit() or value.startswith(("/", "~/")) or (value[1:3] == ":\\")
