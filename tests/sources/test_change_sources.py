"""Changes as GitHub, GitLab and Grafana tell them, by their public API documents."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from backends import AT, BACKENDS
from contract_server import Asked, Reply, contract_server
from live_rig import SPAN, ask, one

from opsleuth.state.calls import ResultStatus
from opsleuth.tools.sources.code_host import PER_PAGE
from opsleuth.tools.spec import NotPermittedError, TransientError


def at(kind: str, url: str, **more: Any) -> Any:
    return one(kind=kind, url=url, **{**BACKENDS[kind].more, **more})


@pytest.mark.parametrize("kind", ["github", "gitlab"])
async def test_deployments_and_merges(kind: str) -> None:
    with contract_server(BACKENDS[kind].answering) as server:
        source = at(kind, server.url, service="cart-api")
        merge, deploy = list((await source.read(["changes"], SPAN)).changes or [])
        states = {check.what: check.text for check in await source.check()}
    assert (merge.service, merge.kind, merge.author) == ("cart-api", "merge", "ada")
    assert "7 Cache of 4 GB" in merge.summary
    assert (deploy.kind, deploy.version, deploy.time) == ("deploy", "v2.14.0", AT)
    assert "to production" in deploy.summary
    assert states["repository"] == "shop/cart"


@pytest.mark.parametrize("kind", ["github", "gitlab"])
async def test_what_the_token_may_not_read_is_named_and_is_not_absent(kind: str) -> None:
    def answering(asked: Asked) -> Reply:
        if asked.path.endswith("/deployments"):
            return Reply({"message": "Resource not accessible by personal access token"}, 403)
        return BACKENDS[kind].nothing(asked)

    with contract_server(answering) as server:
        result = await ask([at(kind, server.url)], "changes_list")
    assert result.status is ResultStatus.NOT_RECORDED
    assert "deployments may not be read" in result.record["not_read"]["s (changes)"]


@pytest.mark.parametrize("kind", ["github", "gitlab"])
async def test_pages_are_followed_no_further_than_they_matter(kind: str) -> None:
    """Newest first; GitLab is told from when on, GitHub is left when what it tells is too old."""
    newest = datetime.fromtimestamp(AT, UTC)
    model = BACKENDS[kind].answering(Asked("GET", "/deployments", {}, {})).body[0]
    times = [newest - timedelta(hours=i) for i in range(250)]
    rows = [{**model, "created_at": t.isoformat(), "finished_at": t.isoformat()} for t in times]

    def answering(asked: Asked) -> Reply:
        if not asked.path.endswith("/deployments"):
            return Reply([])
        page = int(asked.query["page"])
        since = asked.query.get("updated_after")
        kept = [row for row in rows if since is None or row["created_at"] >= since]
        return Reply(kept[(page - 1) * PER_PAGE : page * PER_PAGE])

    with contract_server(answering) as server:
        changes = (await at(kind, server.url, before=86_400 * 6).read(["changes"], SPAN)).changes or ()
    # Six days before the window and its first hour; of what GitHub tells also those of the edge and before.
    assert len(changes) == {"gitlab": 145, "github": 147}[kind]
    assert [p.rpartition("/")[2] for p in server.paths()].count("deployments") == 2


async def test_only_the_environments_that_count() -> None:
    for kind in ("github", "gitlab"):
        with contract_server(BACKENDS[kind].answering) as server:
            changes = (
                await at(kind, server.url, environments=["staging"]).read(["changes"], SPAN)
            ).changes or ()
        assert [change.kind for change in changes] == ["merge"]


async def test_a_quota_that_is_used_up_may_heal() -> None:
    """GitHub's rate limit is a 403 with x-ratelimit-remaining 0 and the time at which it is filled again."""
    later = str(int(datetime.now(UTC).timestamp()) + 30)
    used_up = Reply(
        {"message": "API rate limit exceeded"},
        403,
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": later},
    )
    with contract_server(lambda _: used_up) as server, pytest.raises(TransientError) as told:
        await at("github", server.url).read(["changes"], SPAN)
    assert 20 < (told.value.retry_after or 0) <= 30


async def test_annotations_and_the_service_that_a_tag_names() -> None:
    rows = [
        {"id": 1, "time": AT * 1000, "text": "<b>deploy</b> cart 2.14.0", "tags": ["deploy", "service:cart"], "login": "ada"},
        {"id": 2, "time": AT * 1000, "text": "CartSlow is alerting", "alertName": "CartSlow", "tags": []},
        {"id": 3, "time": AT * 1000 + 1, "text": "lunch", "tags": None},
    ]  # fmt: skip
    with contract_server(lambda _: Reply(rows)) as server:
        first, second = list((await at("grafana", server.url).read(["changes"], SPAN)).changes or [])
        tagged = list(
            (await at("grafana", server.url, tags=["deploy"]).read(["changes"], SPAN)).changes or []
        )
    assert (first.service, first.kind, first.summary, first.author) == (
        "cart",
        "deploy",
        "deploy cart 2.14.0",
        "ada",
    )
    assert (second.service, second.kind) == ("unknown", "other")
    assert tagged == [first]
    query = server.asked[0].query
    assert (query["from"], query["to"]) == ("1772456400000", "1772548200000")


async def test_nothing_may_be_read() -> None:
    with contract_server(lambda _: Reply({"message": "403 Forbidden"}, 403)) as server:
        for kind in ("github", "gitlab", "grafana"):
            with pytest.raises(NotPermittedError):
                await at(kind, server.url).read(["changes"], SPAN)
