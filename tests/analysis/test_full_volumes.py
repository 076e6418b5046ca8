"""The folder, device or volume that is full, as programs name it when they cannot write."""

from collections import Counter

import pytest

from opsleuth.analysis.full_volumes import describe_full_volumes, find_full_volume


@pytest.mark.parametrize(
    ("message", "volume"),
    [
        ("upload failed: [Errno 28] No space left on device: '/srv/media/in/photo-7.jpg'", "/srv/media/in"),
        ("java.io.IOException: No space left on device\n\tat java.io.FileOutputStream.write(FileOutputStream.java:7)\n", ""),
        ("write /var/lib/docker/tmp/GetImageBlob1: no space left on device", "/var/lib/docker/tmp"),
        ('ERROR:  could not extend file "base/16384/24576": No space left on device', "base/16384"),
        ('PANIC:  could not write to file "pg_wal/xlogtemp.31": No space left on device', "pg_wal"),
        ("[ERROR] [MY-000035] Disk is full writing '/var/lib/mysql/binlog.000017' (OS errno 28 - No space left on device)", "/var/lib/mysql"),
        ('open() "/var/lib/nginx/body/0000000017" failed (28: No space left on device)', "/var/lib/nginx/body"),
        ("EXT4-fs warning (device nvme1n1): ext4_dx_add_entry: Directory index full", "nvme1n1"),
        ("flood stage disk watermark [95%] exceeded on [n1][es-1][/usr/share/elasticsearch/data/nodes/0]", "/usr/share/elasticsearch/data/nodes"),
        ("not enough space on the disk: D:\\Uploads\\2026\\a.tmp", "D:\\Uploads\\2026"),
        ('volume "data-kafka-0" is full', "data-kafka-0"),
        ('File "/app/upload.py", line 7, in save\nOSError: [Errno 28] No space left on device', ""),
        ("GET http://files/srv/media/a failed: no space left", ""),
        ("No space left on device", ""),
        ("disk usage is full", ""),
    ],
)  # fmt: skip
def test_volume_that_is_full(message: str, volume: str) -> None:
    assert find_full_volume(message) == volume


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ({}, ""),
        ({"/srv/media/in": 7}, "in /srv/media/in"),
        ({"/srv/media/a": 7, "/srv/media/b": 1}, "in /srv/media"),
        ({"/srv": 1, "/var": 2}, "in /var, /srv"),
        ({"data-kafka-0": 3, "/srv/media/a": 3}, "in /srv/media/a, data-kafka-0"),
    ],
)
def test_volumes_in_words(places: dict[str, int], words: str) -> None:
    assert describe_full_volumes(Counter(places)) == words
