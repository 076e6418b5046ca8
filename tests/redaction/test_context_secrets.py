"""Secrets that no name stands before: their statement, their store or the step of a login gives them away."""

import base64
import random
import string
import time
from collections.abc import Callable, Iterator

import pytest

from opsleuth.redaction.redactor import Redactor

CHANCE = random.Random(71)


def make_password() -> str:
    letters = "".join(CHANCE.choice(string.ascii_letters) for _ in range(8))
    return f"{letters}{CHANCE.randrange(10, 9999)}x"


def encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def list_statements(secret: str) -> Iterator[str]:
    for column in ("password", "user_password", "api_key", "client_secret"):
        head = f"DETAIL:  parameters: $1 = 'anna', $2 = '{secret}'"
        yield f"{head}\nSTATEMENT:  UPDATE users SET {column} = $2 WHERE name = $1"
        yield f"{head}\nSTATEMENT:  INSERT INTO users (name, {column}) VALUES ($1, $2)"
        yield f"LOG:  execute s1: UPDATE users SET {column}=$2 WHERE name=$1\n{head}"
        yield f"INSERT INTO users (name, {column}, age) VALUES ('anna', '{secret}', 4)"
        yield (
            f"update users set {column}=? where id=?\n"
            f"TRACE BasicBinder - binding parameter [1] as [VARCHAR] - [{secret}]"
        )
    yield f"{head}\nSTATEMENT:  SELECT id FROM users WHERE h = crypt($2, h) AND name = $1"


def list_files(secret: str) -> Iterator[str]:
    for name in ("password", "smtp_password", "API_TOKEN"):
        yield f'[smtp]\n{name} = """{secret}"""'
        yield f"{name} = '''{secret}'''"
        yield f'  {name}: <%= ENV.fetch("X", "{secret}") %>'
        yield f"  {name}: <%= ENV['X'] || '{secret}' %>"
        yield f'<property name="db.{name}">{secret}</property>'
    for name in ("passwords", "api_keys", "auth_tokens", "client_secrets"):
        yield f'{name}: ["{secret}", "other"]'
        yield f"{name}:\n  - other\n  - {secret}\n"
        yield f"{name}=first1234,{secret}"


def list_commands(secret: str) -> Iterator[str]:
    yield f"schtasks /create /ru svc /rp {secret} /tn x"
    yield f'schtasks.exe /Change /TN x /RU A\\svc /RP "{secret}"'
    yield f"isql -v DSN svc {secret}"
    yield f"isql warehouse svc {secret} < q.sql"
    yield f"echo {secret} | kinit svc@EXAMPLE.COM"
    yield f"ops:$apr1$aB3dE6gH${secret}{secret[:9]}"
    yield f"basicauth.users=ops:$$apr1$$aB3dE6gH$${secret}{secret[:9]}"


def list_answers(secret: str) -> Iterator[str]:
    yield f'{{"Name": "/db/host", "Type": "SecureString", "Value": "{secret}", "Version": 3}}'
    yield f"PARAMETER\t/prod/db\tSecureString\t{secret}\t3"
    yield f'{{"Name": "db", "SecretString": "{secret}"}}'
    yield f'{{"name": "projects/1/secrets/db/versions/3", "payload": {{"data": "{encode(secret)}", "dataCrc32c": "1"}}}}'
    yield f"payload:\n  data: {encode(secret)}\n  dataCrc32c: '91'"


def list_logins(secret: str) -> Iterator[str]:
    yield f"S: 334 UGFzc3dvcmQ6\nC: {encode(secret)}\nS: 235 OK"
    yield f"<< 334 UGFzc3dvcmQ6\n>> {encode(secret)}"
    yield f"C: a1 LOGIN anna {secret}"
    yield f'< A002 LOGIN "anna" "{secret}"'


@pytest.mark.parametrize("variants", [list_statements, list_files, list_commands, list_answers, list_logins])
def test_every_variant_loses_its_secret(variants: Callable[[str], Iterator[str]]) -> None:
    redact = Redactor(()).text
    for _ in range(5):
        secret = make_password()
        left = [
            text
            for text in variants(secret)
            if any(form in redact(text).value for form in (secret, encode(secret)))
        ]
        assert left == []
        once = [redact(text).value for text in variants(secret)]
        assert [redact(text).value for text in once] == once


HARMLESS = (
    "DETAIL:  parameters: $1 = '41', $2 = 'shipped1'\nSTATEMENT:  UPDATE orders SET state=$2 WHERE id=$1",
    "INSERT INTO orders (id, sku, state) VALUES (4, 'SKU4711a', 'new')",
    "update orders set sku=? where id=?\nTRACE BasicBinder - binding parameter [1] as [VARCHAR] - [SKU4711a]",
    'text = """Orders of shop 12"""',
    "  pool: <%= ENV.fetch('RAILS_MAX_THREADS', '5') %>",
    "tokens: 412, prompt_tokens: 17",
    "keys: [orders_pkey1, users_email_key2]",
    "schtasks /query /tn nightly12 /fo list",
    "isql: connected to warehouse12 in 31 ms",
    '{"Name": "/db/host", "Type": "String", "Value": "db12.internal", "Version": 3}',
    '{"name": "orders", "payload": {"data": "b3JkZXIgMTIzNA==", "id": "4"}}',
    "S: 334 VXNlcm5hbWU6\nC: YW5uYTEyMzQ1",
    "a12 LOGIN failed: user anna not found",
    '<property name="db.host">db12.internal</property>',
)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_looks_alike_stays(text: str) -> None:
    assert Redactor(()).text(text).value == text


@pytest.mark.parametrize(
    "value",
    [
        {"Name": "/db/x", "Type": "SecureString", "Value": "Falcon4711x"},
        {"Name": "db", "SecretString": "Falcon4711x"},
        {"name": "projects/1/secrets/db/versions/3", "payload": {"data": "Falcon4711x"}},
        {"passwords": ["Falcon4711x", "Falcon4712y"]},
    ],
)
def test_fields_of_a_mapping_tell_of_each_other(value: dict[str, object]) -> None:
    assert "Falcon4711x" not in str(Redactor(())(value).value)


def test_counts_and_names_under_a_plural_stay() -> None:
    value = {"tokens": [412, 17], "secrets": ["shop/db", "shop/cache"], "keys": ["orders_pkey1"]}
    assert Redactor(())(value).value == value


FILLERS = ("password=$1 ", "parameters: $1 = 'a", "insert into a (", "tokens: [a1", "isql a ", "<a name='password'",
           "payload: data: ", "SecureString\t", "a1 LOGIN b ", "password = <%= ", '"""', "schtasks ", "334 UGFzc3dvcmQ6 ")  # fmt: skip


@pytest.mark.parametrize("filler", FILLERS)
def test_time_grows_with_the_text(filler: str) -> None:
    def measure(size: int) -> float:
        text, taken = filler * (size // len(filler)), []
        for _ in range(3):
            begin = time.process_time()
            Redactor(()).text(text)
            taken.append(time.process_time() - begin)
        return min(taken)

    measure(1_000)  # compiles the expressions
    # Four times the text: 4 times the time, 16 times where it grew with the square.
    assert measure(32_000) <= 8 * measure(8_000) + 0.005
