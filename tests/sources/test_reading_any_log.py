"""Logs in any offset, encoding and nesting; what could not be read is told of; the given inputs are read right."""

import json
import os
import shutil
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from live_rig import ask, one
from log_samples import FIRST_LIST, START, FormatCase, written

from opsleuth.analysis.log_times import TimeReader
from opsleuth.analysis.records import LogLine, TimeRange
from opsleuth.analysis.zone_offsets import AMBIGUOUS, FIXED_OFFSETS, read_offset
from opsleuth.state.calls import ResultStatus
from opsleuth.tools.sources.log_formats.encodings import decode_text, detect_encoding
from opsleuth.tools.sources.log_formats.log_file import LogFile, ReadingRules
from opsleuth.tools.sources.log_formats.names import named_service, names_of_file
from opsleuth.tools.sources.logformat import LogLineReader

INPUTS = Path(__file__).resolve().parents[3] / "shared" / "inputs"
WINDOW: dict[str, Any] = {"since": "2026-11-29T13:50:00Z", "until": "2026-11-29T14:20:00Z"}
MORE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MINUTES = st.integers(-14 * 4, 14 * 4).map(lambda quarter: quarter * 15)
MOMENTS = st.datetimes(datetime(2001, 9, 10), datetime(2100, 1, 1)).map(lambda t: t.replace(tzinfo=UTC))  # noqa: DTZ001 - made aware
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=40)


def read_lines(path: Path, **rules: Any) -> list[LogLine]:
    file = LogFile(path, ReadingRules(**rules))
    with file.open() as raws:
        return list(file.records(file.documents() if file.is_document else raws))


# --- times ---------------------------------------------------------------------------------------------------


@MORE
@given(MOMENTS, MINUTES, st.sampled_from([":", "", "UTC", "GMT"]), st.sampled_from([" ", "T"]), st.sampled_from(".,"), st.integers(0, 9))  # fmt: skip
def test_an_offset_of_any_spelling(
    moment: datetime, minutes: int, form: str, middle: str, point: str, digits: int
) -> None:
    local = moment.astimezone(timezone(timedelta(minutes=minutes)))
    hours, rest = divmod(abs(minutes), 60)
    offset = f"{'-' if minutes < 0 else '+'}{hours:02d}{':' if form == ':' else ''}{rest:02d}"
    fraction = f"{local.microsecond:06d}000"[:digits]
    text = f"{local:%Y-%m-%d}{middle}{local:%H:%M:%S}{point if fraction else ''}{fraction}{form if form != ':' else ''}{offset} ERROR no"
    time = LogLineReader().read(text, 0.0).time
    whole = moment.replace(microsecond=0).timestamp()
    assert time == pytest.approx(whole + (int(fraction) / 10**digits if fraction else 0.0), abs=1e-5)


@MORE
@given(MOMENTS, st.sampled_from([1, 1_000, 1_000_000, 1_000_000_000]), st.booleans())
def test_an_epoch_of_any_unit(moment: datetime, unit: int, quoted: bool) -> None:
    stamp = int(moment.replace(microsecond=0).timestamp()) * unit
    line = json.dumps({"ts": str(stamp) if quoted else stamp, "msg": "no"})
    assert LogLineReader().read(line, 0.0).time == pytest.approx(moment.replace(microsecond=0).timestamp())


@pytest.mark.parametrize("zone", [*FIXED_OFFSETS, "UTC", "Z"])
def test_an_abbreviation_means_one_offset(zone: str) -> None:
    offset = read_offset(zone)
    assert offset is not None
    time = LogLineReader().read(f"2026-11-29 14:00:02 {zone} [1] ERROR:  no", 0.0).time
    assert time == START.replace(microsecond=0).timestamp() - offset


@pytest.mark.parametrize("zone", [*AMBIGUOUS, "MSK", "XYZT"])
def test_an_abbreviation_that_is_not_known_gives_no_time(zone: str) -> None:
    reader = LogLineReader()
    assert reader.read(f"2026-11-29 14:00:02 {zone} [1] ERROR:  no", 0.0).time is None
    assert reader.times.tally.unknown_zones == {zone: 1}


def test_a_word_after_a_time_is_no_zone() -> None:
    line = LogLineReader().read("2026-11-29 14:00:02 INFO started", 0.0)
    assert (line.time, line.message) == (START.replace(microsecond=0).timestamp(), "INFO started")
    assert LogLineReader().read("2026-11-29 14:00:02 -12 items", 0.0).time == line.time


def test_times_without_a_year_roll_over() -> None:
    last = datetime(2027, 1, 2, tzinfo=UTC).timestamp()
    reader = TimeReader()
    assert reader.read("syslog", "Dec 31 23:59:59", None, None, last) == datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()  # fmt: skip
    assert reader.read("klog", "0102 00:00:00", None, None, last) == last
    assert reader.read("syslog", "Feb 29 00:00:00", None, None, last) == datetime(2024, 2, 29, tzinfo=UTC).timestamp()  # fmt: skip


# --- encodings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("case", [c for c in FIRST_LIST if c.name in ("log4j", "klog", "cri", "jul", "postgres", "zap", "mysql-slow")], ids=lambda c: c.name)  # fmt: skip
def test_a_format_in_another_encoding(case: FormatCase, encoding: str, tmp_path: Path) -> None:
    text, expected = written(case)
    path = tmp_path / case.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))
    os.utime(path, (START.timestamp() + 3_600,) * 2)
    assert [(line.message, line.level) for line in read_lines(path)] == [
        (e.message, e.level) for e in expected
    ]


@MORE
@given(
    st.lists(TEXTS.filter(str.strip), min_size=1, max_size=20),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_lines_in_any_encoding(texts: list[str], encoding: str) -> None:
    lines = [f"2026-11-29T14:00:02Z ERROR x{text}x" for text in texts]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tills.log"
        path.write_bytes("".join(f"{line}\r\n" for line in lines).encode(encoding))
        assert [line.message for line in read_lines(path)] == [f"ERROR x{text}x" for text in texts]


def test_latin_1_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "tills.log"
    path.write_bytes(
        "2026-11-29T14:00:02Z Gebühr\n".encode("latin-1") + "2026-11-29T14:00:03Z Gebühr 余\n".encode()
    )
    assert [line.message for line in read_lines(path)] == ["Gebühr", "Gebühr 余"]


@MORE
@given(st.binary(max_size=400))
def test_any_bytes_have_an_encoding_or_none(raw: bytes) -> None:
    assert detect_encoding(raw) in (None, "utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1")
    assert isinstance(decode_text(raw), str)


# --- objects in objects --------------------------------------------------------------------------------------


@MORE
@given(TEXTS.filter(str.strip), st.integers(1, 3), st.sampled_from(["docker", "cri", "json"]))
def test_an_object_in_an_envelope(text: str, depth: int, envelope: str) -> None:
    line = json.dumps({"level": "error", "msg": f"a {text} b", "ts": START.timestamp()}, ensure_ascii=False)
    for _ in range(depth):
        line = {
            "docker": json.dumps(
                {"log": line + "\n", "stream": "stderr", "time": "2026-11-29T14:00:02.149Z"}
            ),
            "cri": f"2026-11-29T14:00:02.149Z stderr F {line}",
            "json": json.dumps({"message": line, "level": None}),
        }[envelope]
    found = LogLineReader().read(line, START.timestamp())
    assert (found.message, found.level) == (f"a {text} b", "error")
    assert found.time == pytest.approx(START.timestamp(), abs=1e-5)


@MORE
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["level", "msg", "message", "log", "time", "ts", "service", "a"]), inner, max_size=4), max_leaves=12))  # fmt: skip
def test_any_object_is_read(value: Any) -> None:
    found = LogLineReader().read(json.dumps({"log": value, "msg": value, "level": value, "time": value}), 0.0)
    assert isinstance(found.message, str)


def test_a_search_looks_at_every_field_of_a_line(tmp_path: Path) -> None:
    line = LogLineReader().read('{"msg":"no","err":{"cause":"needle"},"level":"error"}', 0.0)
    assert "needle" in (line.context or "")
    dotted = LogLineReader().read("2026-11-29 14:00:02,149 [main] ERROR c.s.Needle - no", 0.0)
    assert "c.s.Needle" in (dotted.context or "")


# --- records of many lines -----------------------------------------------------------------------------------


def test_a_record_of_many_lines_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "tills.log"
    frames = "".join(f"\tat shop.Link{i}.pass(Link{i}.java:9)\n" for i in range(900))
    path.write_text(
        f"2026-11-29T14:00:02Z ERROR no\n{frames}Caused by: shop.Fault: refused\n2026-11-29T14:00:03Z INFO on\n"
    )
    first, second = read_lines(path)
    assert first.message.endswith("Caused by: shop.Fault: refused")
    assert (first.message.count("\n"), second.message) == (901, "INFO on")


def test_of_a_longer_record_the_beginning_and_the_end_are_kept_and_the_rest_is_told_of(
    tmp_path: Path,
) -> None:
    path = tmp_path / "tills.log"
    path.write_text(
        "2026-11-29T14:00:02Z ERROR no\n" + "\tat shop.Link.pass\n" * 5_000 + "Caused by: the end\n"
    )
    file = LogFile(path, ReadingRules())
    with file.open() as raws:
        [line] = file.records(raws)
    assert line.message.endswith("Caused by: the end")
    assert list(file.troubles()) == ["tills.log: 4,001 lines in the middle of 1 long record were left out"]


def test_a_stack_trace_in_containers_is_one_record(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    rows = [
        "ERROR failed",
        "Traceback (most recent call last):",
        '  File "x.py", line 1',
        "ValueError: no",
        "INFO on",
    ]
    path.write_text("".join(f"2026-11-29T14:00:0{i}Z stderr F {row}\n" for i, row in enumerate(rows)))
    assert [line.message.count("\n") for line in read_lines(path)] == [3, 0]


def test_parts_of_a_line_are_joined(tmp_path: Path) -> None:
    cri, docker = tmp_path / "cri.log", tmp_path / "docker.log"
    cri.write_text('2026-11-29T14:00:02Z stdout P {"level":"er\n2026-11-29T14:00:02Z stderr F x\n2026-11-29T14:00:02Z stdout F ror","msg":"no"}\n')  # fmt: skip
    assert {line.message for line in read_lines(cri)} == {"no", "x"}
    parts = [{"log": text, "stream": "stdout", "time": "2026-11-29T14:00:02Z"} for text in ("a" * 20, "b\n")]
    docker.write_text("".join(json.dumps(part, separators=(",", ":")) + "\n" for part in parts))
    assert [line.message for line in read_lines(docker)] == ["a" * 20 + "b"]


def test_details_belong_to_their_error(tmp_path: Path) -> None:
    path = tmp_path / "pg.log"
    head = "2026-11-29 14:00:02.149 UTC [314] "
    path.write_text(f"{head}ERROR:  deadlock detected\n{head}DETAIL:  Process 314 waits.\n\tProcess 315 waits.\n{head}STATEMENT:  UPDATE a\n{head}LOG:  on\n")  # fmt: skip
    assert [line.message for line in read_lines(path)] == [
        "deadlock detected\nDETAIL:  Process 314 waits.\n\tProcess 315 waits.\nSTATEMENT:  UPDATE a",
        "on",
    ]


def test_a_list_of_objects_is_read(tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    rows = [{"timestamp": 1795960802149 + i, "message": f"m{i}", "level": "error"} for i in range(3)]
    for document in (rows, {"events": rows}):
        path.write_text(json.dumps(document, indent=1))
        assert [line.message for line in read_lines(path)] == ["m0", "m1", "m2"]


# --- names ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "service", "pod"),
    [
        ("/var/log/pods/mall_tills-5c7d9b8f6d-x2x9p_0a1b/tills/0.log", "tills", "tills-5c7d9b8f6d-x2x9p"),
        ("/var/log/pods/mall_tills-5c7d9b8f6d-x2x9p_0a1b/istio-proxy/3.log", "tills", "tills-5c7d9b8f6d-x2x9p"),
        (f"/var/log/containers/tills-5c7d9b8f6d-x2x9p_mall_tills-{'ab12' * 16}.log", "tills", "tills-5c7d9b8f6d-x2x9p"),
        (f"/var/lib/docker/containers/{'ab12' * 16}/{'ab12' * 16}-json.log", "", None),
        ("/dumps/ledger/0.log", "ledger", None),
        ("/dumps/tills-5c7d9b8f6d-x2x9p.log", "tills", "tills-5c7d9b8f6d-x2x9p"),
        ("/dumps/orders-api.log", "orders-api", None),
        ("/dumps/cart-2.log", "cart-2", None),
    ],
)  # fmt: skip
def test_the_names_in_a_path(path: str, service: str, pod: str | None) -> None:
    found = names_of_file(Path(path))
    assert (found.service, found.pod) == (service, pod)


def test_replicas_are_instances_of_one_service(tmp_path: Path) -> None:
    for name in ("tills-0.log", "tills-1.log", "other-1.log"):
        (tmp_path / name).write_text("x\n")
    assert [names_of_file(tmp_path / f"{n}.log").service for n in ("tills-0", "tills-1", "other-1")] == ["tills", "tills", "other-1"]  # fmt: skip


@pytest.mark.parametrize("name", ["unknown_service", "unknown_service:java", "filebeat", "promtail", "stdout", "ab12cd34ef56", ""])  # fmt: skip
def test_carriers_and_ids_are_no_services(name: str) -> None:
    assert named_service(name) == ""


# --- what is set, and what is not read -----------------------------------------------------------------------


async def test_the_settings_override_what_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(
        b"29.11.2026|x" + b"\n" + "2026-11-29T14:00:02Z|tills|E|schlimm\xfcm\n".encode("latin-1")
    )
    pattern = r"(?P<time>[^|]*)\|(?P<service>[^|]*)\|(?P<level>[^|]*)\|(?P<message>.*)"
    source = one(kind="logfiles", files=[f"{tmp_path}/*.log"], pattern=pattern, encoding="latin-1")
    found = await ask([source], "logs_search", text="schlimmü", **WINDOW)
    [line] = found.record["lines"]
    assert (line["service"], line["level"], line["message"]) == ("tills", "E", "schlimmüm")


async def test_a_format_that_is_not_declared_is_refused_with_the_choices(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("x\n")
    found = await ask(
        [one(kind="logfiles", files=[f"{tmp_path}/*.log"], format="klogg")], "logs_search", text="x"
    )
    assert found.status is ResultStatus.UNAVAILABLE
    assert "no log format is called klogg: choose one of cri, gh-run" in str(found.record)


async def test_lines_without_a_time_are_told_of_and_still_searched(tmp_path: Path) -> None:
    (tmp_path / "tills.log").write_text("2026-11-29 19:30:02 IST [314] ERROR:  needle\n" * 5)
    source = one(kind="logfiles", files=[f"{tmp_path}/*.log"])
    found = await ask([source], "logs_search", text="needle", **WINDOW)
    assert (found.matched, found.record["without_time"]) == (5, 5)
    recording = await source.read(["logs"], TimeRange(START.timestamp() - 600, START.timestamp() + 600))
    assert recording.logs == []
    assert "tills.log: 5 records have no time, for the time zone IST is not understood" in recording.missed[0]


async def test_a_binary_file_is_told_of_and_nothing_is_claimed_of_it(tmp_path: Path) -> None:
    (tmp_path / "tills.log").write_text("2026-11-29T14:00:02Z ERROR no\n")
    (tmp_path / "core.log").write_bytes(b"\x7fELF" + bytes(500))
    found = await ask(
        [one(kind="logfiles", files=[f"{tmp_path}/*.log"])], "logs_search", text="needle", **WINDOW
    )
    assert found.status is ResultStatus.NOT_RECORDED
    assert "core.log was not read: it is binary" in found.record["not_read"]["s (logs)"]


# --- the given inputs ----------------------------------------------------------------------------------------

needs_inputs = pytest.mark.skipif(
    not INPUTS.is_dir() and os.environ.get("CI") != "true", reason="the inputs of ../shared are not here"
)


@needs_inputs
@pytest.mark.parametrize(
    ("name", "text", "matched", "scanned", "level"),
    [
        ("min-cri", "ledger says no", 1, 1, "error"),
        ("min-deep-trace", "ledger: connection refused", 1, 1, "ERROR"),
        ("min-nginx-error", "refused", 1, 62, "error"),
        ("min-old-mtime", "refused", 1, 1, "ERROR"),
        ("min-pg-cet", "refused", 1, 1, "ERROR"),
        ("min-utf16", "refused", 1, 2, "ERROR"),
        ("pool-emfile", "too many open files", 40, 160, "ERROR"),
    ],
)
async def test_an_input_is_read_right(
    name: str, text: str, matched: int, scanned: int, level: str, tmp_path: Path
) -> None:
    shutil.copytree(INPUTS / name, tmp_path / name)
    if name == "min-old-mtime":
        os.utime(tmp_path / name / "tills.log", (1_000_000_000,) * 2)
    source = one(kind="logfiles", files=[f"{tmp_path}/**/*.log"])
    found = await ask([source], "logs_search", text=text, **WINDOW)
    assert (found.status, found.matched, found.scanned) == (ResultStatus.OK, matched, scanned)
    line = found.record["lines"][0]
    assert (line["service"], line["level"]) == ("tills", level)
    if name != "min-nginx-error":
        assert line["time"].startswith("2026-11-29T14:00:02.149")
