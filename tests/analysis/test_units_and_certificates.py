"""Whom systemd's lines are about, and certificates that .NET refuses."""

import pytest

from opsleuth.analysis.log_messages import find_fault_messages
from opsleuth.analysis.message_meaning import read_message_meaning
from opsleuth.analysis.records import AlertFacts, LogLine, Recording, TimeRange


@pytest.mark.parametrize(
    ("message", "service"),
    [
        ("reportd.service: Failed with result 'oom-kill'.", "reportd"),
        ("worker@3.service: A process of this unit has been killed by the OOM killer.", "worker"),
        ("postgresql@15-main.service: Failed with result 'oom-kill'.", "postgresql"),
        ("Out of memory: no unit is named", "systemd"),
    ],
)
def test_lines_of_systemd_are_about_their_unit(message: str, service: str) -> None:
    lines = [LogLine(float(second), "systemd", message) for second in range(100, 110)]
    found = find_fault_messages(Recording(AlertFacts(text=""), TimeRange(0.0, 200.0), logs=lines))
    assert {(finding.service, finding.kind) for finding in found} == {(service, "out_of_memory")}


@pytest.mark.parametrize(
    ("writer", "service"), [("kubelet", "web"), ("kube-scheduler", "web"), ("cart", "cart")]
)
def test_lines_of_the_platform_are_about_the_pod_they_name(writer: str, service: str) -> None:
    message = '"Error syncing pod, skipping" err="failed to start with ImagePullBackOff" pod="shop/web-7d9f8b6c5d-x2x9k" podUID="1f0e"'
    lines = [LogLine(float(second), writer, message) for second in range(100, 110)]
    found = find_fault_messages(Recording(AlertFacts(text=""), TimeRange(0.0, 200.0), logs=lines))
    assert {(finding.service, finding.kind) for finding in found} == {(service, "image_pull")}


@pytest.mark.parametrize(
    "message",
    [
        "AuthenticationException: The remote certificate is invalid because of errors in the certificate chain: NotTimeValid",
        "The remote certificate was rejected by the provided RemoteCertificateValidationCallback",
        "The remote certificate is invalid according to the validation procedure: RemoteCertificateNameMismatch",
    ],
)
def test_refused_certificates(message: str) -> None:
    meaning = read_message_meaning(message)
    assert meaning is not None
    assert meaning.kind == "certificate"
