"""The cluster that a declared command such as `kubectl` reaches: its context, and the server behind that name."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from opsleuth.tools.sources.kubeconfig import load_kube_context
from opsleuth.tools.spec import UnavailableError

_PROGRAMS = frozenset({"kubectl", "oc", "helm", "helmfile", "flux", "argo", "istioctl", "kustomize", "linkerd", "cilium", "velero"})  # fmt: skip
_CONTEXT_OPTIONS = ("--context", "--kube-context")


def describe_kube_target(argv: Sequence[str], seen: Mapping[str, str]) -> dict[str, str]:
    """Context and server that the kubeconfig names for this command; empty for programs that are not of Kubernetes."""
    if not any(Path(word).name in _PROGRAMS for word in argv):
        return {}
    given = _option_value(argv, ("--kubeconfig",)) or seen.get("KUBECONFIG", "")
    paths = [Path(part) for part in given.split(os.pathsep) if part]
    home = Path(seen.get("HOME") or "~").expanduser()
    try:
        found = load_kube_context(
            "kubectl", paths or [home / ".kube" / "config"], _option_value(argv, _CONTEXT_OPTIONS)
        )
    except UnavailableError:
        return {"kube_server": "not known: no kubeconfig names it"}
    return {"kube_context": found.name, "kube_server": str(found.cluster.server)}


def _option_value(argv: Sequence[str], names: Sequence[str]) -> str | None:
    for word, after in zip(argv, (*argv[1:], ""), strict=True):
        name, equals, value = word.partition("=")
        if name in names:
            return value if equals else after or None
    return None
