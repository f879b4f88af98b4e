"""What is sent to addresses that somebody typed in, and what is not: over real sockets, TLS included."""

import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.receiver import Receiver, drip, receiver, status
from tests.servers import free_port
from worker.post import NotTaken, post

PUBLIC = "93.184.216.34"


@pytest.fixture
def is_let(settings: Any) -> None:
    settings.WEBHOOK_ALLOW_PRIVATE = frozenset({"127.0.0.1", "localhost"})


def test_it_arrives_as_it_was_sent(is_let: None) -> None:
    with receiver() as there:
        assert post(there.url, b'{"a":1}', {"webhook-id": "msg_1"}) == 204
    (got,) = there.received
    assert (got.path, got.body) == ("/hook?team=a", b'{"a":1}')
    assert (got.headers["webhook-id"], got.headers["Host"]) == ("msg_1", f"127.0.0.1:{there.port}")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "2130706433", "0177.0.0.1", "0x7f.1", "127.1", "0", "[::1]", "[::ffff:127.0.0.1]"],
)
def test_an_address_of_this_machine_is_refused_however_it_is_written(host: str) -> None:
    with receiver() as there, pytest.raises(NotTaken, match="not on the open internet"):
        post(f"http://{host}:{there.port}/", b"{}", {})
    assert there.received == []


@pytest.mark.parametrize("address", ["10.1.2.3", "169.254.169.254", "100.64.0.1", "[fd00::1]", "[64:ff9b::a00:1]"])
def test_an_address_of_an_inner_network_is_refused(address: str) -> None:
    with pytest.raises(NotTaken, match="EVALBOARD_WEBHOOK_ALLOW_PRIVATE"):
        post(f"http://{address}/", b"{}", {})


def test_one_private_address_among_a_names_public_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_for(monkeypatch, [[PUBLIC, "127.0.0.1"]])
    with pytest.raises(NotTaken, match=r"hooks\.example is 127\.0\.0\.1"):
        post("http://hooks.example/", b"{}", {})


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the socket that the guard stopped
def test_a_name_that_moves_after_it_was_checked_moves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: public when it is checked, this machine a moment later. The connection goes where was checked."""
    with receiver() as there:
        answer_for(monkeypatch, [[PUBLIC], ["127.0.0.1"]])
        # The guard of tests/conftest.py says where the connection was to go.
        with pytest.raises(RuntimeError, match=PUBLIC):
            post(f"http://hooks.example:{there.port}/", b"{}", {})
    assert there.received == []


def answer_for(monkeypatch: pytest.MonkeyPatch, answers: list[list[str]]) -> None:
    """A name server: what `hooks.example` is when asked once, twice and so on. Addresses stand for themselves."""
    known = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *rest: Any, **options: Any) -> Any:
        if host != "hooks.example":
            return known(host, port, *rest, **options)
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def test_a_redirect_is_not_followed(is_let: None) -> None:
    with receiver() as inner, receiver(status(307, Location=inner.url)) as outer:
        with pytest.raises(NotTaken, match="307; redirects are not followed") as refused:
            post(outer.url, b"{}", {})
        assert refused.value.status == 307
        assert len(outer.received) == 1
    assert inner.received == []


@pytest.mark.parametrize("code", [400, 404, 500, 503])
def test_what_is_no_success_says_what_it_is(is_let: None, code: int) -> None:
    with receiver(status(code)) as there, pytest.raises(NotTaken, match=f"It answered {code}"):
        post(there.url, b"{}", {})


def test_a_receiver_that_drips_is_cut_in_time(is_let: None) -> None:
    with receiver(drip) as there:
        began = datetime.now(UTC)
        with pytest.raises(NotTaken, match=r"did not answer within 0\.5 seconds"):
            post(there.url, b"{}", {}, seconds=0.5)
        assert datetime.now(UTC) - began < timedelta(seconds=3)


def test_an_endless_answer_is_not_read(is_let: None) -> None:
    def endless(asked: Any) -> None:
        asked.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X-More: yes\r\n" * 1_000_000)

    with receiver(endless) as there, pytest.raises(NotTaken, match="more than 100 headers"):
        post(there.url, b"{}", {})


def test_nobody_there_is_said(is_let: None) -> None:
    with pytest.raises(NotTaken, match="No connection to 127"):
        post(f"http://127.0.0.1:{free_port()}/", b"{}", {})


def test_a_name_that_does_not_exist_is_said() -> None:
    with pytest.raises(NotTaken, match="cannot be resolved"):
        post("http://nowhere.invalid/", b"{}", {})


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for `localhost` and its key, in one file; nobody vouches for it but itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8
    file = tmp_path / "localhost.pem"
    file.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    )
    return file


def with_tls(there: Receiver, certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    there.server.socket = context.wrap_socket(there.server.socket, server_side=True, do_handshake_on_connect=False)


def test_a_certificate_that_somebody_vouches_for_is_needed(
    is_let: None, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Receiver()
    with_tls(there, certificate)
    there.start()
    try:
        with pytest.raises(NotTaken, match="CERTIFICATE_VERIFY_FAILED"):
            post(f"https://localhost:{there.port}/", b"{}", {})
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert post(f"https://localhost:{there.port}/", b"{}", {}) == 204
        with pytest.raises(NotTaken, match="IP address mismatch"):  # the host is compared, not only the chain
            post(f"https://127.0.0.1:{there.port}/", b"{}", {})
    finally:
        there.stop()
    assert len(there.received) == 1
