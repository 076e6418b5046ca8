"""The page in a real browser: runs, one run live, approvals; with the keyboard alone, and whatever data says."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Page, browser
from nonempty import nonempty
from service_rig import Api, listening, serving

from opsleuth.checkpoints.approvals import ApprovalRequest
from opsleuth.checkpoints.evidence import EvidenceMeta
from opsleuth.state.results import ResultStatus
from opsleuth.state.run_status import Status

pytestmark = pytest.mark.browser

DIGEST = "9f3c21aa" * 8
ATTACK = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>"
SECONDS = 30.0


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with serving(tmp_path / "store.db", requests_per_minute=1e9) as running:
        yield running


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[Page]:
    with browser(tmp_path / "home", reaches="127.0.0.1") as page:
        yield page


def filled(api: Api, task: str) -> str:
    """A run in which everything that comes from outside tries to be markup; the id of what is asked."""
    api.store.runs.update(task, status=Status.WAITING, turn=2)
    api.store.events.append(task, "run.started", {"question": ATTACK})
    api.store.events.append(
        task, "hypothesis.updated", {"id": "H1", "text": ATTACK, "status": "open", "for": ["E1"]}
    )
    meta = EvidenceMeta(call_id=f"{task}/t1c1", tool="logs_search", status=ResultStatus.OK, headline=ATTACK)
    api.store.evidence.put(task, 1, meta, {"rows": [{"message": ATTACK}]})
    document = {
        "tool": "restart",
        "arguments": {"thing": ATTACK},
        "target": ATTACK,
        "risk": "high",
        "purpose": ATTACK,
    }
    return api.store.approvals.request(
        task, ApprovalRequest(about="call", subject=f"{task}/t2c1", digest=DIGEST, document=document)
    ).id


async def shown(tab: Page, expression: str) -> Any:
    """The value of an expression, once it is true."""

    def wait() -> Any:
        return tab(
            "Runtime.evaluate",
            expression=f"new Promise(done => {{ const look = () => {{ const v = {expression}; v ? done(v) : requestAnimationFrame(look); }}; look(); }})",
            awaitPromise=True,
            returnByValue=True,
        )["result"].get("value")

    return await asyncio.wait_for(asyncio.to_thread(wait), SECONDS)


async def typed(tab: Page, *keys: str) -> None:
    """Keys, one after the other: text is typed, Tab and Enter are pressed."""
    for key in keys:
        if key not in ("Tab", "Enter"):
            await asyncio.to_thread(tab, "Input.insertText", text=key)
            continue
        code = {"Tab": 9, "Enter": 13}[key]
        press = {
            "key": key,
            "code": key,
            "windowsVirtualKeyCode": code,
            **({"text": "\r"} if key == "Enter" else {}),
        }
        await asyncio.to_thread(tab, "Input.dispatchKeyEvent", type="keyDown", **press)
        await asyncio.to_thread(tab, "Input.dispatchKeyEvent", type="keyUp", **press)


async def reached(tab: Page, selector: str) -> None:
    """Press Tab until this has the focus."""
    for _ in range(40):
        if await asyncio.to_thread(tab.value, f"document.activeElement.matches({selector!r})"):
            return
        await typed(tab, "Tab")
    pytest.fail(f"{selector} cannot be reached with the Tab key")


async def entered(tab: Page, address: str, token: str) -> None:
    await asyncio.to_thread(tab.go, address)
    await reached(tab, "#token")
    await typed(tab, token, "Enter")
    await shown(tab, "!document.getElementById('inside').hidden")


async def test_a_run_is_watched_and_its_change_approved_with_the_keyboard_alone(api: Api, tab: Page) -> None:
    task = await api.start(f"why {ATTACK}")
    asked = filled(api, task)
    async with listening(api.app) as address:
        await entered(tab, address, api.token("view", "run", "approve"))
        await reached(tab, f"[data-task='{task}']")
        await typed(tab, "Enter")
        text = await shown(tab, "document.querySelector('#asked article')?.innerText")
        assert "9f3c-21aa-9f3c-21aa" in text
        assert ATTACK in text
        assert "why (untrusted)" in text
        assert "check after" in text
        assert await shown(tab, "document.querySelector('#hypotheses')?.innerText.includes('<script>')")
        api.store.events.append(task, "warning", {"message": "late"})
        assert await shown(tab, "document.getElementById('events').innerText.includes('late')")
        await reached(tab, f"form button[aria-describedby='{asked}-title']")
        await typed(tab, "Enter")
        await shown(tab, "document.getElementById('said').innerText.includes('approved')")
    row = api.store.approvals.get(task, asked)
    assert (row.status, row.via, row.answered_by) == ("approved", "api", "shop-view-run-approve")
    assert tab.value("document.title") == "opsleuth"
    assert tab.value("document.querySelectorAll('#run img, #run script').length") == 0
    assert all(url.startswith((address, "data:,")) for url in nonempty(tab.requests))


async def test_a_denial_tells_its_reason_and_a_wrong_token_nothing(api: Api, tab: Page) -> None:
    task = await api.start("why")
    asked = filled(api, task)
    async with listening(api.app) as address:
        await asyncio.to_thread(tab.go, address)
        await reached(tab, "#token")
        await typed(tab, "opsleuth_no_good", "Enter")
        assert "valid token" in await shown(tab, "document.getElementById('said').innerText")
        await entered(tab, address, api.token("view", "approve"))
        await reached(tab, f"[data-task='{task}']")
        await typed(tab, "Enter")
        await shown(tab, "document.querySelector('#asked article')")
        await reached(tab, f"#{asked}-reason")
        await typed(tab, "not at noon", "Enter")
        await shown(tab, "document.getElementById('said').innerText.includes('denied')")
    assert api.store.approvals.get(task, asked).reason == "not at noon"


async def test_runs_are_found_by_a_text_and_listed_again_without_one(api: Api, tab: Page) -> None:
    wanted, other = (
        await api.start("why is 5% of /checkout & /cart slow?"),
        await api.start("why is search slow?"),
    )
    async with listening(api.app) as address:
        await entered(tab, address, api.token("view"))
        await reached(tab, "#sought")
        await typed(tab, "5% of /checkout & /cart", "Enter")
        await shown(tab, f"!document.querySelector(\"[data-task='{other}']\")")
        assert await shown(
            tab, f"document.querySelector(\"[data-task='{wanted}']\")?.innerText.includes('checkout')"
        )
        await asyncio.to_thread(tab.value, "document.getElementById('sought').value = 'nowhere'")
        await typed(tab, "Enter")
        await shown(tab, "document.getElementById('said').innerText.includes('holds nowhere')")
        await asyncio.to_thread(tab.value, "document.getElementById('sought').value = ''")
        await typed(tab, "Enter")
        await shown(tab, "document.querySelectorAll('#runs button').length === 2")
        assert await shown(tab, "document.getElementById('said').innerText === ''")


async def test_every_part_has_a_name(api: Api, tab: Page) -> None:
    task = await api.start("why")
    filled(api, task)
    async with listening(api.app) as address:
        await entered(tab, address, api.token("view", "run", "approve"))
        await reached(tab, f"[data-task='{task}']")
        await typed(tab, "Enter")
        await shown(tab, "document.querySelector('#asked article')")
        nodes = (await asyncio.to_thread(tab, "Accessibility.getFullAXTree"))["nodes"]
        answer = await api("GET", "/")
    asking = ("button", "textbox", "link", "region", "navigation", "article", "log")
    nameless = [
        node["role"]["value"]
        for node in nodes
        if not node.get("ignored")
        and node.get("role", {}).get("value") in asking
        and not node.get("name", {}).get("value")
    ]
    assert nameless == []
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
