"""A small OpenID Connect provider on this machine: it signs in whoever it is told to, without asking, by RS256."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID, CLIENT_SECRET = "evalboard", "s3cret-of-the-client"


class Provider:
    """`person`: the claims of whoever signs in next; None refuses. `signs_with` may be a key that is not published."""

    def __init__(self) -> None:
        self.key = self.signs_with = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.person: dict[str, Any] | None = {}
        self.changes: dict[str, Any] = {}  # to the id token's claims
        self.told_by_userinfo: dict[str, Any] | None = None  # where it tells of somebody else
        self.algorithm = "RS256"
        self.n_asked = 0
        self._codes: dict[str, dict[str, str]] = {}
        self._tokens: dict[str, dict[str, Any]] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.n_asked += 1
                parts = urlsplit(self.path)
                sent = {name: values[0] for name, values in parse_qs(parts.query).items()}
                if parts.path == "/.well-known/openid-configuration":
                    self._say(200, outer.description())
                elif parts.path == "/jwks":
                    self._say(200, {"keys": [outer.public_key()]})
                elif parts.path == "/authorize":
                    self.send_response(302)
                    self.send_header("Location", outer.authorize(sent))
                    self.end_headers()
                elif parts.path == "/userinfo":
                    bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
                    known = outer._tokens.get(bearer)
                    self._say(200 if known else 401, outer.told_by_userinfo or known or {})

            def do_POST(self) -> None:
                outer.n_asked += 1
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                sent = {name: values[0] for name, values in parse_qs(body).items()}
                self._say(*outer.exchange(sent))

            def _say(self, status: int, said: Any) -> None:
                body = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *said: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.issuer = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.02])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def description(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/jwks",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }

    def public_key(self) -> dict[str, Any]:
        said = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {**said, "kid": "first", "use": "sig", "alg": "RS256"}

    def authorize(self, sent: dict[str, str]) -> str:
        """The address that the browser is sent back to."""
        assert sent["client_id"] == CLIENT_ID
        assert sent["response_type"] == "code"
        assert sent["code_challenge_method"] == "S256"
        assert "openid" in sent["scope"].split()
        if self.person is None:
            return f"{sent['redirect_uri']}?{urlencode({'error': 'access_denied', 'state': sent['state']})}"
        code = secrets.token_urlsafe()
        self._codes[code] = sent
        return f"{sent['redirect_uri']}?{urlencode({'code': code, 'state': sent['state']})}"

    def exchange(self, sent: dict[str, str]) -> tuple[int, dict[str, Any]]:
        begun = self._codes.pop(sent.get("code", ""), None)
        digest = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if (
            begun is None
            or (sent.get("client_id"), sent.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET)
            or sent.get("redirect_uri") != begun["redirect_uri"]
            or challenge != begun["code_challenge"]
        ):
            return 400, {"error": "invalid_grant"}
        assert self.person is not None
        access = secrets.token_urlsafe()
        self._tokens[access] = self.person
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300, **self.person, **self.changes}
        key: Any = self.signs_with if self.algorithm.startswith("RS") else "k" * 64
        signed = jwt.encode(claims, key, algorithm=self.algorithm, headers={"kid": "first"})
        return 200, {"access_token": access, "token_type": "Bearer", "expires_in": 300, "id_token": signed}


@contextmanager
def provider() -> Iterator[Provider]:
    found = Provider()
    found.start()
    try:
        yield found
    finally:
        found.stop()
