"""Secrets in the forms in which they are found, planted by the hundred, and texts that only look like one."""

import json
import random
import time
from collections.abc import Mapping
from typing import Any

import pytest
from nonempty import nonempty
from planted_positional_forms import POSITIONAL_FORMS
from planted_secrets import PlantedSecret, SecretForm, make_secret, plant_all
from planted_stranger_forms import KIN_FORMS, STRANGER_FORMS
from planted_unseen_forms import UNSEEN_FORMS
from planted_vendor_forms import VENDOR_FORMS
from planted_written_forms import WRITTEN_FORMS
from secret_lookalikes import make_lookalikes

from opsleuth.redaction.environment_secrets import environment_secrets
from opsleuth.redaction.redactor import MARK, Redactor

ALL_FORMS = [*VENDOR_FORMS, *WRITTEN_FORMS, *UNSEEN_FORMS, *STRANGER_FORMS, *KIN_FORMS, *POSITIONAL_FORMS]


def leaks(planted: PlantedSecret, shown: str) -> bool:
    return any(needle in shown for needle in planted.needles)


@pytest.mark.parametrize("form", ALL_FORMS, ids=lambda form: form.name)
def test_a_planted_secret_does_not_come_out(form: SecretForm) -> None:
    for seed in range(5):
        planted = next(iter(plant_all([form], seed)))
        clean = Redactor([]).text(planted.text)
        assert not leaks(planted, clean.value), clean.value
        assert MARK.search(clean.value)
        assert Redactor([]).text(clean.value) == (clean.value, 0)


@pytest.mark.parametrize("place", ["field", "item", "log rows", "inner JSON"])
def test_a_planted_secret_does_not_come_out_of_a_document(place: str) -> None:
    leaked = []
    for planted in plant_all(ALL_FORMS, seed=11):
        document: Any = {
            "field": {"message": planted.text, "count": 3},
            "item": ["calm line", planted.text, "calm line"],
            "log rows": {"rows": [{"ts": 1, "line": "calm"}, {"ts": 2, "line": planted.text}]},
            "inner JSON": {"body": json.dumps({"message": planted.text})},
        }[place]
        shown = json.dumps(Redactor([])(document).value, ensure_ascii=False)
        leaked += [planted.form] if leaks(planted, shown) else []
    assert not leaked


def test_forms_are_many_and_each_is_named_once() -> None:
    assert min(len(VENDOR_FORMS), len(WRITTEN_FORMS), len(UNSEEN_FORMS), len(STRANGER_FORMS)) >= 100
    assert len({form.name for form in ALL_FORMS}) == len(ALL_FORMS)


def test_lookalikes_stay_as_they_are() -> None:
    texts = list(make_lookalikes(2_000, seed=7))
    harmed = [text for text in texts if Redactor([]).text(text).value != text]
    assert len(harmed) <= len(texts) // 200, harmed


def test_lookalikes_stay_in_documents() -> None:
    texts = list(make_lookalikes(400, seed=8))
    documents = [{"rows": [{"line": text} for text in texts[at : at + 4]]} for at in range(0, len(texts), 4)]
    harmed = [document for document in documents if Redactor([])(document).value != document]
    assert len(harmed) <= 1, harmed


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_a_private_key_is_taken_out_line_by_line(parts: int) -> None:
    body = make_secret("<pem>", random.Random(parts)).split("\n")
    lines = [
        "-----BEGIN RSA PRIVATE KEY-----",
        *body,
        body[0][:24] + "==",
        "-----END RSA PRIVATE KEY-----",
        "ready " + "ab" * 20,
    ]
    documents = [
        [{"pod": "web", "line": f"10:00:0{number} app | {line}"} for number, line in enumerate(lines)],
        {"rows": lines},
        [[number, line] for number, line in enumerate(lines)],
    ]
    for document in nonempty(documents):
        shown = json.dumps(Redactor([])(document).value)
        assert not any(line in shown for line in [*body, body[0][:24]])
        assert "ready " + "ab" * 20 in shown


@pytest.mark.parametrize(
    "document",
    [
        {"args": ["--db-password", "hunter-Z9"]},
        {"command": ["worker", "--token", "hunter-Z9-hunter-Z9", "--queue", "orders"]},
        {"env": [{"name": "SMTP_PASS", "value": "hunter-Z9"}]},
        {"secret_key_base": "hunter-Z9"},
        {"kind": "SecretList", "items": [{"kind": "Secret", "data": {"a": "hunter-Z9"}}]},
        {"headers": {"X-Api-Key": ["hunter-Z9-hunter-Z9"]}},
    ],
)
def test_arguments_and_fields_with_telling_names(document: dict[str, Any]) -> None:
    assert "hunter-Z9" not in json.dumps(Redactor([])(document).value)


@pytest.mark.parametrize(
    "document",
    [
        {"volumes": [{"name": "tls", "secret": {"secretName": "checkout-tls", "defaultMode": 420}}]},
        {"env": [{"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}]},
        {"secret": "db-credentials", "secrets": 3, "tokens": 1200, "pass": 12},
        {"imagePullSecrets": [{"name": "regcred"}], "automountServiceAccountToken": False},
        {"message": "Access denied for user 'shop'@'10.0.0.1' (using password: YES)"},
        {"note": "password policy", "session": "6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b"},
    ],
)
def test_names_and_counts_stay(document: dict[str, Any]) -> None:
    assert Redactor([])(document) == (document, 0)


@pytest.mark.parametrize(
    ("environ", "secrets"),
    [
        ({"SHOP_DB_PASSWORD": "Hunter2-blue"}, ["Hunter2-blue"]),
        ({"DATABASE_URL": "postgres://shop:Hunter2-blue@db/shop"}, ["Hunter2-blue"]),
        ({"PWD": "/home/app", "TOKEN_FILE": "/run/token", "PASSWORD": "checkout", "API_TOKEN": "short"}, []),
        ({"HOME": "/root", "SECRET_COUNT": "12345678", "NO_PASSWORD": "true"}, []),
    ],
)
def test_secrets_of_the_environment_are_known(environ: Mapping[str, str], secrets: list[str]) -> None:
    assert list(environment_secrets(environ)) == secrets


def test_nobody_declares_a_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DB_PASSWORD", "Hunter2-blue")
    assert "Hunter2-blue" not in Redactor().text("cannot log in with Hunter2-blue").value


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "mysql -p", "curl -u a:", "--password ", '"--password","', "password for a b c ", "password is ", "IDENTIFIED BY '", "<password>", "<password a",
        "password->", "kind: Secret\ndata:\n  a: ", '"kind":"Secret","data":{', "AKIA" + "A" * 16, "AKIA", ":AA", "1:AAbbbb", "Q~", ".atlasv1.", "-us",
        "%41", "%25", "&quot;", "\\u0041", "\x1b[", "\x1b]", "\u200b", "YWFhYWFhYWFhYWFhYWFh", "YWFh/", "a" * 64 + "\n", "61" * 16, "hooks.slack.com/",
        "otpauth://?secret", "$6$a", "{SSHA}1", "$1$" + "a" * 21, "vault kv put a b=", "secret set ", "secrets set A ", '"AUTH" "a" ', "SETUSER a >", "arn:a:secret:", "-----BEGIN OpenVPN Static key V1-----", "echo a", "echo a|", "a:1234:b:c:", "postgres://a:", "jdbc:oracle:thin:a/", "default=", "machine password a\n", "xoxe.xox",
        "password,\n", "|password|\n", "value: ", '"value":"', "connect(", "connect('a', ", "/reset/a1", "a:b@tcp", "Authorization: A b=", 'password "a1', "password:\n", "verification code ", "&sig=", "secret=db-", "ENV a_token ", "pat", "-----BEGIN PRIVATE KEY-----\n" + "a" * 64,
    ],
)  # fmt: skip
def test_time_grows_with_the_text(unit: str) -> None:
    small, large = unit * (5_000 // len(unit)), unit * (50_000 // len(unit))
    base, ten = [measure_seconds(text) for text in (small, large)]
    assert ten < 30 * max(base, 0.004), f"{base:.4f} s for 5 kB, {ten:.4f} s for 50 kB"


def measure_seconds(text: str) -> float:
    """CPU seconds of the fastest of three: what else this process or machine does can only add to them."""
    return min(_measure_once(text) for _ in range(3))


def _measure_once(text: str) -> float:
    start = time.process_time()
    Redactor([]).text(text)
    return time.process_time() - start
