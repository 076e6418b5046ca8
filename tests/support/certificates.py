"""Certificates of an authority of our own, made by openssl: `ca.pem`, `server.pem`, `client.pem` and their keys."""

import subprocess
from pathlib import Path

from servers import need

_NEW = ("req", "-newkey", "rsa:2048", "-nodes")


def certificates(folder: Path) -> None:
    need("openssl")
    _openssl(folder, *_NEW, "-x509", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca")
    (folder / "names").write_text("subjectAltName=DNS:localhost\n")
    for name in ("server", "client"):
        signed(folder, name, f"/CN={name}")


def signed(folder: Path, name: str, subject: str) -> None:
    """One more pair of the authority in this folder, for whoever `subject` says."""
    _openssl(folder, *_NEW, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)
    _openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
             "-out", f"{name}.pem", "-extfile", "names")  # fmt: skip


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
