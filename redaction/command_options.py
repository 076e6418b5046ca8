"""Secrets in command lines: options that only one program takes for a password, and user:password pairs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from opsleuth.redaction.secret_patterns import FoundSecret, compile_regex, is_secret

_ATTACHED = r"-p\\?[\"']?(?P<value>[^\s\"'=|;&]{4,})"
_SPACED_P = r"-p[ =\"',]{1,4}(?P<value>[^\s\"'|;&-][^\s\"'|;&]{3,})"
_LOGIN_P = rf"(?:{_SPACED_P}|{_ATTACHED.replace('value', 'joined')})"
_PAIR = r"(?:-u|-U|--user|--proxy-user|--creds|--basic)(?:[ =\"',]{1,4}|\\?[\"'])?(?P<pair>[^\s\"':\\]{1,100}:(?P<value>[^\s\"'\\]{3,}))"
_OPTIONS: dict[str, str] = (
    dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck", "mysqlsh", "mysqlpump", "mariadb", "mariadb-dump", "mariadb-admin", "mydumper", "xtrabackup", "7z"), _ATTACHED)
    | dict.fromkeys(("sshpass", "mongo", "mongosh", "mongodump", "mongorestore", "docker", "podman", "nerdctl", "buildah", "helm", "skopeo", "oras", "az",
                     "twine", "cqlsh", "oc", "argocd", "cf", "heroku", "rclone", "ansible-vault", "pssh"), _LOGIN_P)
    | dict.fromkeys(("curl", "wget", "http", "https", "etcdctl", "ab", "skopeo", "nats", "lftp"), _PAIR)
    | dict.fromkeys(("redis-cli", "keydb-cli", "valkey-cli"), r"-a[ =\"',]{1,4}(?P<value>[^\s\"'|;&-][^\s\"'|;&]{3,})")
    | dict.fromkeys(("ldapsearch", "ldapmodify", "ldapadd", "ldapwhoami", "ldapdelete", "ldappasswd", "isql"), r"-w[ =\"',]{1,4}(?P<value>[^\s\"'|;&-][^\s\"'|;&]{3,})")
    | dict.fromkeys(("sqlcmd", "bcp", "ipmitool", "zip", "unzip", "tsql"), r"-P[ =\"',]{0,4}(?P<value>[^\s\"'|;&-][^\s\"'|;&]{3,})")
    | dict.fromkeys(("smbclient", "rpcclient"), r"-U[ =\"',]{1,4}[^\s\"'%]{1,100}%(?P<value>[^\s\"'|;&]{3,})")
    | dict.fromkeys(("snmpwalk", "snmpget", "snmpgetnext", "snmpbulkwalk", "snmpbulkget", "snmpset", "snmptable", "snmpstatus", "snmptrap"),
                    r"-[AXc][ =\"',]{1,4}(?!public\b)(?P<value>[^\s\"'|;&-][^\s\"'|;&]{3,})")
    | dict.fromkeys(("ssh-keygen",), r"-[NP][ =\"',]{1,4}(?P<value>[^\s\"'|;&-][^\s\"'|;&]{3,})")
    | dict.fromkeys(("openssl",), r"(?:-pass(?:in|out)?|-k|-passwd)[ =\"',]{1,4}(?:pass:)?(?P<value>[^\s\"'|;&:-][^\s\"'|;&]{3,})")
    | dict.fromkeys(("keytool", "jarsigner"), r"-(?:store|key|srcstore|deststore)pass[ =\"',]{1,4}(?P<value>[^\s\"'|;&-][^\s\"'|;&]{3,})")
    | dict.fromkeys(("rabbitmqctl",), r"(?:add_user|change_password|authenticate_user)[ \"',]{1,4}[^\s\"']{1,100}[ \"',]{1,4}(?P<value>[^\s\"'|;&]{4,})")
    | dict.fromkeys(("vault",), r"login[ \"',]{1,4}(?P<value>[^\s\"'|;&=-][^\s\"'|;&=]{15,})")
    | dict.fromkeys(("sqlplus", "expdp", "impdp", "rman"), r"[\w$.]{1,60}/(?P<value>[^\s\"'@/]{3,})@")
    | dict.fromkeys(("htpasswd",), r"-\w{0,4}b\w{0,4}[ \"',]{1,4}[^\s\"']{1,200}[ \"',]{1,4}[^\s\"']{1,100}[ \"',]{1,4}(?P<value>[^\s\"'|;&]{3,})")
    | dict.fromkeys(("chpasswd",), r"(?!)")
)  # fmt: skip
_PROGRAM = rf"(?<![\w.-])(?P<program>{'|'.join(sorted(_OPTIONS, key=len, reverse=True))})(?=[ \"'\\\t,])"
_OPTION_MARKS = (" -", '"-', "'-", "rabbitmqctl", "vault login", "sqlplus", "expdp", "impdp", "rman ")
_AFTER_PROGRAM = r"""(?P<line>(?:[^\r\n|;&"'\\]|\\?["'](?!\]|\})|\\(?!n)|&(?!&)){0,600})"""
_CHPASSWD = (
    r"echo\s{1,4}[\"']?[\w.-]{1,60}:(?P<value>[^\s\"'|]{3,}+)[\"']?\s{0,4}\|\s{0,4}(?:sudo\s{1,4})?chpasswd"
)
_PASSED_IN = r"echo\s{1,4}(?:-n\s{1,4})?[\"']?(?P<value>[^\s\"'|$]{6,}+)[\"']?\s{0,4}\|[^|\r\n]{0,100}(?:--password-stdin|sudo\s{1,4}-S|passwd\s{1,4}--stdin|kinit\s|cryptsetup\s|smbpasswd\s|--passphrase-fd|vncpasswd\s|su\s{1,4}-)"
_ORACLE = r"jdbc:oracle:\w{1,10}:[\w$.]{1,60}/(?P<value>[^\s\"'/]{1,200})@"
_AFTER_USER = (
    r"\s(?:-u|--user|--username|--login)[ =][^\s\"']{1,100}\s{1,4}(?:[^\s\"'|;&]{1,100}\s{1,4}){0,3}?-p[ =]?"
    r"(?P<value>[^\s\"'|;&-][^\s\"'|;&]{3,200})"
)
_NET_USE = r"/user:[^\s\"']{1,100}\s{1,4}(?P<value>[^\s\"'/|;&][^\s\"'|;&]{3,200})"
_PGPASS = r"(?m)(?:^|(?<=[\"'\\]))[\w.*-]{1,253}:(?:\d{4,5}|\*):[\w*-]{1,63}:[\w*-]{1,63}:(?P<value>(?=\S{0,80}\d|[a-z]{0,80}[A-Z]\S{0,80}[a-z]|[A-Z]{1,80}[a-z]\S{0,80}[A-Z])[^\s:\"'\\]{6,})(?:$|(?=[\"'\\]))"
_LINES = (
    (_CHPASSWD, "chpasswd"),
    (_PASSED_IN, "echo"),
    (_ORACLE, "jdbc:oracle"),
    (_AFTER_USER, " -p"),
    (_NET_USE, "/user:"),
)
"""Expressions, and the letters without which none of them fits."""
_TELLING_OPTION = r"-{1,2}(?:[\w-]{0,40}[_-])?(?:password|passwd|passphrase|pass|secret|token|api-?key|secret-key|access-key)"


_LONGEST_ARGUMENTS = 20_000
"""Characters of a list that is read as one command."""


def find_command_secrets(text: str) -> Iterator[FoundSecret]:
    """Passwords among the options of known programs."""
    done = 0
    for program in compile_regex(_PROGRAM).finditer(text):
        if program.start() < done:
            continue
        line = compile_regex(_AFTER_PROGRAM).match(text, program.end())
        if line is None:
            continue
        done = program.end()
        yield from _find_options(text, _OPTIONS[program["program"]], line)


def may_hold_options(text: str) -> bool:
    """Whether `find_command_secrets` may find something."""
    return any(map(text.__contains__, _OPTION_MARKS)) and compile_regex(_PROGRAM).search(text) is not None


def may_pipe_passwords(text: str) -> bool:
    """Whether `find_lines_with_passwords` may find something."""
    return any(mark in text for _, mark in _LINES) or compile_regex(_PGPASS).search(text) is not None


def find_lines_with_passwords(text: str) -> Iterator[FoundSecret]:
    """Passwords that are piped into a program, follow a user, or appear in a .pgpass file or an address of Oracle."""
    for pattern, mark in (*_LINES, (_PGPASS, ":")):
        if mark in text:
            for match in compile_regex(pattern).finditer(text):
                if (
                    is_secret(match["value"])
                    and not match["value"].isdigit()
                    and not _is_port(match["value"])
                ):
                    yield FoundSecret(*match.span("value"), "password")


def is_argument_list(texts: Sequence[str]) -> bool:
    """Whether these look like the arguments of a command: one begins with a dash, or nearly none has a space; not the lines of a key."""
    if (
        len(texts) < 2
        or sum(map(len, texts)) > _LONGEST_ARGUMENTS
        or any("PRIVATE KEY" in text for text in texts)
    ):
        return False
    if any(text.startswith("-") for text in texts):
        return True
    return sum(" " not in text for text in texts) * 5 >= len(texts) * 4


def find_secret_arguments(arguments: Sequence[str]) -> Iterator[int]:
    """The numbers of the items that are a secret as a whole: what follows `--password`."""
    for number, (option, value) in enumerate(pairwise(arguments), 1):
        if (
            compile_regex(_TELLING_OPTION).fullmatch(option)
            and not value.startswith("-")
            and is_secret(value)
        ):
            yield number


def split_spans(arguments: Sequence[str], spans: Iterable[FoundSecret]) -> Iterator[tuple[int, FoundSecret]]:
    """Spans of the arguments joined by single spaces, as the number of an item and the span in it."""
    found, at = list(spans), 0
    for number, argument in enumerate(arguments):
        end = at + len(argument)
        for span in found:
            start, stop = max(span.start, at), min(span.end, end)
            if start < stop:
                yield number, FoundSecret(start - at, stop - at, span.kind)
        at = end + 1


def _find_options(text: str, options: str, line: re.Match[str]) -> Iterator[FoundSecret]:
    for match in compile_regex(rf"(?<=[ \"'\t,])(?:{options})").finditer(text, line.start(), line.end()):
        value = next(name for name, part in match.groupdict().items() if name != "pair" and part is not None)
        if is_secret(match[value]) and not match[value].isdigit() and not _is_port(match[value]):
            yield FoundSecret(*match.span(value), "password")


def _is_port(value: str) -> bool:
    return re.fullmatch(r"[\d.]*:?\d+:\d+(?:/\w+)?", value) is not None
