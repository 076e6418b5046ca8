"""A git repository as the history of changes: what was deployed, and what was merged for which service.

Only the program git is run, argv only. Nothing that a repository may configure is executed by it: no hooks, no
file system monitor, no external diff, no text conversion.
"""

import asyncio
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from opsleuth.analysis.records import Change, Span
from opsleuth.state.words import counted
from opsleuth.tools.bounds import cut_text
from opsleuth.tools.process import NotStarted, run_command
from opsleuth.tools.sources.base import Capability
from opsleuth.tools.sources.live import Check, Fetched, LiveSource, Surroundings
from opsleuth.tools.sources.settings import Git
from opsleuth.tools.spec import NotPermitted, Unavailable

MOST_COMMITS = 1_000
MOST_DIFFS = 40
WIDEST_DIFF = 20_000
_SECONDS = 6.0
_FIELD, _END = "\x1f", "\x1e"
_TRAILERS = ("Service", "Kind", "Version")
_FORMAT = _FIELD.join(
    ("%H", "%ct", "%an", "%s", *(f"%(trailers:key={name},valueonly,separator=%x2C)" for name in _TRAILERS))
)
_TAG_FORMAT = _FIELD.join(
    ("%(refname:strip=2)", "%(creatordate:unix)", "%(taggername)%(authorname)", "%(subject)", "%(*objectname)", "%(objectname)")
)  # fmt: skip
_REVERT = re.compile(r"^(revert|roll ?back)\b", re.IGNORECASE)
_MIGRATION = re.compile(r"(^|/)migrations?/|\.sql$", re.IGNORECASE)
_CONFIG = re.compile(r"\.(ya?ml|toml|ini|conf|properties|env|tfvars|json)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Commit:
    sha: str
    time: float
    author: str
    subject: str
    service: str
    kind: str
    version: str


class GitSource(LiveSource):
    """The source of kind `git`."""

    capabilities: frozenset[Capability] = frozenset({"changes"})

    def __init__(self, name: str, settings: Git, surroundings: Surroundings) -> None:
        super().__init__(name, settings, surroundings)
        self._settings = settings
        self._tag = _pattern(name, "tag_pattern", settings.tag_pattern)
        self._deploy = _pattern(name, "deploy_pattern", settings.deploy_pattern)
        if settings.service:
            self.named(settings.service)

    async def fetch(self, capability: Capability, window: Span) -> Fetched:
        del capability
        asked: list[str] = []
        since = window.start - self._settings.before
        commits = await self._commits(window.end, asked)
        changes = [c for commit in commits for c in await self._changes(commit, since, asked)]
        changes += await self._releases(window, changes, asked)
        changes.sort(key=lambda change: change.time)
        recent = [change for change in changes if change.time >= since]
        # The one before shows that the history reaches back: then "no change" is a finding.
        return Fetched({"changes": changes[-len(recent) - 1 :] if recent else changes[-1:]}, tuple(asked))

    async def _commits(self, until: float, asked: list[str]) -> list[_Commit]:
        text = await self._git(
            asked, "log", "--first-parent", f"--max-count={MOST_COMMITS}", f"--until=@{until:.0f}",
            f"--format={_FORMAT}{_END}", self._settings.branch, "--",
        )  # fmt: skip
        return [_commit(record) for record in _records(text, fields=7)][::-1]

    async def _changes(self, commit: _Commit, since: float, asked: list[str]) -> list[Change]:
        """What one commit changed, by its trailers, its subject, or its paths; nothing where no service is known."""
        if commit.service:
            services = [part.strip() for part in commit.service.split(",")]
            told = [self._change(commit, s, commit.kind or "deploy", commit.version) for s in services]
        elif found := self._deploy.match(commit.subject):
            told = [self._change(commit, found["service"], "deploy", found["version"])]
        elif commit.time < since or not (self._settings.paths or self._settings.service):
            return []
        else:
            told = await self._by_paths(commit, asked)
        return [await self._with_diff(change, commit.sha, since, asked) for change in told]

    async def _by_paths(self, commit: _Commit, asked: list[str]) -> list[Change]:
        text = await self._git(
            asked, "show", "--format=", "--name-only", "-m", "--first-parent", commit.sha, "--"
        )
        paths = text.splitlines()
        touched: dict[str, list[str]] = {}
        for path in paths:
            folder = max((p for p in self._settings.paths if path.startswith(p)), key=len, default="")
            service = self._settings.paths.get(folder, self._settings.service)
            if service:
                touched.setdefault(service, []).append(path)
        return [self._change(commit, s, _kind(commit.subject, own), "") for s, own in touched.items()]

    def _change(self, commit: _Commit, service: str, kind: str, version: str) -> Change:
        return Change(
            time=commit.time,
            service=self.named(service),
            kind=kind,
            summary=commit.subject,
            version=version or None,
            author=commit.author or None,
            extra={"commit": commit.sha[:12]},
        )

    async def _with_diff(self, change: Change, sha: str, since: float, asked: list[str]) -> Change:
        shown = sum(line.startswith("git show --format= --patch") for line in asked)
        if not self._settings.diffs or change.time < since or shown >= MOST_DIFFS:
            return change
        text = await self._git(
            asked, "show", "--format=", "--patch", "--no-ext-diff", "--no-textconv", "-m", "--first-parent", sha, "--"
        )  # fmt: skip
        return replace(change, diff=cut_text(text, WIDEST_DIFF) or None)

    async def _releases(self, window: Span, known: Sequence[Change], asked: list[str]) -> list[Change]:
        """Tags that name a version; one whose service and version a commit already told of is no change of its own."""
        text = await self._git(
            asked, "for-each-ref", "--sort=creatordate", f"--format={_TAG_FORMAT}{_END}", "refs/tags"
        )
        told = {(change.service, change.version) for change in known}
        latest: dict[str, str] = {}
        releases = []
        for name, when, author, subject, peeled, sha in _records(text, fields=6):
            found = self._tag.match(name)
            service = found and (found.groupdict().get("service") or self._settings.service)
            if not found or not service:
                continue
            before, latest[service] = latest.get(service), name
            own = (self.named(service), found["version"])
            if own in told or float(when or 0) >= window.end:
                continue
            since = window.start - self._settings.before
            diff = await self._between(before, name, asked) if float(when or 0) >= since else None
            releases.append(
                Change(
                    time=float(when or 0), service=own[0], kind="deploy", version=own[1], author=author or None,
                    summary=subject or f"{name}", diff=diff,
                    extra={"tag": name, "commit": (peeled or sha)[:12], **({"before": before} if before else {})},
                )
            )  # fmt: skip
        return releases

    async def _between(self, before: str | None, tag: str, asked: list[str]) -> str | None:
        if before is None or not self._settings.diffs:
            return None
        text = await self._git(
            asked, "diff", "--no-ext-diff", "--no-textconv", f"refs/tags/{before}", f"refs/tags/{tag}", "--"
        )
        return cut_text(text, WIDEST_DIFF) or None

    async def _git(self, asked: list[str], *arguments: str) -> str:
        argv = (
            "git", "-C", self._settings.path, "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
            "-c", "log.showSignature=false", "-c", "color.ui=never", *arguments,
        )  # fmt: skip
        try:
            output = await run_command(argv, seconds=_SECONDS, environment=_environment(), keep=4_000_000)
        except NotStarted as error:
            remedy = ": is git installed? apt-get install git" if error.missing else ""
            raise Unavailable(f"{self.name}: {error}{remedy}") from None
        shown = " ".join(a.replace(_FIELD, " ").replace(_END, "") for a in arguments)
        asked.append(f"git {shown} -> {output.size:,} bytes")
        if output.ended:
            raise TimeoutError(f"{self.name}: git {arguments[0]} {output.ended}")
        if output.code:
            self._refused(arguments, output.text)
        return output.text

    def _refused(self, arguments: Sequence[str], text: str) -> None:
        words = " ".join(text.split())[:400]
        if "dubious ownership" in text or "ermission denied" in text:
            raise NotPermitted(f"{self.name}: git may not read {self._settings.path}: {words}")
        if arguments[0] == "log" and ("any commits" in text or "bad revision 'HEAD'" in text):
            return  # a repository in which nothing has happened yet
        raise Unavailable(f"{self.name}: git cannot read {self._settings.path}: {words}")

    async def check(self) -> Sequence[Check]:
        asked: list[str] = []
        now = self.clock.now().timestamp()
        version = (await self._git(asked, "--version")).strip()
        commits, fetched = await asyncio.gather(
            self._commits(now, asked), self.fetch("changes", Span(now - 86_400, now))
        )
        changes = fetched.rows["changes"]
        checks = [
            Check("version", "ok", version),
            Check("history", "ok", f"{counted(len(commits), 'commit')} read"),
        ]
        if changes:
            last = changes[-1]
            return [*checks, Check("changes", "ok", f"the last: {last.kind} of {last.service}")]
        return [
            *checks,
            Check(
                "changes", "warning", "no commit or tag says what it changed of which service",
                "set service or paths, or write trailers (Service: cart) into commits",
            ),
        ]  # fmt: skip


def _pattern(name: str, field: str, text: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise Unavailable(f"{name}: {field} is no regular expression ({error})") from None
    if "version" not in pattern.groupindex:
        raise Unavailable(f"{name}: {field} needs the group (?P<version>…)")
    return pattern


def _environment() -> Mapping[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return kept | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}


def _records(text: str, fields: int) -> Iterator[list[str]]:
    for record in text.split(_END):
        columns = record.strip("\n").split(_FIELD)
        if len(columns) == fields:
            yield columns


def _commit(columns: Sequence[str]) -> _Commit:
    sha, when, author, subject, *trailers = columns
    return _Commit(sha[-40:], float(when), author, subject, *(trailer.strip() for trailer in trailers))


def _kind(subject: str, paths: Iterable[str]) -> str:
    own = list(paths)
    if _REVERT.match(subject):
        return "rollback"
    if any(_MIGRATION.search(path) for path in own):
        return "migration"
    return "config" if all(_CONFIG.search(path) for path in own) else "merge"
