"""A kubeconfig: which cluster is meant, as whom, and how that is proven to it.

Files are merged as kubectl merges them: the first that names a thing wins, paths start at their own file. Without
any, the account of the pod that we run in is used.
"""

import os
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from opsleuth.configuration.config_file import format_validation_errors
from opsleuth.configuration.folders import expand_home
from opsleuth.state.nearest_name import suggest_names
from opsleuth.tools.spec import UnavailableError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class _KubeconfigPart(BaseModel):
    model_config = ConfigDict(
        frozen=True, hide_input_in_errors=True, alias_generator=lambda name: name.replace("_", "-")
    )


class KubeCluster(_KubeconfigPart):
    server: str = ""
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = None


class ExecVariable(BaseModel):
    name: str
    value: str


class ExecPlugin(BaseModel):
    """A program that prints who we are; `interactive_mode` Always means that it would ask a person."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    api_version: str = Field(default="client.authentication.k8s.io/v1", alias="apiVersion")
    command: str
    args: tuple[str, ...] | None = None
    env: tuple[ExecVariable, ...] | None = None
    provide_cluster_info: bool = Field(default=False, alias="provideClusterInfo")
    install_hint: str = Field(default="", alias="installHint")
    interactive_mode: str = Field(default="IfAvailable", alias="interactiveMode")


class KubeUser(_KubeconfigPart):
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = Field(default=None, alias="tokenFile")
    username: str | None = None
    password: str | None = None
    exec: ExecPlugin | None = None
    auth_provider: Mapping[str, Any] | None = None


class _KubeconfigContext(_KubeconfigPart):
    cluster: str = ""
    user: str = ""
    namespace: str | None = None


class _NamedKubeCluster(_KubeconfigPart):
    name: str
    cluster: KubeCluster


class _NamedKubeUser(_KubeconfigPart):
    name: str
    user: KubeUser | None = None


class _NamedKubeContext(_KubeconfigPart):
    name: str
    context: _KubeconfigContext


class _Kubeconfig(_KubeconfigPart):
    current_context: str = ""
    clusters: tuple[_NamedKubeCluster, ...] | None = None
    users: tuple[_NamedKubeUser, ...] | None = None
    contexts: tuple[_NamedKubeContext, ...] | None = None


Entry = TypeVar("Entry", KubeCluster, KubeUser)


@dataclass(frozen=True, slots=True)
class KubeContext:
    """A cluster and who we are to it; paths in both are absolute."""

    name: str
    cluster: KubeCluster
    user: KubeUser = field(default_factory=KubeUser)
    namespace: str = "default"


def load_kube_context(source: str, paths: Sequence[Path], wanted: str | None) -> KubeContext:
    """The context `wanted`, else the current one, of these files. Raises UnavailableError; `source` is for its words."""
    documents = [(path, _read_kubeconfig(source, path)) for path in paths if path.exists()]
    if not documents:
        if os.environ.get("KUBERNETES_SERVICE_HOST") and not wanted:
            return _in_cluster_context()
        raise UnavailableError(
            f"{source}: there is no kubeconfig at {', '.join(map(str, paths))}: set kubeconfig"
        )
    contexts = _merge_first_wins((c.name, c.context) for _, d in documents for c in d.contexts or ())
    name = wanted or next((d.current_context for _, d in documents if d.current_context), "")
    if name not in contexts:
        said = f"there is no context {name!r}" if name else "no context is current"
        raise UnavailableError(f"{source}: {said} ({suggest_names(name, contexts)}): set context")
    chosen = contexts[name]
    clusters = _merge_first_wins(
        (c.name, _with_absolute_paths(c.cluster, p)) for p, d in documents for c in d.clusters or ()
    )
    users = _merge_first_wins(
        (u.name, _with_absolute_paths(u.user or KubeUser(), p)) for p, d in documents for u in d.users or ()
    )
    if chosen.cluster not in clusters or not clusters[chosen.cluster].server:
        raise UnavailableError(
            f"{source}: context {name} names the cluster {chosen.cluster!r}, which is not there"
        )
    return KubeContext(
        name, clusters[chosen.cluster], users.get(chosen.user, KubeUser()), chosen.namespace or "default"
    )


def default_kubeconfig_paths() -> Sequence[Path]:
    """Where kubectl would look."""
    given = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return given or [expand_home("~/.kube/config")]


def decode_base64_field(source: str, what: str, text: str) -> bytes:
    """The bytes of a `…-data` field. Raises UnavailableError."""
    try:
        return b64decode(text, validate=True)
    except (NoBase64, ValueError):
        raise UnavailableError(f"{source}: {what} in the kubeconfig is not base64") from None


def _read_kubeconfig(source: str, path: Path) -> _Kubeconfig:
    try:
        document = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
        return _Kubeconfig.model_validate(document or {})
    except OSError as error:
        raise UnavailableError(f"{source}: {path} cannot be read ({error.strerror or error})") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise UnavailableError(f"{source}: {path} is not YAML{where}") from None
    except ValidationError as error:
        raise UnavailableError(
            f"{source}: {path} is not a kubeconfig ({format_validation_errors(error)})"
        ) from None


def _merge_first_wins(pairs: Iterator[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        found.setdefault(name, value)
    return found


def _with_absolute_paths(entry: Entry, file: Path) -> Entry:
    """The entry with its paths made absolute."""
    names = ("certificate_authority", "client_certificate", "client_key", "token_file")
    own = {n: str(file.parent / path) for n in names if (path := getattr(entry, n, None))}
    return entry.model_copy(update=own)


def _in_cluster_context() -> KubeContext:
    """The account of the pod that we run in."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    host = f"[{host}]" if ":" in host else host
    cluster = KubeCluster.model_validate(
        {"server": f"https://{host}:{port}", "certificate-authority": str(ACCOUNT / "ca.crt")}
    )
    own = ACCOUNT / "namespace"
    namespace = own.read_text(encoding="utf-8").strip() if own.exists() else "default"
    return KubeContext(
        "in-cluster", cluster, KubeUser.model_validate({"tokenFile": str(ACCOUNT / "token")}), namespace
    )
