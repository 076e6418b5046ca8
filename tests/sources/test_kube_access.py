"""A kubeconfig leads to its cluster: by certificate, token, password, a program; and says what is wrong with it."""

import json
import ssl
import sys
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from certificates import certificates
from contract_server import Asked, ContractServer, Reply, contract_server
from kube_cluster import kubeconfig

from opsleuth.configuration.secret_references import Vault
from opsleuth.configuration.source_settings import KubernetesSettings
from opsleuth.state.clock import FakeClock
from opsleuth.tools.sources.kube_api import KubeApi, list_items
from opsleuth.tools.spec import NotPermittedError, UnavailableError

NOW = datetime(2026, 3, 3, 14, tzinfo=UTC)
TOKEN = "token-4711"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    certificates(folder)
    return folder


@pytest.fixture
def cluster(keys: Path) -> Iterator[ContractServer]:
    """A cluster over TLS that asks for a client certificate, and without one for the token."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(keys / "ca.pem"))
    tls.load_cert_chain(keys / "server.pem", keys / "server.key")
    tls.verify_mode = ssl.CERT_OPTIONAL
    with contract_server(_pods, tls) as server:
        yield server


def _pods(asked: Asked) -> Reply:
    given = asked.headers.get("authorization")
    if given not in (None, f"Bearer {TOKEN}", f"Basic {b64encode(b'me:right').decode()}"):
        return Reply(
            {"kind": "Status", "reason": "Unauthorized", "code": 401, "message": "Unauthorized"}, 401
        )
    return Reply(
        {"kind": "PodList", "metadata": {}, "items": [{"metadata": {"name": given or "by certificate"}}]}
    )


def written(folder: Path, server: str, user: dict[str, Any], **cluster: Any) -> Path:
    return kubeconfig(folder, server, user, namespace="orders", **cluster)


def in_base64(path: Path) -> str:
    return b64encode(path.read_bytes()).decode()


async def asked(path: Path, vault: Vault | None = None, **more: Any) -> str:
    """What the cluster takes us for."""
    api = KubeApi("k8s", KubernetesSettings(kubeconfig=str(path), **more), vault or Vault(), FakeClock(NOW))
    return await asked_again(api)


async def asked_again(api: KubeApi) -> str:
    async with api.session() as session:
        [pod] = await list_items(session, "/api/v1/pods")
    return str(pod["metadata"]["name"])


async def test_a_client_certificate_in_the_file(cluster: ContractServer, keys: Path, tmp_path: Path) -> None:
    user = {"client-certificate-data": in_base64(keys / "client.pem"), "client-key-data": in_base64(keys / "client.key")}  # fmt: skip
    path = written(tmp_path, cluster.url, user, **{"certificate-authority-data": in_base64(keys / "ca.pem")})
    assert await asked(path) == "by certificate"


async def test_paths_start_at_the_file_that_names_them(cluster: ContractServer, keys: Path) -> None:
    user = {"client-certificate": "client.pem", "client-key": "client.key"}
    assert (
        await asked(written(keys, cluster.url, user, **{"certificate-authority": "ca.pem"}))
        == "by certificate"
    )


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"token": TOKEN}, f"Bearer {TOKEN}"),
        ({"tokenFile": "token"}, f"Bearer {TOKEN}"),
        ({"username": "me", "password": "right"}, f"Basic {b64encode(b'me:right').decode()}"),
    ],
)
async def test_tokens_and_passwords_are_told_to_the_redactor(
    cluster: ContractServer, keys: Path, tmp_path: Path, user: dict[str, str], expected: str
) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    vault, secrets = Vault(), list[str]()
    vault.listen(secrets.append)
    path = written(tmp_path, cluster.url, user, **{"certificate-authority": str(keys / "ca.pem")})
    assert await asked(path, vault) == expected
    assert expected.split()[1] in secrets


def plugin(folder: Path, body: str) -> dict[str, Any]:
    """A user whose credential a program prints; it notes each of its runs."""
    program = folder / "login.py"
    program.write_text(f"import json, os, sys\nopen({str(folder / 'runs')!r}, 'a').write('x')\n{body}\n")
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(program)],
            "env": [{"name": "PROFILE", "value": "shop"}],
            "provideClusterInfo": True,
            "installHint": "install the login helper",
        }
    }


SAYS = """
told = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert told["spec"]["interactive"] is False and told["spec"]["cluster"]["server"], told
status = {"token": "token-4711", "expirationTimestamp": "2026-03-03T14:10:00Z"}
print(json.dumps({"kind": "ExecCredential", "apiVersion": told["apiVersion"], "status": status}))
"""


async def test_a_program_is_asked_once_until_its_word_expires(
    cluster: ContractServer, keys: Path, tmp_path: Path
) -> None:
    path = written(
        tmp_path, cluster.url, plugin(tmp_path, SAYS), **{"certificate-authority": str(keys / "ca.pem")}
    )
    clock = FakeClock(NOW)
    api = KubeApi("k8s", KubernetesSettings(kubeconfig=str(path)), Vault(), clock)
    for _ in range(2):
        assert await asked_again(api) == f"Bearer {TOKEN}"
    assert (tmp_path / "runs").read_text() == "x"
    clock.advance(timedelta(minutes=10).total_seconds())
    assert await asked_again(api) == f"Bearer {TOKEN}"
    assert (tmp_path / "runs").read_text() == "xx"


async def test_a_word_that_the_cluster_does_not_know_is_asked_for_anew(
    cluster: ContractServer, keys: Path, tmp_path: Path
) -> None:
    body = SAYS.replace('"token-4711"', "'token-' + str(4709 + os.path.getsize(sys.path[0] + '/runs'))")
    path = written(
        tmp_path, cluster.url, plugin(tmp_path, body), **{"certificate-authority": str(keys / "ca.pem")}
    )
    api = KubeApi("k8s", KubernetesSettings(kubeconfig=str(path)), Vault(), FakeClock(NOW))
    with pytest.raises(NotPermittedError, match="does not accept the credentials"):
        await asked_again(api)
    assert await asked_again(api) == f"Bearer {TOKEN}"


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        ("sys.exit('session is over: log in again')", NotPermittedError, "log in again"),
        ("print('hello')", UnavailableError, "printed no ExecCredential"),
        ("print(json.dumps({'status': {}}))", NotPermittedError, "neither token nor certificate"),
    ],
)
async def test_a_program_that_gives_nothing(
    keys: Path, tmp_path: Path, body: str, error: type[Exception], words: str
) -> None:
    path = written(
        tmp_path,
        "https://localhost:1",
        plugin(tmp_path, body),
        **{"certificate-authority": str(keys / "ca.pem")},
    )
    with pytest.raises(error, match=words):
        await asked(path)


async def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    user = {"exec": {"command": "no-such-login", "installHint": "install the login helper"}}
    with pytest.raises(UnavailableError, match=r"no-such-login cannot be run.*install the login helper"):
        await asked(written(tmp_path, "https://localhost:1", user))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("clusters: }", "not YAML in line 1"),
        ("clusters: 7", "not a kubeconfig"),
        ("current-context: eu\ncontexts: [{name: eu-1, context: {cluster: c}}]", "no context 'eu'.*eu-1"),
        ("current-context: eu\ncontexts: [{name: eu, context: {cluster: c}}]", "names the cluster 'c'"),
        ("{}", "no context is current"),
    ],
)
async def test_a_file_that_leads_nowhere(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(UnavailableError, match=words):
        await asked(path)


async def test_files_are_merged_and_the_first_wins(
    cluster: ContractServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder, token in ((first, TOKEN), (second, "wrong")):
        folder.mkdir()
        written(folder, cluster.url, {"token": token}, **{"insecure-skip-tls-verify": True})
    monkeypatch.setenv("KUBECONFIG", f"{first / 'kubeconfig'}:{tmp_path / 'absent'}:{second / 'kubeconfig'}")
    api = KubeApi("k8s", KubernetesSettings(), Vault(), FakeClock(NOW))
    assert await asked_again(api) == f"Bearer {TOKEN}"
    assert api.context is not None
    assert api.context.namespace == "orders"


async def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"no kubeconfig at .*set kubeconfig"):
        await asked(tmp_path / "absent")


async def test_a_list_in_pages_of_which_a_token_has_grown_old(keys: Path, tmp_path: Path) -> None:
    """410 with reason Expired, as the API concepts document says; the list is taken anew."""
    gone = [True]

    def answering(asked: Asked) -> Reply:
        if not asked.query.get("continue"):
            return Reply({"items": [{"n": 1}], "metadata": {"continue": "next"}})
        if gone.pop() if gone else False:
            said = {
                "kind": "Status",
                "reason": "Expired",
                "code": 410,
                "message": "The provided continue parameter is too old",
            }
            return Reply(said, 410)
        return Reply({"items": [{"n": 2}], "metadata": {}})

    with contract_server(answering) as server:
        api = KubeApi(
            "k8s",
            KubernetesSettings(kubeconfig=str(written(tmp_path, server.url, {}))),
            Vault(),
            FakeClock(NOW),
        )
        async with api.session() as session:
            assert [item["n"] for item in await list_items(session, "/api/v1/pods")] == [1, 2]
    assert json.dumps([a.query.get("continue") for a in server.asked]) == '[null, "next", null, "next"]'
