"""A real repository: what its commits and tags say was changed, and nothing of it is executed."""

import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import servers
from live_rig import END, SPAN, START, ask, one
from stored_elsewhere import rows

from opsleuth.analysis.records import ServiceChange
from opsleuth.state.calls import ResultStatus
from opsleuth.tools.spec import UnavailableError

Git = Callable[..., None]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


@pytest.fixture
def git(work: Path) -> Git:
    """Run git in a repository of its own; `at` is the time of a commit or tag."""
    servers.need("git")
    work.mkdir()
    base = {"PATH": os.environ["PATH"], "HOME": str(work), "GIT_CONFIG_NOSYSTEM": "1"}
    base |= {f"GIT_{role}_{what}": "x@y" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

    def run(*arguments: str, at: datetime = START) -> None:
        dates = {f"GIT_{role}_DATE": at.isoformat() for role in ("AUTHOR", "COMMITTER")}
        subprocess.run(
            ["git", "-C", str(work), *arguments], check=True, capture_output=True, env=base | dates
        )

    run("init", "--quiet", "--initial-branch=main")
    return run


def commit(git: Git, work: Path, path: str, message: str, at: datetime = START) -> None:
    (work / path).parent.mkdir(parents=True, exist_ok=True)
    (work / path).write_text(message)
    git("add", ".")
    git("commit", "--quiet", "--no-gpg-sign", "-m", message, at=at)


async def changes(work: Path, **more: object) -> list[ServiceChange]:
    return list((await one(kind="git", path=str(work), **more).read(["changes"], SPAN)).changes or ())


async def test_the_changes_are_those_of_the_folder(repository: Path, case: Path) -> None:
    found = await changes(repository)
    told = [(c.service, c.kind, c.version, c.author, c.summary) for c in found]
    assert told == [
        (r["service"], r["kind"], r.get("version"), r["author"], r["summary"])
        for r in sorted(rows(case / "changes.jsonl"), key=lambda r: r["timestamp"])
    ]
    assert "lower(customer_email)" in (found[-1].diff or "")


async def test_tags_are_deploys_with_what_changed_between_them(git: Git, work: Path) -> None:
    commit(git, work, "cart.py", "pool = 50")
    git("tag", "cart-v1.0.0")
    commit(git, work, "cart.py", "pool = 5", at=END.replace(hour=14, minute=0))
    git("tag", "-a", "cart-v1.1.0", "-m", "a smaller pool", at=END.replace(hour=14, minute=5))
    git("tag", "not-a-version")
    first, second = await changes(work)
    assert (first.service, first.version, first.diff) == ("cart", "1.0.0", None)
    assert (second.version, second.kind, second.summary) == ("1.1.0", "deploy", "a smaller pool")
    assert second.time == datetime(2026, 3, 3, 14, 5, tzinfo=UTC).timestamp()
    assert "-pool = 50" in (second.diff or "")
    assert "+pool = 5" in (second.diff or "")


async def test_folders_belong_to_services(git: Git, work: Path) -> None:
    commit(git, work, "services/cart/pool.yaml", "Smaller pool")
    commit(git, work, "services/cart/db/migrations/7.sql", "Drop an index")
    commit(git, work, "services/stock/main.go", 'Revert "Faster look-up"')
    commit(git, work, "README.md", "Words")
    found = await changes(work, paths={"services/cart/": "cart", "services/stock/": "stock"})
    assert [(c.service, c.kind) for c in found] == [
        ("cart", "config"),
        ("cart", "migration"),
        ("stock", "rollback"),
    ]


@pytest.mark.parametrize("name", ["größe.yaml", "价格/表.yaml", 'say "hi".yaml', "tab\there.yaml"])
async def test_a_path_with_any_characters_belongs_to_its_service(git: Git, work: Path, name: str) -> None:
    commit(git, work, f"dienste/kasse-süd/{name}", "New prices")
    git("config", "core.quotePath", "true")
    [change] = await changes(work, paths={"dienste/kasse-süd/": "till"})
    assert (change.service, change.kind) == ("till", "config")
    assert "+New prices" in (change.diff or "")


@pytest.mark.parametrize("ignored", ["none", "all"])
async def test_a_submodule_that_moves_is_a_change_of_its_service(git: Git, work: Path, ignored: str) -> None:
    (work / ".gitmodules").write_text(
        f'[submodule "cart"]\n\tpath = services/cart\n\turl = ../cart\n\tignore = {ignored}\n'
    )
    git("config", "diff.submodule", "log")
    git("add", ".gitmodules")
    for message, pinned, at in (
        ("Add cart", "cd", datetime(2025, 1, 1, tzinfo=UTC)),
        ("Bump cart", "ab", START),
    ):
        git("update-index", "--add", "--cacheinfo", f"160000,{pinned * 20},services/cart")
        git("commit", "--quiet", "--no-gpg-sign", "-m", message, at=at)
    moved = (await changes(work, paths={"services/cart/": "cart"}))[-1]
    assert (moved.service, moved.kind) == ("cart", "merge")
    assert moved.summary == "Bump cart (moves submodule services/cart cdcdcdcdcdcd..abababababab)"
    assert "+Subproject commit abab" in (moved.diff or "")


async def test_commits_beyond_the_most_are_said(
    git: Git, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opsleuth.tools.sources.git.MOST_COMMITS", 2)
    for number in range(3):
        commit(git, work, "a", f"deploy cart 1.0.{number}")
    found = await one(kind="git", path=str(work)).read(["changes"], SPAN)
    assert "more than 2 commits" in found.missed[0]


async def test_a_deploy_is_told_by_its_subject(git: Git, work: Path) -> None:
    commit(git, work, "values.yaml", "deploy cart 2.3.1")
    [change] = await changes(work)
    assert (change.service, change.kind, change.version) == ("cart", "deploy", "2.3.1")


async def test_a_quiet_time_is_a_finding_where_the_history_reaches_back(git: Git, work: Path) -> None:
    commit(git, work, "a", "deploy cart 2.3.1", at=datetime(2025, 1, 1, tzinfo=UTC))
    result = await ask([one(kind="git", path=str(work))], "changes_list")
    assert (result.status, result.scanned) == (ResultStatus.NONE_MATCHED, 1)


async def test_a_repository_without_commits(git: Git, work: Path) -> None:
    del git
    result = await ask([one(kind="git", path=str(work))], "changes_list")
    assert result.status is ResultStatus.NOT_RECORDED


async def test_no_repository(tmp_path: Path) -> None:
    servers.need("git")
    with pytest.raises(UnavailableError, match="not a git repository"):
        await changes(tmp_path)
    with pytest.raises(UnavailableError, match="No such file or directory"):
        await changes(tmp_path / "nowhere")


async def test_nothing_that_a_repository_configures_is_executed(git: Git, work: Path, tmp_path: Path) -> None:
    commit(git, work, "cart.py", "deploy cart 1.0.0")
    for key in ("core.fsmonitor", "diff.external", "diff.evil.textconv", "core.pager", "gpg.program"):
        git("config", key, f"touch {tmp_path}/ran-{key}; false")
    (work / ".gitattributes").write_text("* diff=evil\n")
    assert len(await changes(work)) == 1
    assert os.listdir(tmp_path) == ["work"]  # noqa: PTH208 - blocking for a moment is as good


async def test_a_partial_clone_fetches_nothing_and_starts_nothing(
    git: Git, work: Path, tmp_path: Path
) -> None:
    """A hostile clone names the program that git starts for contents which it lacks."""
    commit(git, work, "cart.py", "start")
    commit(git, work, "cart.py", "deploy cart 1.0.0")
    git("config", "uploadpack.allowFilter", "true")
    clone, planted = tmp_path / "clone", tmp_path / "planted"
    git("clone", "--quiet", "--no-checkout", "--filter=blob:none", f"file://{work}", str(clone))
    git("-C", str(clone), "config", "remote.origin.uploadpack", f"touch {planted}; git-upload-pack")
    (change,) = await changes(clone)
    assert (change.version, change.diff) == ("1.0.0", None)
    assert not planted.exists()


async def test_doctor_says_when_no_commit_tells_of_a_service(git: Git, work: Path) -> None:
    commit(git, work, "a", "Words")
    last = (await one(kind="git", path=str(work)).check())[-1]
    assert last.state == "warning"
    assert "trailers" in last.remedy
