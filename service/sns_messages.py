"""Messages of Amazon SNS: signed with a certificate of Amazon's, taken of configured topics alone.

A topic asks once whether its messages are wanted (`SubscriptionConfirmation`); for a configured one the answer is yes.
https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html
"""

import base64
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from cryptography.x509 import Certificate, load_pem_x509_certificate

from opsleuth.state.errors import OpsleuthError

Fetch = Callable[[str], Awaitable[bytes]]
"""What lies at an address of Amazon's. Raises SnsRefusedError."""

OLDEST: Final = timedelta(hours=1)
"""Older messages are not taken: they may be sent again by somebody else."""
LARGEST_ANSWER: Final = 100_000
MOST_CERTIFICATES: Final = 20
FETCH_SECONDS: Final = 10.0
_HOST = re.compile(r"sns\.[a-z0-9-]{1,30}\.amazonaws\.com(?:\.cn)?")
_SIGNED_FIELDS: Mapping[str, tuple[str, ...]] = {
    "Notification": ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    **dict.fromkeys(
        ("SubscriptionConfirmation", "UnsubscribeConfirmation"),
        ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"),
    ),
}
SIGNATURE_HASHES: Mapping[str, Callable[[], SHA1 | SHA256]] = {"1": SHA1, "2": SHA256}


class SnsRefusedError(OpsleuthError):
    """A message that is not of a configured topic, or not signed by Amazon."""


async def fetch_from_amazon(address: str) -> bytes:
    """What lies at this address, without following it elsewhere. Raises SnsRefusedError."""
    try:
        async with httpx.AsyncClient(timeout=FETCH_SECONDS, follow_redirects=False) as client:
            answer = await client.get(address)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise SnsRefusedError(f"Amazon SNS cannot be reached: {type(error).__name__}") from None
    if answer.status_code != httpx.codes.OK or len(answer.content) > LARGEST_ANSWER:
        raise SnsRefusedError(f"Amazon SNS answered with status {answer.status_code}")
    return answer.content


class SnsMessages:
    """Checks and confirms messages of SNS; certificates are fetched once."""

    def __init__(self, fetch: Fetch = fetch_from_amazon) -> None:
        self._fetch = fetch
        self._certificates: dict[str, Certificate] = {}

    async def verify(self, message: Mapping[str, Any], topics: Collection[str], now: datetime) -> None:
        """Raises SnsRefusedError for anything that is not a fresh message of one of these topics, signed by Amazon.

        Nothing is fetched for a topic that is not configured.
        """
        if message.get("TopicArn") not in topics:
            raise SnsRefusedError("the topic of the message is not among the topics of this sender")
        if (
            message.get("Type") not in _SIGNED_FIELDS
            or message.get("SignatureVersion") not in SIGNATURE_HASHES
        ):
            raise SnsRefusedError("it is not a message of Amazon SNS that this version knows")
        _refuse_old_message(message.get("Timestamp"), now)
        certificate = await self._find_certificate(
            _require_amazon_address(message.get("SigningCertURL")), now
        )
        _check_signature(message, certificate)

    async def confirm(self, message: Mapping[str, Any]) -> bool:
        """Confirm the subscription that a verified message asks for; False for a message that asks for none."""
        if message["Type"] != "SubscriptionConfirmation":
            return False
        await self._fetch(_require_amazon_address(message.get("SubscribeURL")))
        return True

    async def _find_certificate(self, address: str, now: datetime) -> Certificate:
        known = self._certificates.get(address)
        if known is None:
            try:
                known = load_pem_x509_certificate(await self._fetch(address))
            except ValueError:
                raise SnsRefusedError("the certificate of the message cannot be read") from None
            if len(self._certificates) >= MOST_CERTIFICATES:
                self._certificates.clear()
            self._certificates[address] = known
        if not known.not_valid_before_utc <= now <= known.not_valid_after_utc:
            raise SnsRefusedError("the certificate of the message has expired, or is not valid yet")
        return known


def _require_amazon_address(address: object) -> str:
    """An HTTPS address of Amazon SNS itself. Raises SnsRefusedError for every other one."""
    if isinstance(address, str) and len(address) <= 2_000 and address.isascii() and address.isprintable():
        try:
            parts = urlsplit(address)
            is_plain = parts.port is None and parts.username is None and parts.password is None
        except ValueError:
            is_plain = False
        if is_plain and parts.scheme == "https" and _HOST.fullmatch(parts.netloc):
            return address
    raise SnsRefusedError("the message names an address that is not one of Amazon SNS")


def _refuse_old_message(moment: object, now: datetime) -> None:
    try:
        sent = datetime.fromisoformat(str(moment))
    except ValueError:
        raise SnsRefusedError("the message has no time") from None
    sent = sent if sent.tzinfo else sent.replace(tzinfo=UTC)
    if abs(now - sent) > OLDEST:
        raise SnsRefusedError("the message is older than an hour")


def _check_signature(message: Mapping[str, Any], certificate: Certificate) -> None:
    """Raises SnsRefusedError where the signature is not that of this certificate over these fields."""
    key = certificate.public_key()
    try:
        signature = base64.b64decode(str(message.get("Signature")), validate=True)
        if not isinstance(key, RSAPublicKey):
            raise SnsRefusedError("the certificate of the message holds no RSA key")
        key.verify(
            signature, build_signed_text(message), PKCS1v15(), SIGNATURE_HASHES[message["SignatureVersion"]]()
        )
    except (InvalidSignature, ValueError):
        raise SnsRefusedError("the message is not signed by Amazon SNS, or was changed") from None


def build_signed_text(message: Mapping[str, Any]) -> bytes:
    """The bytes that Amazon signs: names and values of some fields, each in a line of its own."""
    fields = _SIGNED_FIELDS[message["Type"]]
    return "".join(f"{name}\n{message[name]}\n" for name in fields if message.get(name) is not None).encode()
