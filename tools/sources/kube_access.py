"""How a kubeconfig's user authenticates to a cluster: certificate, token, password, or an exec plugin."""

import json
import os
import ssl
import tempfile
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from opsleuth.configuration.secret_references import Vault, run_secret_command
from opsleuth.state.clock import Clock
from opsleuth.tools.sources.http_client import HttpCredentials
from opsleuth.tools.sources.kubeconfig import ExecPlugin, KubeContext, decode_base64_field
from opsleuth.tools.spec import NotPermittedError, UnavailableError

PROGRAM_SECONDS = 6.0
# A credential is asked for again so long before it expires: a request takes its time too.
_EARLY = timedelta(seconds=30)


class _CredentialStatus(BaseModel):
    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    token: str = ""
    certificate: str = Field(default="", alias="clientCertificateData")
    key: str = Field(default="", alias="clientKeyData")
    expires: AwareDatetime | None = Field(default=None, alias="expirationTimestamp")


class _ExecCredential(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True)

    status: _CredentialStatus


@dataclass(slots=True)
class KubeAccess:
    """The headers and the TLS of one context. Every secret that is met is told to the vault. Calls block."""

    name: str
    context: KubeContext
    vault: Vault
    clock: Clock
    _known: _CredentialStatus | None = field(default=None, init=False)

    def __call__(self) -> HttpCredentials:
        """Raises UnavailableError, NotPermittedError where there is nothing to prove it with."""
        said = self._said()
        return HttpCredentials(self._headers(said), self._trust(said))

    def forget(self) -> None:
        """Ask the program again: the cluster did not know what it said."""
        self._known = None

    def _said(self) -> _CredentialStatus:
        """What the exec plugin says, as long as it holds."""
        program = self.context.user.exec
        if program is None:
            return _CredentialStatus()
        if self._known is None or _is_expired(self._known, self.clock.now()):
            self._known = self._run(program)
        return self._known

    def _headers(self, said: _CredentialStatus) -> Mapping[str, str]:
        user = self.context.user
        if user.auth_provider is not None:
            raise UnavailableError(
                f"{self.name}: auth-provider is gone from Kubernetes: use an exec plugin instead"
            )
        if user.username is not None and user.password is not None:
            pair = b64encode(f"{user.username}:{user.password}".encode()).decode()
            self._learn(user.password, pair)
            return {"authorization": f"Basic {pair}"}
        token = said.token or user.token or self._of_file(user.token_file)
        self._learn(token)
        return {"authorization": f"Bearer {token}"} if token else {}

    def _of_file(self, path: str | None) -> str:
        return self._bytes(path).decode("utf-8", "replace").strip() if path else ""

    def _bytes(self, path: str) -> bytes:
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise UnavailableError(
                f"{self.name}: {path} cannot be read ({error.strerror or error})"
            ) from None

    def _trust(self, said: _CredentialStatus) -> ssl.SSLContext:
        cluster, user = self.context.cluster, self.context.user
        ca = self._either(
            "certificate-authority-data", cluster.certificate_authority_data, cluster.certificate_authority
        )
        certificate = said.certificate.encode() or self._either(
            "client-certificate-data", user.client_certificate_data, user.client_certificate
        )
        key = said.key.encode() or self._either("client-key-data", user.client_key_data, user.client_key)
        try:
            context = ssl.create_default_context(cadata=ca.decode("ascii") if ca else None)
            if cluster.insecure_skip_tls_verify:
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if certificate:
                _load_client_certificate(context, certificate, key)
        except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
            raise UnavailableError(
                f"{self.name}: a certificate or key in the kubeconfig is not valid ({error})"
            ) from None
        return context

    def _either(self, what: str, data: str | None, path: str | None) -> bytes:
        return decode_base64_field(self.name, what, data) if data else self._bytes(path) if path else b""

    def _learn(self, *secrets: str) -> None:
        for secret in filter(None, secrets):
            self.vault.learn(secret)

    def _run(self, program: ExecPlugin) -> _CredentialStatus:
        """What the program prints; it is the operator's own, named in his kubeconfig. Raises UnavailableError, NotPermittedError."""
        if program.interactive_mode == "Always":
            raise UnavailableError(
                f"{self.name}: {program.command} would prompt for input: log in by hand first"
            )
        argv = [program.command, *(program.args or ())]
        try:
            printed = run_secret_command(
                argv, seconds=PROGRAM_SECONDS, environment=self._environment(program)
            )
        except UnavailableError as error:
            hint = f": {program.install_hint.strip()[:300]}" if program.install_hint else ""
            raise UnavailableError(f"{self.name}: {error}{hint}") from None
        if printed.code:
            raise NotPermittedError(
                f"{self.name}: {program.command} gave no credential ({printed.code}: {printed.problem})"
            )
        return self._credential(program, printed.output)

    def _credential(self, program: ExecPlugin, output: bytes) -> _CredentialStatus:
        try:
            status = _ExecCredential.model_validate_json(output).status
        except ValidationError:
            raise UnavailableError(f"{self.name}: {program.command} printed no ExecCredential") from None
        if not status.token and not (status.certificate and status.key):
            raise NotPermittedError(f"{self.name}: {program.command} gave neither token nor certificate")
        self._learn(status.token, status.key)
        return status

    def _environment(self, program: ExecPlugin) -> Mapping[str, str]:
        cluster = self.context.cluster
        spec: dict[str, object] = {"interactive": False}
        if program.provide_cluster_info:
            ca = self._either(
                "certificate-authority-data",
                cluster.certificate_authority_data,
                cluster.certificate_authority,
            )
            spec["cluster"] = {"server": cluster.server, "certificate-authority-data": b64encode(ca).decode()}
        told = {"kind": "ExecCredential", "apiVersion": program.api_version, "spec": spec}
        own = {variable.name: variable.value for variable in program.env or ()}
        return {**os.environ, **own, "KUBERNETES_EXEC_INFO": json.dumps(told)}


def _is_expired(status: _CredentialStatus, now: datetime) -> bool:
    return status.expires is not None and status.expires - _EARLY <= now


def _load_client_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load the pair. The library reads files only, so for a moment it is one that nobody else may open."""
    with tempfile.TemporaryDirectory() as folder:
        pair = Path(folder) / "pair.pem"
        pair.touch(mode=0o600)
        pair.write_bytes(certificate + b"\n" + key)
        context.load_cert_chain(pair)
