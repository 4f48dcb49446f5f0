"""What keeps the dashboard to its user: host check, token, and a strict content-security policy.

A page of another site must not reach it by DNS rebinding (host check), nobody else on the network
may read it (token), and text of a candidate must not run (policy; escaping is the first line).
"""

from __future__ import annotations

import hmac
import ipaddress
from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
COOKIE = "kernelpro_token"


class Access(NamedTuple):
    """Who may look. ``token`` None = whoever reaches the loopback address of this machine."""

    host: str
    token: str | None


def is_loopback(host: str) -> bool:
    """True for ``localhost`` and loopback addresses."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """ASGI middleware: refuses what :class:`Access` does not allow, adds the headers."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        if not self._host_allowed(headers.get("host", "")):
            return PlainTextResponse("This host name is not served here.\n", status_code=421)
        if self._access.token is None:
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = dict(query).get("token")
        if given is not None and self._right(given):
            rest = urlencode([(k, v) for k, v in query if k != "token"])
            response = RedirectResponse(scope["path"] + (f"?{rest}" if rest else ""), 303)
            response.set_cookie(COOKIE, given, httponly=True, samesite="strict", path="/")
            return response
        if self._right(_cookie(headers.get("cookie", ""))):
            return None
        return PlainTextResponse(
            "A token is needed: open the address that 'kernelpro serve' printed.\n", status_code=401
        )

    def _right(self, given: str | None) -> bool:
        token = self._access.token
        return bool(given and token and hmac.compare_digest(given.encode(), token.encode()))

    def _host_allowed(self, header: str) -> bool:
        """With a token any name will do: a rebinding page has no cookie for its own name."""
        if self._access.token is not None:
            return True
        host = header.rpartition(":")[0] if header.rpartition(":")[2].isdigit() else header
        host = host.strip("[]")
        return is_loopback(host) or host.lower() == self._access.host.lower()


def _cookie(header: str) -> str | None:
    try:
        morsel = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return None
    return morsel.value if morsel else None
