"""Logs of containers: of each that ran, and of the run before where one was started again.

The API server asks the kubelet of a pod's node. One node that is gone must not cost the logs of the others.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from opsleuth.tools.sources.http import Refused, Session
from opsleuth.tools.sources.kube_api import Looked
from opsleuth.tools.spec import NotPermitted

# Bytes of one container's log that are taken, the first since the asked time.
LOG_BYTES = 1_000_000
# Seconds for one log: a kubelet that does not answer is waited for by the API server much longer.
LOG_SECONDS = 3.0
_AT_ONCE = 8
_NO_KUBELET = 500


class Container(NamedTuple):
    """One log: of which container of which pod, and whether of the run before this one."""

    pod: Mapping[str, Any]
    name: str
    previous: bool

    @property
    def node(self) -> str:
        return str((self.pod.get("spec") or {}).get("nodeName") or "no node")


def containers(pod: Mapping[str, Any]) -> Sequence[Container]:
    """Whose logs to read: of each container that ran, and of the run before where it was started again."""
    status = pod.get("status") or {}
    states = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    now = [Container(pod, str(s["name"]), previous=False) for s in states]
    return now + [Container(pod, str(s["name"]), previous=True) for s in states if s.get("restartCount")]


@dataclass(slots=True)
class LogReader:
    """Logs of the last `seconds`; what cannot be read is noted in `looked`."""

    session: Session
    looked: Looked
    seconds: float
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    _silent: set[str] = field(default_factory=set)

    async def read(self, log: Container) -> str:
        """The text; empty where there is none (yet, or any more), or where the pod's node does not answer."""
        self.looked.asked += 1
        async with self._slots:
            if log.node in self._silent:
                return ""
            try:
                async with asyncio.timeout(LOG_SECONDS):
                    return await self._text(log)
            except TimeoutError as error:
                return self._no_kubelet(log, str(error) or f"no answer within {LOG_SECONDS:g} s")
            except NotPermitted as error:
                self.looked.refusals.append(error)
                namespace = log.pod["metadata"]["namespace"]
                self.looked.missed.append(f"logs of pods in {namespace} may not be read: {error}"[:400])
            except Refused as error:
                if error.status_code == _NO_KUBELET:
                    return self._no_kubelet(log, str(error))
                if error.status_code not in (400, 404):  # still starting; gone meanwhile; nothing ran before
                    raise
            return ""

    async def _text(self, log: Container) -> str:
        meta = log.pod["metadata"]
        text = await self.session.text(
            f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/log",
            container=log.name,
            timestamps="true",
            sinceSeconds=f"{max(self.seconds, 1):.0f}",
            limitBytes=str(LOG_BYTES),
            **({"previous": "true"} if log.previous else {}),
        )
        if len(text.encode()) >= LOG_BYTES:
            self.looked.missed.append(
                f"the log of {meta['name']} is longer than {LOG_BYTES:,} bytes: its end was not read"
            )
        return text

    def _no_kubelet(self, log: Container, why: str) -> str:
        if log.node not in self._silent:
            self._silent.add(log.node)
            self.looked.missed.append(f"logs of pods on {log.node} could not be read: {why}"[:400])
        return ""
