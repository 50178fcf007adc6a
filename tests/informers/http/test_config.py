"""Configuration as the official client reads it: files, tokens, plugins, in-cluster; and what rotates is read again."""

import json
import os
import stat
import sys
import threading
import time

import pytest

from informers import Client, ConfigError, UnauthorizedError
from informers.config import InClusterSource, KubeconfigSource, UrlSource

STORED = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "ns", "uid": "u"}}
UNAUTHORIZED = {"kind": "Status", "reason": "Unauthorized", "message": "Unauthorized", "code": 401}


def answer(connection, request):
    connection.answer(STORED)


def accepting(*tokens):
    def handle(connection, request):
        if request.headers.get("authorization") in [f"Bearer {token}" for token in tokens]:
            connection.answer(STORED)
        else:
            connection.answer(UNAUTHORIZED, 401)

    return handle


@pytest.fixture
def plugin(tmp_path):
    """plugin(body of a Python program) -> exec section of a kubeconfig"""

    def write(program, **section):
        path = tmp_path / "plugin"
        path.write_text(f"#!{sys.executable}\nimport json, os, sys, time\n{program}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path), **section}}

    return write


CREDENTIAL = """
def answer(**status):
    print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
"""


def test_a_token_of_a_kubeconfig_is_sent(serve, kubeconfig):
    server = serve(answer)
    with Client.from_kubeconfig(kubeconfig(server.url, {"token": "t1"})) as client:
        assert client.server == server.url
        client.resource("v1", "Pod").get("ns/a")
    assert server.asked[-1].headers["authorization"] == "Bearer t1"


def test_user_name_and_password(serve, kubeconfig):
    server = serve(answer)
    with Client.from_kubeconfig(kubeconfig(server.url, {"username": "u", "password": "p"})) as client:
        client.raw("GET", "/x")
    assert server.asked[-1].headers["authorization"] == "Basic dTpw"


def test_the_environment_names_the_file(serve, kubeconfig, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig("http://127.0.0.1:1")))
    with Client.from_kubeconfig() as client:
        assert client.server == "http://127.0.0.1:1"


def test_several_files_are_merged_and_a_context_may_be_named(kubeconfig, tmp_path):
    first = kubeconfig("http://127.0.0.1:1", name="first")
    second = json.loads(first.read_text())
    second["contexts"][0]["name"] = "other"
    second["contexts"][0]["context"]["cluster"] = "d"
    second["clusters"][0] = {"name": "d", "cluster": {"server": "http://127.0.0.1:2"}}
    (tmp_path / "second").write_text(json.dumps(second))
    path = f"{first}{os.pathsep}{tmp_path / 'second'}"
    assert KubeconfigSource(path, "other").load().server == "http://127.0.0.1:2"
    assert KubeconfigSource(path, "main").load().server == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    "content",
    [
        "", "{", "[]", "5", "{}", "clusters: []", '{"current-context": "x"}',
        '{"current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "nope"}}], "clusters": []}',
        '{"current-context": "y", "contexts": [{"name": "x", "context": {"cluster": "c"}}], "clusters": []}',
        "\tnot: yaml: at all",
    ],
)  # fmt: skip
def test_a_broken_kubeconfig_is_refused_with_its_name(tmp_path, content):
    path = tmp_path / "broken"
    path.write_text(content)
    with pytest.raises(ConfigError, match="broken"):
        Client.from_kubeconfig(path)


@pytest.mark.parametrize("content", [b"hello", b"[]", b"5", b"\xff\xfe\x00", b"clusters: 5\ncurrent-context: x"])
def test_a_file_that_is_no_kubeconfig_is_told_so(tmp_path, content):
    path = tmp_path / "letter"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="letter: it has not the form of a kubeconfig"):
        Client.from_kubeconfig(path)


def test_a_missing_kubeconfig_is_refused_with_its_name(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere.*no such file"):
        Client.from_kubeconfig(tmp_path / "nowhere")


def test_a_missing_certificate_file_is_named(kubeconfig):
    path = kubeconfig("https://127.0.0.1:1", **{"certificate-authority": "/nowhere/ca.crt"})
    with pytest.raises(ConfigError, match=r"/nowhere/ca\.crt"):
        Client.from_kubeconfig(path)


@pytest.mark.parametrize("url", ["", "127.0.0.1:80", "ftp://x", "http://", "unix:///x"])
def test_what_is_no_url_of_a_server_is_refused(url):
    with pytest.raises(ConfigError):
        Client.from_url(url)


def test_proxies_of_the_environment_are_not_used_for_this_machine(serve, kubeconfig, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    server = serve(answer)
    with Client.from_url(server.url) as client:
        client.raw("GET", "/x")
    with Client.from_kubeconfig(kubeconfig(server.url)) as client:
        client.raw("GET", "/x")


def test_a_proxy_of_the_kubeconfig_is_used(serve, kubeconfig):
    proxy = serve(answer, discovery=False)
    with Client.from_kubeconfig(kubeconfig("http://api.example:80", **{"proxy-url": proxy.url})) as client:
        client.raw("GET", "/version")
    assert proxy.asked[-1].path == "http://api.example:80/version"


def test_a_plugin_gives_a_token(serve, kubeconfig, plugin):
    server = serve(accepting("from-plugin"))
    user = plugin(CREDENTIAL + "answer(token='from-plugin')")
    with Client.from_kubeconfig(kubeconfig(server.url, user)) as client:
        client.resource("v1", "Pod").get("ns/a")
    assert "from-plugin" not in (kubeconfig(server.url, user)).read_text()


def test_a_plugin_is_told_what_it_asks_for(kubeconfig, plugin):
    program = CREDENTIAL + (
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "assert info['spec']['cluster']['server'] == 'http://127.0.0.1:1', info\n"
        "assert os.environ['MODE'] == 'test' and sys.argv[1:] == ['--x']\n"
        "answer(token='t')"
    )
    user = plugin(program, args=["--x"], env=[{"name": "MODE", "value": "test"}], provideClusterInfo=True)
    Client.from_kubeconfig(kubeconfig("http://127.0.0.1:1", user)).close()


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("print('please log in', file=sys.stderr); sys.exit(3)", "exit code 3: please log in"),
        ("print('hello')", "no ExecCredential"),
        ("print('[]')", "no ExecCredential"),
        (CREDENTIAL + "answer()", "neither a token nor a certificate"),
        (CREDENTIAL + "answer(token='t', expirationTimestamp='soon')", "soon"),
        (CREDENTIAL.replace("/v1", "/v1beta1") + "answer(token='t')", "v1beta1"),
    ],
)
def test_a_plugin_that_fails_is_an_error_that_says_why(kubeconfig, plugin, program, reason):
    with pytest.raises(ConfigError, match=reason):
        Client.from_kubeconfig(kubeconfig("http://127.0.0.1:1", plugin(program)))


def test_a_plugin_that_does_not_exist_is_an_error_with_its_hint(kubeconfig):
    user = {"exec": {"apiVersion": "v1", "command": "/nowhere/login", "installHint": "install it"}}
    with pytest.raises(ConfigError, match=r"/nowhere/login.*install it"):
        Client.from_kubeconfig(kubeconfig("http://127.0.0.1:1", user))


def test_a_plugin_that_hangs_is_ended(kubeconfig, plugin, monkeypatch):
    monkeypatch.setattr("informers.config.EXEC_PLUGIN_SECONDS", 0.3)
    with pytest.raises(ConfigError, match=r"no answer within 0\.3 s"):
        Client.from_kubeconfig(kubeconfig("http://127.0.0.1:1", plugin("time.sleep(60)")))


def test_refused_credentials_are_loaded_again_once(serve, kubeconfig):
    server = serve(accepting("new"))
    path = kubeconfig(server.url, {"token": "old"})
    with Client.from_kubeconfig(path) as client:
        kubeconfig(server.url, {"token": "new"})
        assert client.resource("v1", "Pod").create(STORED).uid == "u"
        assert [request.method for request in server.asked] == ["GET", "POST", "POST"]
        kubeconfig(server.url, {"token": "wrong"})
        server.handler = accepting("other")
        with pytest.raises(UnauthorizedError):
            client.raw("GET", "/x")
    assert len(server.asked) == 5


def test_credentials_are_loaded_again_by_one_thread_for_all(serve, kubeconfig, plugin, tmp_path):
    runs = tmp_path / "runs"
    program = CREDENTIAL + (
        f"runs = open({str(runs)!r}, 'a+'); runs.write('x'); runs.flush(); runs.seek(0)\n"
        "time.sleep(0.2)\nanswer(token='t%d' % len(runs.read()))"
    )
    server = serve(accepting("t2"))
    with Client.from_kubeconfig(kubeconfig(server.url, plugin(program))) as client:
        threads = [threading.Thread(target=client.raw, args=("GET", "/x")) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client.raw("GET", "/x")
    assert len(runs.read_text()) == 2


def test_a_credential_is_renewed_before_it_expires(serve, kubeconfig, plugin, tmp_path):
    runs = tmp_path / "runs"
    program = CREDENTIAL + (
        "from datetime import datetime, timedelta, timezone\n"
        f"runs = open({str(runs)!r}, 'a+'); runs.write('x'); runs.flush(); runs.seek(0); count = len(runs.read())\n"
        "left = 1.0 if count == 1 else 3600\n"
        "until = datetime.now(timezone.utc) + timedelta(seconds=left)\n"
        "answer(token='t%d' % count, expirationTimestamp=until.isoformat())"
    )
    server = serve(answer)
    with Client.from_kubeconfig(kubeconfig(server.url, plugin(program))) as client:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and server.connections < 100:
            client.raw("GET", "/x")
            if server.asked[-1].headers["authorization"] == "Bearer t2":
                break
        assert server.asked[-1].headers["authorization"] == "Bearer t2"
        assert server.connections == 1  # nothing that concerns connections has changed


def test_a_renewal_that_fails_leaves_the_old_credentials_in_use(serve, kubeconfig, caplog):
    server = serve(accepting("old"))
    path = kubeconfig(server.url, {"token": "old"})
    with Client.from_kubeconfig(path) as client:
        path.write_text("{")
        client.raw("GET", "/x")
        server.handler = accepting("new")
        with pytest.raises(UnauthorizedError) as caught:
            client.raw("GET", "/x")
        assert isinstance(caught.value.__cause__, ConfigError)
        kubeconfig(server.url, {"token": "new"})
        client.raw("GET", "/x")


def test_a_plugin_that_is_slower_than_the_request_does_not_hold_it(serve, kubeconfig, plugin, tmp_path):
    marker = tmp_path / "second"
    program = CREDENTIAL + (
        f"slow = os.path.exists({str(marker)!r}); open({str(marker)!r}, 'w')\n"
        "time.sleep(1.0 if slow else 0)\nanswer(token='t2' if slow else 't1')"
    )
    server = serve(accepting("t2"))
    with Client.from_kubeconfig(kubeconfig(server.url, plugin(program))) as client:
        started = time.monotonic()
        with pytest.raises(UnauthorizedError):
            client.raw("GET", "/x", timeout=0.3)
        assert time.monotonic() - started < 0.9
        client.raw("GET", "/x", timeout=10)  # waits for the loading that goes on


@pytest.fixture
def service_account(tmp_path, monkeypatch):
    from kubernetes.config import incluster_config

    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("t1")
    authority.write_text("a certificate")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return token


def test_in_a_cluster_the_service_account_is_used_and_read_again(service_account):
    endpoint = InClusterSource().load()
    assert endpoint.server == "https://[fd00::1]:443"
    assert endpoint.headers()["Authorization"].lower() == "bearer t1"
    assert endpoint.expires is not None
    service_account.write_text("t2")
    again = InClusterSource().load(endpoint)
    assert again.headers()["Authorization"].lower() == "bearer t2"
    assert again.pool is endpoint.pool


def test_outside_of_a_cluster_that_is_said(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigError, match="in-cluster"):
        Client.in_cluster()


def test_an_official_client_lends_its_configuration(serve):
    from kubernetes.client import ApiClient, Configuration

    server = serve(answer)
    configuration = Configuration()
    configuration.host = server.url
    configuration.api_key["BearerToken"] = "Bearer official"
    with ApiClient(configuration) as official, Client.from_api_client(official, timeout=5) as client:
        client.resource("v1", "Pod").get("ns/a")
    assert server.asked[-1].headers["authorization"] == "Bearer official"


def test_a_refused_official_client_stays_refused(serve):
    from kubernetes.client import ApiClient, Configuration

    server = serve(accepting("x"))
    configuration = Configuration()
    configuration.host = server.url
    with (
        ApiClient(configuration) as official,
        Client.from_api_client(official) as client,
        pytest.raises(UnauthorizedError),
    ):
        client.raw("GET", "/x")
    assert len(server.asked) == 1


def test_changed_certificates_make_new_connections(tmp_path, kubeconfig):
    authority = tmp_path / "ca"
    authority.write_text("one")
    path = kubeconfig("https://127.0.0.1:1", **{"certificate-authority": str(authority)})
    source = KubeconfigSource(path)
    first = source.load()
    assert source.load(first).pool is first.pool
    authority.write_text("two")
    assert source.load(first).pool is not first.pool


def test_a_url_source_loads_the_same_each_time():
    source = UrlSource("http://127.0.0.1:1/")
    first = source.load()
    assert first.server == "http://127.0.0.1:1"
    assert source.load(first).pool is first.pool
