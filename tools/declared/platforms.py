"""Platforms that the operator declared: what may be changed of a cluster's deployments, or of a host's units.

[kubernetes.shop-eu]
context = "shop-eu"                             # of your kubeconfig; without it the current one
namespace = "shop"
changes = ["restart", "rollback", "scale"]      # default: all three
services = { orders-api = "orders" }            # a service whose deployment is called otherwise
environment = "production"                      # for rules

[systemd.web-1]
host = "oncall@web-1"                           # as in systemctl --host; without it this machine
services = { orders-api = "orders-api.service" }
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from opsleuth.configuration.secret_references import Vault
from opsleuth.configuration.source_settings import KubernetesSettings
from opsleuth.state.base import FrozenModel, Name
from opsleuth.state.clock import SystemClock
from opsleuth.tools.effects.kubernetes import KubernetesPlatform
from opsleuth.tools.effects.platform import Platform
from opsleuth.tools.effects.systemd import SystemdPlatform
from opsleuth.tools.sources.kube_api import KubeApi

Unit = Annotated[
    str, StringConstraints(pattern=r"^\w[\w@.:\\-]*\.(service|socket|timer|target)$", max_length=250)
]
Host = Annotated[str, StringConstraints(pattern=r"^\w[\w.@-]*$", max_length=250)]


class DeclaredPlatform(FrozenModel):
    """The base of every declared platform: a name, and itself as a platform; no request is sent yet."""

    name: Name
    environment: Name = "production"

    def platform(self, vault: Vault) -> Platform:
        raise NotImplementedError


class DeclaredKubernetesPlatform(DeclaredPlatform):
    """The deployments of one namespace, reached as the kubeconfig says."""

    kubeconfig: Name | None = None
    context: Name | None = None
    namespace: Name = "default"
    changes: Annotated[tuple[Literal["restart", "rollback", "scale"], ...], Field(min_length=1)] = (
        "restart",
        "rollback",
        "scale",
    )
    services: dict[Name, Name] = Field(default_factory=dict)

    def platform(self, vault: Vault) -> KubernetesPlatform:
        reached = KubernetesSettings(kubeconfig=self.kubeconfig, context=self.context)
        api = KubeApi(self.name, reached, vault, SystemClock())
        return KubernetesPlatform(
            self.name, api, self.namespace, self.environment, self.services, kinds=frozenset(self.changes)
        )


class DeclaredSystemdPlatform(DeclaredPlatform):
    """Units of one host, by the service that each runs."""

    services: Annotated[dict[Name, Unit], Field(min_length=1, max_length=500)]
    host: Host | None = None

    def platform(self, vault: Vault) -> SystemdPlatform:
        del vault
        return SystemdPlatform(self.name, self.services, self.environment, self.host)
