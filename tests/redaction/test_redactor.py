"""The funnel: a planted secret never comes out, in whatever form; ids and hashes do; the time is linear."""

import base64
import hashlib
import json
import string
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from growth import assert_grows_at_most
from hypothesis import assume, given
from hypothesis import strategies as st

from opsleuth.checkpoints.bodies import cut_middle
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import MARK, Redactor
from opsleuth.redaction.secret_encodings import SHORTEST
from opsleuth.state.clock import FakeClock
from opsleuth.state.results import CallResult, Observation, ResultStatus

# Put together here, so that no scanner takes this file for a leak.
LETTERS = (string.ascii_letters + string.digits) * 4
TOKENS = {
    "github-token": "ghp_" + LETTERS[:36],
    "gitlab-token": "glpat-" + LETTERS[:20],
    "slack-token": "xoxb-" + "123456789012-" + LETTERS[:24],
    "aws-key": "AKIA" + "IOSFODNN7EXAMPLE",
    "google-key": "AIza" + LETTERS[:35],
    "stripe-key": "sk_live_" + LETTERS[:24],
    "model-key": "sk-proj-" + LETTERS[26:70],
    "registry-token": "npm_" + LETTERS[:36],
    "mail-key": "SG." + LETTERS[:22] + "." + LETTERS[:43],
    "vault-token": "hvs." + LETTERS[:24],
    "cloud-token": "dop_v1_" + "0a" * 32,
    "monitoring-key": "glsa_" + LETTERS[:32] + "_0a1b2c3d",
    "age-key": "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE",
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + LETTERS[:43],
}
KEY = (
    "-----BEGIN RSA PRIVATE "
    "KEY-----\nMIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn\n/ygWyF8PbnGy==\n-----END RSA PRIVATE "
    "KEY-----"
)

AFTER_A_NAME = [
    "password={}",
    "DB_PASSWORD={} ",
    "dbPassword: {}",
    'password: "{}"',
    "PGPASSWORD='{}' psql",
    '{{"password": "{}", "user": "app"}}',
    '{{\\"password\\":\\"{}\\"}}',
    "spring.datasource.password = {}",
    "mysql --password={} -h db",
    "Server=db;Password={};Encrypt=true",
    "postgres://app:{}@db:5432/shop",
    "redis://:{}@cache/0",
    "https://host/x?api_key={}&page=2",
    "api-key: {}",
    "X-Api-Key: {}",
    "accessToken={}",
    "client_secret={}",
    "aws_secret_access_key = {}",
    "Authorization: Bearer {}",
    "authorization: Basic {}",
    '"Authorization": "Bearer {}"',
    "curl -H 'Authorization: token {}'",
    "sent Bearer {} to",
    "Cookie: sid={}; theme=dark",
]
STAYS = [
    "trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7",
    "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "sha256:" + hashlib.sha256(b"").hexdigest(),
    "commit da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "550e8400-e29b-41d4-a716-446655440000",
    "inv-20261129-7k3f/t4c1",
    "orders-7c9d8b6f5-x2k4q",
    "tokens=300000 max_tokens=4096 token_limit=5",
    "password authentication failed for user app",
    "unexpected token: identifier",
    "authorization: denied for user app",
    "basic authentication is off",
    "password: ${DB_PASSWORD}",
    "api_key={{ vault.key }} secret: null password=*** token=<unset>",
    "PWD=/home/app",
    "key=orders:17 sort_key=created_at",
    "https://prometheus:9090/api?query=up",
    "user@example.com wrote http://a:80/x",
    "secretName: db-credentials",
    "task-manager-of-the-shop-with-a-long-name",
]

# What real secrets are made of; brackets and the words of our own marks would be found in the marks themselves.
SECRETS = st.text(
    string.ascii_letters + string.digits + "!$%*+-./?@^_~äß漢\"'\\ &=;,", min_size=SHORTEST, max_size=40
).filter(
    lambda s: s.strip() == s and not any(s.lower() in f"[redacted:{kind}#" for kind in ("secret", "password"))
)
PLAIN = st.text(string.ascii_letters + " \n.,:/=é", max_size=60)


def spellings(secret: str) -> list[str]:
    raw = secret.encode()
    padded = [b"user:" + raw, b"a" + raw + b"zz", b"ab" + raw + b"\n", raw]
    return [
        secret,
        json.dumps(secret),
        json.dumps(secret, ensure_ascii=False),
        quote(secret, safe=""),
        quote_plus(secret),
        quote(secret, safe="").replace("%2F", "%2f"),
        raw.hex(),
        *(base64.b64encode(p).decode() for p in padded),
        *(base64.urlsafe_b64encode(p).decode() for p in padded),
        *(quote(base64.b64encode(p).decode(), safe="") for p in padded),
    ]


def traces(secret: str) -> list[str]:
    """Everything that would give a secret away: the secret, and what decodes to it."""
    return [s.strip('"') for s in spellings(secret)[:7]]


@given(SECRETS, PLAIN, PLAIN, st.integers(0, 18))
def test_a_known_secret_never_comes_out(secret: str, before: str, after: str, form: int) -> None:
    redactor = Redactor([secret])
    spelled = spellings(secret)[form]
    clean = redactor.text(f"{before} {spelled} {after}")
    assert clean.hits >= 1
    assert MARK.search(clean.value)
    for trace in traces(secret):
        assert trace not in clean.value
    assert spelled.strip('"=') not in clean.value
    assert redactor.text(clean.value) == (clean.value, 0)


@given(SECRETS, PLAIN, PLAIN)
def test_equal_secrets_keep_one_tag_whatever_their_form(secret: str, before: str, after: str) -> None:
    redactor = Redactor([secret])
    texts = [f"{before} {s} {after}" for s in (secret, base64.b64encode(b"x:" + secret.encode()).decode())]
    tags = {mark for text in texts for mark in MARK.findall(redactor.text(text).value) if ":secret#" in mark}
    assert len(tags) == 1


@given(SECRETS, st.integers(0, 200), st.integers(10, 60))
def test_redacted_before_it_is_cut(secret: str, offset: int, limit: int) -> None:
    clean = Redactor([secret]).text("-" * offset + secret + "-" * 80).value
    short, _ = cut_middle(clean, limit)
    words = [secret[i : i + 5] for i in range(len(secret) - 4)]
    assert not any(word in short for word in words if word.strip("-") and word not in "[redacted:secret#")


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize(
    "frame", ["{}", "see {}.", "({})", '"{}"', "x={},y", "a/{}/b", "line\n{}\nline", "https://{}@host/x"]
)
def test_a_token_is_known_by_its_look(kind: str, frame: str) -> None:
    token = TOKENS[kind]
    clean = Redactor().text(frame.format(token))
    assert token not in clean.value
    assert f"[redacted:{kind}#" in clean.value
    assert Redactor().text(clean.value) == (clean.value, 0)


@pytest.mark.parametrize("frame", AFTER_A_NAME)
@pytest.mark.parametrize("secret", ["hunter2-Z9-blue", "p%40ss/w0rd.x", "0123456789abcdef0123456789abcdef"])
def test_what_follows_a_name_is_a_secret(frame: str, secret: str) -> None:
    if "://" in frame.split("{", maxsplit=1)[0][:12] and "@" in frame:
        secret = secret.replace("/", "%2F")
    clean = Redactor().text(f"at 14:02 {frame.format(secret)} then more")
    assert secret not in clean.value
    assert "at 14:02" in clean.value
    if not frame.startswith(("Cookie", "dbPassword")):  # those take the rest of the line
        assert "then more" in clean.value
    assert Redactor().text(clean.value) == (clean.value, 0)


@pytest.mark.parametrize("text", STAYS)
def test_ids_hashes_and_prose_stay(text: str) -> None:
    assert Redactor(["correct-horse"]).text(text) == (text, 0)
    assert Redactor(["correct-horse"])({"value": text, text: 1}) == ({"value": text, text: 1}, 0)


@pytest.mark.parametrize(
    "text",
    [
        KEY,
        KEY.replace("\n", "\\n"),
        f"log {KEY} log",
        KEY.split("-----END", maxsplit=1)[0],
        KEY.replace("RSA ", ""),
    ],
)
def test_private_keys_go_as_a_whole(text: str) -> None:
    clean = Redactor().text(f"before. {text}. after").value
    assert clean.startswith("before. ")
    assert clean.endswith(". after")
    assert "MII" not in clean
    assert "PbnGy" not in clean


def test_several_keys_each_with_its_end() -> None:
    assert MARK.sub("K", Redactor().text(f"{KEY}, {KEY}; {KEY}").value) == "K, K; K"


@pytest.mark.parametrize(
    "record",
    [
        {"password": "hunter2"},
        {"config": {"apiKey": "hunter2-hunter2"}},
        {"env": [{"name": "DB_PASSWORD", "value": "hunter2"}]},
        {"kind": "Secret", "data": {"x": "aHVudGVyMg=="}, "note": "hunter2"} | {"note": ""},
        {"secret": ["hunter2", {"a": "hunter2"}]},
        {"password": 20021},
        {"row": ["x", {"auth_token": "hunter2-hunter2"}]},
        {"text": '{"password":"hunter2"}'},
    ],
)
def test_fields_with_telling_names(record: dict[str, Any]) -> None:
    clean = json.dumps(Redactor()(record).value)
    assert MARK.search(clean)
    assert not any(trace in clean for trace in ("hunter2", "aHVudGVy", "20021"))
    assert Redactor()(Redactor()(record).value).hits == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, SECRETS, st.sampled_from(["key", "value", "item", "nested"]))
def test_a_secret_in_any_place_of_a_document(document: Any, secret: str, place: str) -> None:
    assume(secret not in json.dumps(document, ensure_ascii=False))  # a number may hold its digits by chance
    planted: Any = {
        "key": {f"x {secret}": document},
        "value": {"a": document, "b": f"x {secret} y"},
        "item": [document, [secret]],
        "nested": {"a": json.dumps({"b": json.dumps([secret])})},
    }[place]
    redactor = Redactor([secret])
    clean, hits = redactor(planted)
    assert hits >= 1
    text = json.dumps(clean, ensure_ascii=False, allow_nan=False)
    text.encode()
    if place != "nested":  # JSON in JSON is spelt with more backslashes
        assert json.dumps(secret, ensure_ascii=False)[1:-1] not in text
    assert json.dumps(redactor(clean).value) == json.dumps(clean)


@pytest.mark.parametrize("spelled", ["0000%3B%2f", "0000%3b%2F", "0000%3b%2f", "0000%3B%2F"])
def test_the_case_of_an_escape_hides_nothing(spelled: str) -> None:
    redactor = Redactor(["0000;/"])
    assert spelled not in redactor.text(f"GET /x?key={spelled} 200").value
    assert spelled not in json.dumps(redactor({"url": [f"/x?key={spelled}"]}).value)


def test_keys_that_become_equal_are_kept_apart() -> None:
    secret = "correct-horse"
    clean = Redactor([secret])({secret: 1, base64.b64encode(secret.encode()).decode(): 2}).value
    assert sorted(clean.values()) == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "password=", "password='", 'password="', 'password=\\"', "token=<", "secret=${", "pwd=/", "password:", "eyJ-",
        "-eyJaaaaaaaaaaaa", "sk-", "SG.aaaaaaaaaaaaaaaaaa.", "-----BEGIN PRIVATE KEY-----.", "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----", "://a:", "://", "://[redacted:", "Bearer ", "authorization: a ", "cookie:", "a", "\\",
        "ghp_", "_gho_", "Basic 1", "password=a,b", "&sig=", "correct-horse", "Y29ycmVjdC1ob3JzZQ", "\ud800",
    ],
)  # fmt: skip
def test_time_is_linear_for_hostile_text(unit: str) -> None:
    redactor = Redactor(["correct-horse", "aaaaaaaa"])
    small, large = unit * (20_000 // len(unit)), unit * (400_000 // len(unit))
    assert_grows_at_most(
        100, lambda: redactor.text(small), lambda: redactor.text(large)
    )  # twenty times the text


def test_nothing_of_a_secret_reaches_the_disk(path: Path, clock: FakeClock) -> None:
    known, seen = "correct-horse/battery+staple", TOKENS["github-token"]
    dirty = f"{known} {seen} {base64.b64encode(b'u:' + known.encode()).decode()} {quote(known, safe='')}"
    with Store.open(path, clock, Redactor([known])) as store:
        run = store.runs.create(RunRow(id="inv-a", question=dirty, name=dirty, settings={"x": dirty})).id
        store.events.append(run, "x", {dirty: [dirty]})
        store.results.put(run, "c", CallResult("c", ResultStatus.OK, {"x": dirty}, dirty, query=dirty))
        store.observations.add(
            run, Observation(1, "c", 1, "t", {"x": dirty}, dirty, ResultStatus.OK, "E1", dirty, {"y": dirty})
        )
        store.control.set(run, "note", dirty)
        store.reports.put(run, {"x": dirty})
        written = b"".join(p.read_bytes() for p in path.parent.iterdir() if p.is_file())
    for form in (known, seen, quote(known, safe=""), base64.b64encode(known.encode()).decode()[:20]):
        assert form.encode() not in written
    assert b"[redacted:secret#" in written


@pytest.mark.parametrize("value", ["correct-horse", {"note": ["correct-horse"]}, {"correct-horse": 1}])
def test_text_that_was_clean_is_a_secret_once_it_is_learned(value: Any) -> None:
    redactor = Redactor([])
    assert redactor(value) == (value, 0)
    assert redactor.text("correct-horse") == ("correct-horse", 0)
    redactor.learn("correct-horse")
    assert "correct-horse" not in json.dumps(redactor(value).value)
    assert redactor.text("correct-horse").hits == 1


def test_texts_remembered_as_clean_are_few_and_short() -> None:
    redactor = Redactor([])
    for number in range(9_000):
        assert redactor.text(f"service-{number}").hits == 0
    redactor.text("long " * 1_000)
    remembered = vars(redactor)["_clean_texts"]
    assert len(remembered) <= 4_000
    assert max(map(len, remembered)) <= 60


def test_tags_belong_to_a_database(path: Path, clock: FakeClock) -> None:
    tags = []
    for file in (path, path, path.with_name("other.db")):
        redactor = Redactor(["correct-horse"])
        Store.open(file, clock, redactor).close()
        tags.append(redactor.text("correct-horse").value)
    assert tags[0] == tags[1]
    assert tags[0] != tags[2]


@pytest.mark.parametrize(
    "record",
    [
        {"kinds": {"Pod": 40, "Secret": 12, "ConfigMap": 7}},
        {"Secret": 81_234},
        {"Secrets": 0},
        {"Secret": {"count": 12, "namespaces": 3}},
        {"counts": {"Secret": "12"}},
        {"hard": {"secrets": "10"}, "used": {"secrets": 9}},
    ],
)
def test_a_count_of_objects_is_no_secret(record: dict[str, Any]) -> None:
    assert Redactor()(record) == (record, 0)


@pytest.mark.parametrize(
    "record",
    [
        {"secret": 482_913},
        {"Secret": 48_291_375},
        {"Secret": "4829"},
        {"clientSecret": 12},
        {"password": 12},
        {"Secret": "hunter2-and-more"},
    ],
)
def test_a_number_that_is_no_count_stays_a_secret(record: dict[str, Any]) -> None:
    assert Redactor()(record).hits == 1


def test_settings_that_all_runs_share_stay_remembered_among_parts_of_single_runs() -> None:
    redactor = Redactor(known=())
    sources = {"calls": {f"web-{n}": [f"service-{n}"] for n in range(60)}}
    first = redactor.settings({"sources": sources}).value["sources"]
    for number in range(40):
        state = {"question": f"is service {number} slow?", "text": "it answers slowly " * 40}
        kept = redactor.settings({"sources": sources, "state": state}).value
    assert kept["sources"] is first
