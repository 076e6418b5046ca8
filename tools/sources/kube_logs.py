"""Logs of containers: of each that ran, and of the run before where one was started again.

The API server asks the kubelet of a pod's node. One node that is gone must not cost the logs of the others.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from opsleuth.tools.sources.http_client import HttpSession, HttpStatusError
from opsleuth.tools.sources.kube_api import FetchGaps
from opsleuth.tools.spec import NotPermittedError

# Bytes of one container's log that are taken at once, from the asked time on; as many again from its end.
LOG_BYTES = 1_000_000
# Seconds for one log: a kubelet that does not answer is waited for by the API server much longer.
LOG_SECONDS = 3.0
_AT_ONCE = 8
_TRIES = 3
_NO_KUBELET = 500


class ContainerLog(NamedTuple):
    """One log: of which container of which pod, and whether of the run before this one."""

    pod: Mapping[str, Any]
    name: str
    previous: bool

    @property
    def node(self) -> str:
        return str((self.pod.get("spec") or {}).get("nodeName") or "no node")


def list_container_logs(pod: Mapping[str, Any]) -> Sequence[ContainerLog]:
    """Whose logs to read: of each container that ran, and of the run before where it was started again."""
    status = pod.get("status") or {}
    states = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    now = [ContainerLog(pod, str(s["name"]), previous=False) for s in states]
    return now + [ContainerLog(pod, str(s["name"]), previous=True) for s in states if s.get("restartCount")]


@dataclass(slots=True)
class PodLogReader:
    """Logs of the last `seconds`; what cannot be read is noted in `looked`."""

    session: HttpSession
    looked: FetchGaps
    seconds: float
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    _silent: set[str] = field(default_factory=set)

    async def read(self, log: ContainerLog) -> str:
        """The text; empty where there is none (yet, or any more), or where the pod's node does not answer."""
        self.looked.asked += 1
        async with self._slots:
            if log.node in self._silent:
                return ""
            try:
                return await self._text(log)
            except TimeoutError as error:
                return self._no_kubelet(log, str(error) or f"no answer within {LOG_SECONDS:g} s")
            except NotPermittedError as error:
                self.looked.refusals.append(error)
                namespace = log.pod["metadata"]["namespace"]
                self.looked.missed.append(f"logs of pods in {namespace} may not be read: {error}"[:400])
            except HttpStatusError as error:
                if error.status_code == _NO_KUBELET:
                    return self._no_kubelet(log, str(error))
                if error.status_code not in (400, 404):  # still starting; gone meanwhile; nothing ran before
                    raise
            return ""

    async def _text(self, log: ContainerLog) -> str:
        """The log since then. Of a longer one its beginning and its end: the failure may stand at either."""
        first = await self._part(log)
        if len(first.encode()) < LOG_BYTES:
            return first
        try:
            last = await self._end(log, max(first.count("\n"), 1))
        except (TimeoutError, HttpStatusError):
            self.looked.missed.append(
                f"the log of {log.pod['metadata']['name']} is longer than {LOG_BYTES:,} bytes: its end was not read"
            )
            return first
        if _read_first_time(last) <= _read_first_time(first.rstrip("\n").rpartition("\n")[2]):
            return first.rpartition("\n")[0] + "\n" + _select_later_lines(last, first)
        self.looked.missed.append(
            f"the log of {log.pod['metadata']['name']} is longer than {2 * LOG_BYTES:,} bytes: its middle was not read"
        )
        return first.rpartition("\n")[0] + "\n" + last

    async def _end(self, log: ContainerLog, lines: int) -> str:
        """The last lines; fewer where they are longer than those at the beginning."""
        last = ""
        for _ in range(_TRIES):
            last = await self._part(log, lines)
            if len(last.encode()) < LOG_BYTES:
                break
            lines = max(lines // 2, 1)
        return last

    async def _part(self, log: ContainerLog, last_lines: int | None = None) -> str:
        meta = log.pod["metadata"]
        async with asyncio.timeout(LOG_SECONDS):
            return await self.session.text(
                f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/log",
                container=log.name,
                timestamps="true",
                sinceSeconds=f"{max(self.seconds, 1):.0f}",
                limitBytes=str(LOG_BYTES),
                **({"tailLines": str(last_lines)} if last_lines else {}),
                **({"previous": "true"} if log.previous else {}),
            )

    def _no_kubelet(self, log: ContainerLog, why: str) -> str:
        if log.node not in self._silent:
            self._silent.add(log.node)
            self.looked.missed.append(f"logs of pods on {log.node} could not be read: {why}"[:400])
        return ""


def _read_first_time(text: str) -> str:
    """The time at the beginning of the first line, as the kubelet writes it: in order as text."""
    return text.partition(" ")[0]


def _select_later_lines(last: str, first: str) -> str:
    """The lines at the end that do not stand at the beginning already; the last of those may be cut."""
    known = set(first.rpartition("\n")[0].split("\n"))
    return "".join(f"{line}\n" for line in last.splitlines() if line not in known)
