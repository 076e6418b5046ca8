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

from opsleuth.state.configfile import problems
from opsleuth.state.folders import expanded
from opsleuth.tools.nearest import suggestion
from opsleuth.tools.spec import Unavailable

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class _Part(BaseModel):
    model_config = ConfigDict(
        frozen=True, hide_input_in_errors=True, alias_generator=lambda name: name.replace("_", "-")
    )


class Cluster(_Part):
    server: str = ""
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = None


class Variable(BaseModel):
    name: str
    value: str


class Exec(BaseModel):
    """A program that prints who we are; `interactive_mode` Always means that it would ask a person."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    api_version: str = Field(default="client.authentication.k8s.io/v1", alias="apiVersion")
    command: str
    args: tuple[str, ...] | None = None
    env: tuple[Variable, ...] | None = None
    provide_cluster_info: bool = Field(default=False, alias="provideClusterInfo")
    install_hint: str = Field(default="", alias="installHint")
    interactive_mode: str = Field(default="IfAvailable", alias="interactiveMode")


class User(_Part):
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = Field(default=None, alias="tokenFile")
    username: str | None = None
    password: str | None = None
    exec: Exec | None = None
    auth_provider: Mapping[str, Any] | None = None


class _ContextPart(_Part):
    cluster: str = ""
    user: str = ""
    namespace: str | None = None


class _NamedCluster(_Part):
    name: str
    cluster: Cluster


class _NamedUser(_Part):
    name: str
    user: User | None = None


class _NamedContext(_Part):
    name: str
    context: _ContextPart


class _Document(_Part):
    current_context: str = ""
    clusters: tuple[_NamedCluster, ...] | None = None
    users: tuple[_NamedUser, ...] | None = None
    contexts: tuple[_NamedContext, ...] | None = None


Entry = TypeVar("Entry", Cluster, User)


@dataclass(frozen=True, slots=True)
class Context:
    """A cluster and who we are to it; paths in both are absolute."""

    name: str
    cluster: Cluster
    user: User = field(default_factory=User)
    namespace: str = "default"


def open_context(source: str, paths: Sequence[Path], wanted: str | None) -> Context:
    """The context `wanted`, else the current one, of these files. Raises Unavailable; `source` is for its words."""
    documents = [(path, _read(source, path)) for path in paths if path.exists()]
    if not documents:
        if os.environ.get("KUBERNETES_SERVICE_HOST") and not wanted:
            return _own_account()
        raise Unavailable(f"{source}: there is no kubeconfig at {', '.join(map(str, paths))}: set kubeconfig")
    contexts = _first_wins((c.name, c.context) for _, d in documents for c in d.contexts or ())
    name = wanted or next((d.current_context for _, d in documents if d.current_context), "")
    if name not in contexts:
        said = f"there is no context {name!r}" if name else "no context is current"
        raise Unavailable(f"{source}: {said} ({suggestion(name, contexts)}): set context")
    chosen = contexts[name]
    clusters = _first_wins((c.name, _placed(c.cluster, p)) for p, d in documents for c in d.clusters or ())
    users = _first_wins((u.name, _placed(u.user or User(), p)) for p, d in documents for u in d.users or ())
    if chosen.cluster not in clusters or not clusters[chosen.cluster].server:
        raise Unavailable(
            f"{source}: context {name} names the cluster {chosen.cluster!r}, which is not there"
        )
    return Context(
        name, clusters[chosen.cluster], users.get(chosen.user, User()), chosen.namespace or "default"
    )


def usual_paths() -> Sequence[Path]:
    """Where kubectl would look."""
    given = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return given or [expanded("~/.kube/config")]


def decoded(source: str, what: str, text: str) -> bytes:
    """The bytes of a `…-data` field. Raises Unavailable."""
    try:
        return b64decode(text, validate=True)
    except (NoBase64, ValueError):
        raise Unavailable(f"{source}: {what} in the kubeconfig is no base64") from None


def _read(source: str, path: Path) -> _Document:
    try:
        document = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
        return _Document.model_validate(document or {})
    except OSError as error:
        raise Unavailable(f"{source}: {path} cannot be read ({error.strerror or error})") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise Unavailable(f"{source}: {path} is no YAML{where}") from None
    except ValidationError as error:
        raise Unavailable(f"{source}: {path} is no kubeconfig ({problems(error)})") from None


def _first_wins(pairs: Iterator[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        found.setdefault(name, value)
    return found


def _placed(entry: Entry, file: Path) -> Entry:
    """The entry with its paths made absolute."""
    names = ("certificate_authority", "client_certificate", "client_key", "token_file")
    own = {n: str(file.parent / path) for n in names if (path := getattr(entry, n, None))}
    return entry.model_copy(update=own)


def _own_account() -> Context:
    """The account of the pod that we run in."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    host = f"[{host}]" if ":" in host else host
    cluster = Cluster.model_validate(
        {"server": f"https://{host}:{port}", "certificate-authority": str(ACCOUNT / "ca.crt")}
    )
    own = ACCOUNT / "namespace"
    namespace = own.read_text(encoding="utf-8").strip() if own.exists() else "default"
    return Context(
        "in-cluster", cluster, User.model_validate({"tokenFile": str(ACCOUNT / "token")}), namespace
    )
