"""A git repository as the history of changes: what was deployed, and what was merged for which service.

Only the program git is run, argv only. Nothing that a repository may configure is executed by it: no hooks, no
file system monitor, no external diff, no text conversion.
"""

import asyncio
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from opsleuth.analysis.records import ServiceChange, TimeRange
from opsleuth.configuration.source_settings import GitSettings
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import format_rfc3339
from opsleuth.tools.sources.live_source import FetchedRows, LiveSource, SourceCheck, SourceRuntime
from opsleuth.tools.sources.source_protocols import Capability
from opsleuth.tools.spec import NotPermittedError, UnavailableError
from opsleuth.tools.subprocesses import CommandNotStartedError, run_command
from opsleuth.tools.truncation import cut_text

MOST_COMMITS = 1_000
MOST_DIFFS = 40
WIDEST_DIFF = 20_000
_SECONDS = 6.0
_FIELD, _END = "\x1f", "\x1e"
_TRAILERS = ("Service", "Kind", "Version")
_FORMAT = _FIELD.join(
    (
        "%H",
        "%ct",
        "%an",
        "%s",
        "%P",
        *(f"%(trailers:key={name},valueonly,separator=%x2C)" for name in _TRAILERS),
    )
)
_TAG_FORMAT = _FIELD.join(
    ("%(refname:strip=2)", "%(creatordate:unix)", "%(taggername)%(authorname)", "%(subject)", "%(*objectname)", "%(objectname)")
)  # fmt: skip
# Whatever the repository configures: their commits are said, and nothing is looked up in them.
_SUBMODULES = ("--submodule=short", "--ignore-submodules=none")
_GITLINK = "160000"
_RAW = re.compile(r":(\d{6}) (\d{6}) ([0-9a-f]+) ([0-9a-f]+) [A-Z]")
_REVERT = re.compile(r"^(revert|roll ?back)\b", re.IGNORECASE)
_MIGRATION = re.compile(r"(^|/)migrations?/|\.sql$", re.IGNORECASE)
_CONFIG = re.compile(r"\.(ya?ml|toml|ini|conf|properties|env|tfvars|json)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _GitCommit:
    sha: str
    time: float
    author: str
    subject: str
    service: str
    kind: str
    version: str
    boundary: bool = False


class _TouchedPath(NamedTuple):
    """A path that a commit changed: its modes and object ids, of which a submodule's are commits."""

    name: str
    modes: tuple[str, str]
    before: str
    after: str

    @property
    def is_submodule(self) -> bool:
        return _GITLINK in self.modes


_NOT_FETCHED = re.compile(r"promisor|lazy fetch|transport '.*' not allowed|unable to read [0-9a-f]{40}")


class GitSource(LiveSource):
    """The source of kind `git`."""

    capabilities: frozenset[Capability] = frozenset({"changes"})

    def __init__(self, name: str, settings: GitSettings, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        self._settings = settings
        self._tag = _compile_pattern(name, "tag_pattern", settings.tag_pattern)
        self._deploy = _compile_pattern(name, "deploy_pattern", settings.deploy_pattern)
        if settings.service:
            self.named(settings.service)

    async def fetch(self, capability: Capability, window: TimeRange) -> FetchedRows:
        del capability
        asked: list[str] = []
        since = window.start - self._settings.before
        commits = await self._commits(window.end, asked)
        changes = [c for commit in commits for c in await self._changes(commit, since, asked)]
        changes += await self._releases(window, changes, asked)
        changes.sort(key=lambda change: change.time)
        recent = [change for change in changes if change.time >= since]
        # The one before shows that the history reaches back: then "no change" is a finding.
        return FetchedRows(
            {"changes": changes[-len(recent) - 1 :] if recent else changes[-1:]},
            tuple(asked),
            missed=_report_cut_history(commits, since),
        )

    async def _commits(self, until: float, asked: list[str]) -> list[_GitCommit]:
        text = await self._git(
            asked, "log", "--first-parent", f"--max-count={MOST_COMMITS}", f"--until=@{until:.0f}",
            f"--format={_FORMAT}{_END}", self._settings.branch, "--",
        )  # fmt: skip
        return [_parse_commit(record) for record in _split_records(text, fields=8)][::-1]

    async def _changes(self, commit: _GitCommit, since: float, asked: list[str]) -> list[ServiceChange]:
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

    async def _by_paths(self, commit: _GitCommit, asked: list[str]) -> list[ServiceChange]:
        text = await self._git(
            asked, "show", "--format=", "--raw", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules=none", "-m",
            "--first-parent", commit.sha, "--",
        )  # fmt: skip
        touched: dict[str, list[_TouchedPath]] = {}
        for path in _parse_touched_paths(text):
            # A submodule is a path without the slash of a folder.
            folder = max(
                (p for p in self._settings.paths if f"{path.name}/".startswith(p)), key=len, default=""
            )
            service = self._settings.paths.get(folder, self._settings.service)
            if service:
                touched.setdefault(service, []).append(path)
        return [self._with_bumps(self._of_paths(commit, s, own), own) for s, own in touched.items()]

    def _of_paths(self, commit: _GitCommit, service: str, own: Sequence[_TouchedPath]) -> ServiceChange:
        return self._change(
            commit, service, _classify_commit(commit.subject, (path.name for path in own)), ""
        )

    def _with_bumps(self, change: ServiceChange, paths: Sequence[_TouchedPath]) -> ServiceChange:
        """The change, with the submodules that it moved to another commit: their own changes lie in another repository."""
        moved = {path.name: f"{path.before[:12]}..{path.after[:12]}" for path in paths if path.is_submodule}
        if not moved:
            return change
        told = ", ".join(f"{name} {commits}" for name, commits in moved.items())
        summary = f"{change.summary} (moves submodule {told})"[:1_000]
        return replace(change, summary=summary, extra={**(change.extra or {}), "submodules": moved})

    def _change(self, commit: _GitCommit, service: str, kind: str, version: str) -> ServiceChange:
        return ServiceChange(
            time=commit.time,
            service=self.named(service),
            kind=kind,
            summary=commit.subject,
            version=version or None,
            author=commit.author or None,
            extra={"commit": commit.sha[:12]} | ({"boundary": True} if commit.boundary else {}),
        )

    async def _with_diff(
        self, change: ServiceChange, sha: str, since: float, asked: list[str]
    ) -> ServiceChange:
        shown = sum(line.startswith("git show --format= --patch") for line in asked)
        if not self._settings.diffs or change.time < since or shown >= MOST_DIFFS:
            return change
        text = await self._patch(asked, "show", "--format=", "--patch", "-m", "--first-parent", sha)
        return replace(change, diff=text)

    async def _releases(
        self, window: TimeRange, known: Sequence[ServiceChange], asked: list[str]
    ) -> list[ServiceChange]:
        """Tags that name a version; one whose service and version a commit already reported is not a change of its own."""
        text = await self._git(
            asked, "for-each-ref", "--sort=creatordate", f"--format={_TAG_FORMAT}{_END}", "refs/tags"
        )
        told = {(change.service, change.version) for change in known}
        latest: dict[str, str] = {}
        releases = []
        for name, when, author, subject, peeled, sha in _split_records(text, fields=6):
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
                ServiceChange(
                    time=float(when or 0), service=own[0], kind="deploy", version=own[1], author=author or None,
                    summary=subject or f"{name}", diff=diff,
                    extra={"tag": name, "commit": (peeled or sha)[:12], **({"before": before} if before else {})},
                )
            )  # fmt: skip
        return releases

    async def _between(self, before: str | None, tag: str, asked: list[str]) -> str | None:
        if before is None or not self._settings.diffs:
            return None
        return await self._patch(asked, "diff", f"refs/tags/{before}", f"refs/tags/{tag}")

    async def _patch(self, asked: list[str], command: str, *arguments: str) -> str | None:
        """The changed lines; None where there are none, and where a partial clone left their contents elsewhere."""
        try:
            text = await self._git(
                asked, command, "--no-ext-diff", "--no-textconv", *_SUBMODULES, *arguments, "--"
            )
        except UnavailableError as error:
            if not _NOT_FETCHED.search(str(error)):
                raise
            asked.append(f"git {command}: this partial clone lacks the contents, and nothing is fetched")
            return None
        return cut_text(text, WIDEST_DIFF) or None

    async def _git(self, asked: list[str], *arguments: str) -> str:
        argv = (
            "git", "-C", self._settings.path, "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
            "-c", "log.showSignature=false", "-c", "color.ui=never", "-c", "core.quotePath=false", *arguments,
        )  # fmt: skip
        try:
            output = await run_command(argv, seconds=_SECONDS, environment=_git_environment(), keep=4_000_000)
        except CommandNotStartedError as error:
            remedy = ": is git installed? apt-get install git" if error.missing else ""
            raise UnavailableError(f"{self.name}: {error}{remedy}") from None
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
            raise NotPermittedError(f"{self.name}: git may not read {self._settings.path}: {words}")
        if arguments[0] == "log" and ("any commits" in text or "bad revision 'HEAD'" in text):
            return  # a repository in which nothing has happened yet
        raise UnavailableError(f"{self.name}: git cannot read {self._settings.path}: {words}")

    async def check(self) -> Sequence[SourceCheck]:
        asked: list[str] = []
        now = self.clock.now().timestamp()
        version = (await self._git(asked, "--version")).strip()
        commits, fetched = await asyncio.gather(
            self._commits(now, asked), self.fetch("changes", TimeRange(now - 86_400, now))
        )
        changes = fetched.rows["changes"]
        checks = [
            SourceCheck("version", "ok", version),
            SourceCheck("history", "ok", f"{format_count(len(commits), 'commit')} read"),
        ]
        if changes:
            last = changes[-1]
            return [*checks, SourceCheck("changes", "ok", f"the last: {last.kind} of {last.service}")]
        return [
            *checks,
            SourceCheck(
                "changes", "warning", "no commit or tag says what it changed of which service",
                "set service or paths, or write trailers (Service: cart) into commits",
            ),
        ]  # fmt: skip


def _compile_pattern(name: str, field: str, text: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise UnavailableError(f"{name}: {field} is not a regular expression ({error})") from None
    if "version" not in pattern.groupindex:
        raise UnavailableError(f"{name}: {field} needs the group (?P<version>…)")
    return pattern


def _git_environment() -> Mapping[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    # A partial clone fetches what it lacks, by a URL or a program that its own configuration names.
    offline = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
    return kept | offline | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}


def _split_records(text: str, fields: int) -> Iterator[list[str]]:
    for record in text.split(_END):
        columns = record.strip("\n").split(_FIELD)
        if len(columns) == fields:
            yield columns


def _report_cut_history(commits: Sequence[_GitCommit], since: float) -> tuple[str, ...]:
    if len(commits) < MOST_COMMITS or commits[0].time < since:
        return ()
    return (
        f"more than {MOST_COMMITS:,} commits: those before {format_rfc3339(commits[0].time)} were not read",
    )


def _parse_touched_paths(text: str) -> Iterator[_TouchedPath]:
    """Of `--raw -z`: `:MODE MODE ID ID STATUS`, NUL, the path as it is, NUL."""
    parts = iter(text.split("\0"))
    for head, name in zip(parts, parts, strict=False):
        if found := _RAW.search(head):
            yield _TouchedPath(name, (found[1], found[2]), found[3], found[4])


def _parse_commit(columns: Sequence[str]) -> _GitCommit:
    sha, when, author, subject, parents, *trailers = columns
    service, kind, version = (trailer.strip() for trailer in trailers)
    # Where a history begins (or a shallow or grafted copy of it), a commit's diff is the whole tree.
    return _GitCommit(sha[-40:], float(when), author, subject, service, kind, version, not parents.strip())


def _classify_commit(subject: str, paths: Iterable[str]) -> str:
    own = list(paths)
    if _REVERT.match(subject):
        return "rollback"
    if any(_MIGRATION.search(path) for path in own):
        return "migration"
    return "config" if all(_CONFIG.search(path) for path in own) else "merge"
