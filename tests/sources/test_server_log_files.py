"""The access log and the error log of one server are one service."""

from pathlib import Path

import pytest

from opsleuth.tools.sources.log_formats.log_file import LogFile, ReadingRules

ACCESS = '203.0.113.7 - - [29/Nov/2026:14:00:02 +0000] "GET /basket HTTP/1.1" 502 157 "-" "curl/8.5.0"\n'
NGINX = '2026/11/29 14:00:02 [error] 31#31: *1042 connect() failed (111: Connection refused) while connecting to upstream, upstream: "http://10.0.0.7:8080/"\n'
APACHE = "[Sun Nov 29 14:00:02.149313 2026] [proxy:error] [pid 31:tid 140213] (111)Connection refused: AH00957: HTTP: attempt to connect to 10.0.0.7:8080 failed\n"
APPLICATION = "2026-11-29T14:00:02Z ERROR charge failed\n"


def _services(folder: Path, files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return [LogFile(folder / name, ReadingRules()).names.service for name in files]


@pytest.mark.parametrize(
    ("access", "error", "text", "service"),
    [
        ("access.log", "error.log", NGINX, "nginx"),
        ("access.log", "error.log", APACHE, "apache"),
        ("access_log", "error_log", APACHE, "apache"),
        ("ssl_access_log", "ssl_error_log", APACHE, "apache"),
        ("other_vhosts_access.log", "error.log", APACHE, "apache"),
        ("access.log.1", "error.log", NGINX, "nginx"),
        ("access.log", "error.log-20261128", NGINX, "nginx"),
        ("nginx/access.log", "nginx/error.log", NGINX, "nginx"),
        ("httpd/access_log", "httpd/error_log", APACHE, "httpd"),
        ("haproxy/access.log", "haproxy/error.log", NGINX, "haproxy"),
        ("shop-access.log", "shop-error.log", NGINX, "shop"),
        ("shop.example.com_access.log", "shop.example.com_error.log", NGINX, "shop.example.com"),
        ("access-shop.log", "error-shop.log", NGINX, "shop"),
        ("data-access.log", "data-error.log", APPLICATION, "data"),
    ],
)
def test_both_logs_of_one_server_are_one_service(
    tmp_path: Path, access: str, error: str, text: str, service: str
) -> None:
    assert _services(tmp_path, {access: ACCESS, error: text}) == [service, service]


def test_two_servers_in_one_folder_stay_two(tmp_path: Path) -> None:
    files = {"shop-access.log": ACCESS, "shop-error.log": NGINX, "till-access.log": ACCESS, "till-error.log": NGINX}  # fmt: skip
    assert _services(tmp_path, files) == ["shop", "shop", "till", "till"]


@pytest.mark.parametrize(
    ("name", "text", "service"),
    [
        ("access.log", ACCESS, "access"),
        ("nginx/access.log", ACCESS, "nginx"),
        ("error.log", NGINX, "nginx"),
        ("error.log", APPLICATION, "error"),
        ("shop-access.log", ACCESS, "shop"),
        ("data-access.log", APPLICATION, "data-access"),
        ("on-error.log", APPLICATION, "on-error"),
    ],
)
def test_one_log_alone_is_named_after_its_server_where_that_is_known(
    tmp_path: Path, name: str, text: str, service: str
) -> None:
    assert _services(tmp_path, {name: text}) == [service]
