"""Credentials that somebody replaces while a client runs are picked up in time: token files, client certificates."""

from __future__ import annotations

import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from informers import Client, UnauthorizedError

STORED = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "ns", "uid": "u"}}
REFUSED = {"kind": "Status", "status": "Failure", "code": 401, "reason": "Unauthorized", "message": "who are you"}


@pytest.fixture(scope="module")
def issue(certificates: Path):
    """issue(name) -> (certificate, key) in PEM, of a client of that common name"""

    def make(name: str) -> tuple[str, str]:
        def openssl(*arguments: str) -> None:
            subprocess.run(["openssl", *arguments], cwd=certificates, check=True, capture_output=True, timeout=60)

        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", "csr", "-subj", f"/CN={name}")
        openssl(
            "x509", "-req", "-in", "csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-out", f"{name}.crt",
        )  # fmt: skip
        return (certificates / f"{name}.crt").read_text(), (certificates / f"{name}.key").read_text()

    return make


@pytest.fixture
def mutual_tls(server_tls: ssl.SSLContext, certificates: Path) -> ssl.SSLContext:
    server_tls.verify_mode = ssl.CERT_REQUIRED
    server_tls.load_verify_locations(certificates / "ca.crt")
    return server_tls


@pytest.fixture
def authority(certificates: Path) -> dict[str, str]:
    return {"certificate-authority": str(certificates / "ca.crt")}


def who(connection) -> str:
    """The common name of the client at the other end."""
    subject = dict(part for parts in connection.sock.getpeercert()["subject"] for part in parts)
    return subject["commonName"]


def named(seen: list[str]):
    def handle(connection, request):
        seen.append(who(connection))
        connection.answer(STORED)

    return handle


@pytest.fixture
def at_once(monkeypatch):
    """What is rotated is read again before every request, instead of once a minute."""
    monkeypatch.setattr("informers.config._ROTATED_SECONDS", 0.0)


def test_a_token_file_is_read_again(serve, kubeconfig, tmp_path, at_once):
    server = serve(lambda connection, request: connection.answer(STORED))
    token = tmp_path / "token"
    token.write_text("t1")
    with Client.from_kubeconfig(kubeconfig(server.url, {"tokenFile": str(token)})) as client:
        client.raw("GET", "/x")
        token.write_text("t2")
        client.raw("GET", "/x")
    assert [request.headers["authorization"].lower() for request in server.asked] == ["bearer t1", "bearer t2"]
    assert server.connections == 1


def test_a_token_file_is_not_read_for_every_request(serve, kubeconfig, tmp_path):
    server = serve(lambda connection, request: connection.answer(STORED))
    token = tmp_path / "token"
    token.write_text("t1")
    with Client.from_kubeconfig(kubeconfig(server.url, {"tokenFile": str(token)})) as client:
        token.write_text("t2")
        client.raw("GET", "/x")
    assert server.asked[0].headers["authorization"].lower() == "bearer t1"


def test_the_certificate_of_a_client_is_read_again_and_makes_new_connections(
    serve, mutual_tls, kubeconfig, authority, issue, tmp_path, at_once
):
    seen: list[str] = []
    server = serve(named(seen), tls=mutual_tls)
    files = tmp_path / "client.crt", tmp_path / "client.key"

    def rotate(name: str) -> None:
        for file, text in zip(files, issue(name), strict=True):
            file.write_text(text)

    rotate("first")
    user = {"client-certificate": str(files[0]), "client-key": str(files[1])}
    with Client.from_kubeconfig(kubeconfig(server.url, user, **authority)) as client:
        client.raw("GET", "/x")
        client.raw("GET", "/x")
        rotate("second")
        client.raw("GET", "/x")
    assert seen == ["first", "first", "second"]
    assert server.connections == 2


def test_a_plugin_may_give_certificates_and_is_asked_again_when_one_is_refused(
    serve, mutual_tls, kubeconfig, authority, issue, tmp_path
):
    seen: list[str] = []

    def handle(connection, request):
        seen.append(who(connection))
        if seen[-1] == "new":
            connection.answer(STORED)
        else:
            connection.answer(REFUSED, 401)

    pairs = [issue("old"), issue("new")]
    runs = tmp_path / "runs"
    program = tmp_path / "plugin"
    program.write_text(
        f"#!{sys.executable}\nimport json\n"
        f"runs = open({str(runs)!r}, 'a+'); runs.write('x'); runs.flush(); runs.seek(0)\n"
        f"certificate, key = {pairs!r}[min(len(runs.read()), 2) - 1]\n"
        "status = {'clientCertificateData': certificate, 'clientKeyData': key}\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'status': status}))\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(program)}}
    server = serve(handle, tls=mutual_tls)
    with Client.from_kubeconfig(kubeconfig(server.url, user, **authority)) as client:
        client.raw("GET", "/x")
        client.raw("GET", "/x")
        server.handler = lambda connection, request: connection.answer(REFUSED, 401)
        with pytest.raises(UnauthorizedError):
            client.raw("GET", "/x")
    assert seen == ["old", "new", "new"]
