"""Amazon SNS: what it signs for a configured topic is taken and its subscription confirmed; everything else is refused."""

import base64
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from service_rig import SENDERS, Api, folder_store, serving

from opsleuth.configuration.service_settings import parse_service_settings
from opsleuth.service.sns_messages import SIGNATURE_HASHES, SnsMessages, SnsRefusedError, build_signed_text
from opsleuth.state.clock import FakeClock, format_timestamp
from opsleuth.state.errors import ConfigError

TOPIC = "arn:aws:sns:eu-central-1:123456789012:alarms"
SENDER = {"kind": "sns", "team": "shop", "topics": [TOPIC]}
CERTIFICATE = "https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-0123.pem"
CONFIRM = "https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=x&Token=y"
KEY = rsa.generate_private_key(65_537, 2_048)
ALARM = {
    "AlarmName": "checkout-5xx",
    "AlarmDescription": "5xx of checkout above 5 %",
    "NewStateValue": "ALARM",
    "NewStateReason": "Threshold Crossed",
    "StateChangeTime": "2026-11-29T14:00:00.000+0000",
    "Trigger": {"MetricName": "HTTPCode_Target_5XX_Count", "Dimensions": [{"name": "Service", "value": "checkout"}]},
}  # fmt: skip


def make_certificate(key: Any, days: int = 365) -> bytes:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "sns.amazonaws.com")])
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, begin + timedelta(days=days))
    return made.sign(key, SHA256()).public_bytes(Encoding.PEM)


class Amazon:
    """What lies at Amazon's addresses, and which of them were fetched."""

    def __init__(self) -> None:
        self.pages = {CERTIFICATE: make_certificate(KEY), CONFIRM: b"<ConfirmSubscriptionResponse/>"}
        self.fetched: list[str] = []

    async def fetch(self, address: str) -> bytes:
        self.fetched.append(address)
        if address not in self.pages:
            raise SnsRefusedError("Amazon SNS answered with status 404")
        return self.pages[address]


def sign(message: dict[str, Any], key: rsa.RSAPrivateKey = KEY) -> dict[str, Any]:
    made = SIGNATURE_HASHES.get(message["SignatureVersion"], SHA256)()
    signature = key.sign(build_signed_text(message), PKCS1v15(), made)
    return {**message, "Signature": base64.b64encode(signature).decode()}


def make_message(clock: FakeClock, kind: str = "Notification", **more: Any) -> dict[str, Any]:
    """A message that SNS would send, without a signature."""
    asks = {} if kind == "Notification" else {"SubscribeURL": CONFIRM, "Token": "t" * 64}
    return {
        "Type": kind,
        "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
        "TopicArn": TOPIC,
        "Subject": 'ALARM: "checkout-5xx"',
        "Message": json.dumps(ALARM),
        "Timestamp": format_timestamp(clock.now()),
        "SignatureVersion": "2",
        "SigningCertURL": CERTIFICATE,
        **asks,
        **more,
    }


@pytest.fixture
def amazon() -> Amazon:
    return Amazon()


@pytest.fixture
async def api(tmp_path: Path, clock: FakeClock, amazon: Amazon) -> AsyncIterator[Api]:
    senders = SENDERS | {"cloudwatch": SENDER}
    sns = SnsMessages(amazon.fetch)
    async with serving(folder_store(tmp_path), clock, sns=sns, senders=senders) as running:
        yield running


async def send(api: Api, message: Any) -> tuple[int, Any]:
    """As SNS sends it: JSON that is called text."""
    answer = await api(
        "POST",
        "/api/webhooks/cloudwatch",
        content=json.dumps(message),
        headers={"Content-Type": "text/plain"},
    )
    return answer.status_code, answer.json()


@pytest.mark.parametrize("version", ["1", "2"])
async def test_signed_alarm_of_a_configured_topic_starts_a_run(
    api: Api, clock: FakeClock, version: str
) -> None:
    status, answer = await send(api, sign(make_message(clock, SignatureVersion=version)))
    assert (status, answer["started"]) == (202, 1)
    (receipt,) = api.store.receipts.list("shop")
    assert (receipt.name, receipt.service, receipt.sender) == ("checkout-5xx", "checkout", "cloudwatch")


async def test_subscription_of_a_configured_topic_is_confirmed(
    api: Api, clock: FakeClock, amazon: Amazon
) -> None:
    status, answer = await send(
        api, sign(make_message(clock, "SubscriptionConfirmation", Message="confirm it"))
    )
    assert (status, answer["started"]) == (202, 0)
    assert amazon.fetched == [CERTIFICATE, CONFIRM]


async def test_end_of_a_subscription_is_not_undone(api: Api, clock: FakeClock, amazon: Amazon) -> None:
    status, _ = await send(api, sign(make_message(clock, "UnsubscribeConfirmation", Message="it has ended")))
    assert status == 202
    assert amazon.fetched == [CERTIFICATE]


async def test_certificate_is_fetched_once(api: Api, clock: FakeClock, amazon: Amazon) -> None:
    for number in range(3):
        assert (await send(api, sign(make_message(clock, MessageId=str(number)))))[0] == 202
    assert amazon.fetched == [CERTIFICATE]


STRANGE: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "another topic": lambda m: sign({**m, "TopicArn": f"{TOPIC}-of-others"}),
    "no topic": lambda m: sign({**m, "TopicArn": None}),
    "a changed message": lambda m: {**sign(m), "Message": json.dumps({**ALARM, "AlarmName": "x"})},
    "a changed type": lambda m: {**sign(m), "Type": "UnsubscribeConfirmation"},
    "another key": lambda m: sign(m, rsa.generate_private_key(65_537, 2_048)),
    "no signature": lambda m: m,
    "a signature that is no base64": lambda m: {**m, "Signature": "%%%"},
    "an unknown version": lambda m: {**sign(m), "SignatureVersion": "3"},
    "an old message": lambda m: sign({**m, "Timestamp": "2026-11-28T14:00:00.000Z"}),
    "no time": lambda m: sign({**m, "Timestamp": "soon"}),
    **{
        f"a certificate at {address}": lambda m, address=address: sign({**m, "SigningCertURL": address})  # type: ignore[misc]
        for address in (
            "http://sns.eu-central-1.amazonaws.com/a.pem",
            "https://sns.eu-central-1.amazonaws.com.evil.example/a.pem",
            "https://evil.example/sns.eu-central-1.amazonaws.com/a.pem",
            "https://sns.eu-central-1.amazonaws.com@evil.example/a.pem",
            "https://sns.eu-central-1.amazonaws.com:8443/a.pem",
            "https://snsXeu-central-1.amazonaws.com/a.pem",
            "https://s3.eu-central-1.amazonaws.com/a.pem",
            "https://[::1/a.pem",
            "file:///etc/passwd",
            "",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("strange", STRANGE)
async def test_what_amazon_has_not_signed_for_us_is_refused(
    api: Api, clock: FakeClock, amazon: Amazon, strange: str
) -> None:
    status, answer = await send(api, STRANGE[strange](make_message(clock)))
    assert (status, answer["error"]) == (401, "unauthorized")
    assert set(amazon.fetched) <= {CERTIFICATE}
    assert api.store.receipts.list("shop") == ()
    assert api.queued == []


async def test_subscription_of_another_topic_is_not_confirmed(
    api: Api, clock: FakeClock, amazon: Amazon
) -> None:
    asked = make_message(clock, "SubscriptionConfirmation", TopicArn=f"{TOPIC}-of-others")
    assert (await send(api, sign(asked)))[0] == 401
    assert amazon.fetched == []


@pytest.mark.parametrize(
    "address", ["https://evil.example/?Action=ConfirmSubscription", "http://sns.x.amazonaws.com/"]
)
async def test_no_other_address_is_called_to_confirm(
    api: Api, clock: FakeClock, amazon: Amazon, address: str
) -> None:
    status, _ = await send(api, sign(make_message(clock, "SubscriptionConfirmation", SubscribeURL=address)))
    assert status == 503
    assert amazon.fetched == [CERTIFICATE]


@pytest.mark.parametrize(
    "certificate",
    [
        b"not a certificate",
        make_certificate(KEY, days=30),
        make_certificate(ec.generate_private_key(ec.SECP256R1())),
    ],
    ids=["unreadable", "expired", "of another kind"],
)
async def test_certificate_that_proves_nothing_is_refused(
    api: Api, clock: FakeClock, amazon: Amazon, certificate: bytes
) -> None:
    amazon.pages[CERTIFICATE] = certificate
    assert (await send(api, sign(make_message(clock))))[0] == 401


@pytest.mark.parametrize(
    "body", ["", "[]", "{}", "nonsense", '{"Type": "Notification"}', '{"TopicArn": ["x"]}']
)
async def test_body_that_is_no_message_is_refused(api: Api, body: str) -> None:
    answer = await api("POST", "/api/webhooks/cloudwatch", content=body)
    assert answer.status_code == (422 if body in ("", "[]", "nonsense") else 401)


@pytest.mark.parametrize(
    ("sender", "problem"),
    [
        ({"kind": "sns", "team": "shop"}, "needs topics"),
        ({**SENDER, "secret": {"env": "X"}}, "no secret"),
        ({"kind": "grafana", "team": "shop"}, "needs a secret"),
        ({"kind": "grafana", "team": "shop", "secret": {"env": "X"}, "topics": [TOPIC]}, "no topics"),
    ],
)
def test_sender_without_a_way_to_check_it_is_refused(sender: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_service_settings({"senders": {"cloudwatch": sender}}, "the test")
