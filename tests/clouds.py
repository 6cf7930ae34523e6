"""Servers on this machine that speak as much of Google's and Azure's protocols as reading takes.

Other than `servers.Handler`, they check the signature of every request, by the documentation of
the clouds and not with the code that signs.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

from tests.servers import Handler, error

ACCOUNT = "account"
ACCOUNT_KEY = base64.b64encode(b"the key of the account").decode()


class AzureHandler(Handler):
    """Blob storage, with shared keys."""

    # https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
    SIGNED = (
        "Content-Encoding",
        "Content-Language",
        "Content-Length",
        "Content-MD5",
        "Content-Type",
        "Date",
        "If-Modified-Since",
        "If-Match",
        "If-None-Match",
        "If-Unmodified-Since",
        "Range",
    )

    def refusal(self) -> str | None:
        given = self.headers.get("Authorization", "")
        own = {name.lower(): value for name, value in self.headers.items()}
        url = urlsplit(self.path)
        lines = [self.command]
        for name in self.SIGNED:
            value = self.headers.get(name, "")
            skipped = value == "0" or (name == "Date" and "x-ms-date" in own)
            lines.append("" if skipped else value)
        lines += [f"{name}:{own[name]}" for name in sorted(own) if name.startswith("x-ms-")]
        lines.append(f"/{ACCOUNT}{url.path}")
        query = parse_qs(url.query, keep_blank_values=True)
        lines += [f"{name}:{','.join(sorted(query[name]))}" for name in sorted(query)]
        text = "\n".join(lines).encode()
        digest = hmac.digest(base64.b64decode(ACCOUNT_KEY), text, hashlib.sha256)
        if given == f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}":
            return None
        return "The signature is not that of the account."

    def list(self, bucket: str, query: dict[str, list[str]]) -> None:
        server = self.server
        if not server.has_bucket(bucket):
            return self.answer(
                404, error("ContainerNotFound", "The specified container does not exist.")
            )
        prefix, after = query.get("prefix", [""])[0], query.get("marker", [""])[0]
        page, more = server.page_of(bucket, prefix, after, "delimiter" in query)
        parts = ["<EnumerationResults><Blobs>"]
        for key, size in page:
            if size is None:
                parts.append(f"<BlobPrefix><Name>{escape(key)}</Name></BlobPrefix>")
            else:
                parts.append(
                    f"<Blob><Name>{escape(key)}</Name><Properties>"
                    "<Last-Modified>Wed, 01 Jan 2025 00:00:00 GMT</Last-Modified>"
                    f"<Content-Length>{size}</Content-Length><Etag>{len(key)}</Etag>"
                    "<Content-Type>application/octet-stream</Content-Type></Properties></Blob>"
                )
        marker = escape(page[-1][0]) if more else ""
        parts.append(f"</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>")
        return self.answer(200, "".join(parts).encode())


def azure_options(url: str) -> dict[str, Any]:
    """What reads from the server as from Azure."""
    return {"endpoint": url, "account_name": ACCOUNT, "account_key": ACCOUNT_KEY}


SERVICE = "reader@project.iam.gserviceaccount.com"


class GoogleHandler(Handler):
    """Cloud Storage, by its XML API, with the tokens that service accounts sign."""

    key: Any = None
    """The private key of the service account."""

    def refusal(self) -> str | None:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.hashes import SHA256

        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        signed, _, signature = token.rpartition(".")
        try:
            if scheme != "Bearer":
                raise ValueError
            self.key.public_key().verify(_decoded(signature), signed.encode(), PKCS1v15(), SHA256())
            claims = json.loads(_decoded(signed.partition(".")[2]))
        except (InvalidSignature, ValueError):
            return "The token is not signed by the service account."
        if claims["iss"] != SERVICE or not claims["iat"] - 60 < time.time() < claims["exp"]:
            return "The token is not valid."
        return None


def google_handler() -> tuple[type[GoogleHandler], str]:
    """What answers requests of a new service account, and the JSON text of its key."""
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    names = {"type": "service_account", "private_key_id": "1", "client_email": SERVICE}
    account = json.dumps({**names, "private_key": pem})
    return type("OwnHandler", (GoogleHandler,), {"key": made}), account


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
