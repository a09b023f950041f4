"""A viser server that only this machine's own page can talk to.

viser accepts any websocket, so any web page open in the same browser could steer the robot. Here a handshake needs an
``Origin`` that is the page itself, and a ``Host`` that is a name of the bound address (else a foreign domain could be
made to resolve to it). viser has no switch for this: the function that opens its listening socket is wrapped while the
server starts.
"""
from __future__ import annotations

import contextlib
import http
import io
import threading
from urllib.parse import urlsplit

import viser
import websockets.asyncio.server as websocket_server
from websockets.datastructures import Headers
from websockets.http11 import Response

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_starting = threading.Lock()


def refusal(headers, host):
    """Why a request with these headers is refused on a server bound to `host`, or None when it is welcome.

    headers   mapping with ``Host`` and, from browsers' scripts and websockets, ``Origin``
    """
    named = headers.get("Host", "")
    if host in LOOPBACK and urlsplit(f"//{named}").hostname not in LOOPBACK:
        return f"Host '{named}' is not this machine's own name"
    origin = headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != named:
        return f"Origin '{origin}' is not this page"
    return None


def _guarded(serve, host):
    def guarded_serve(handler, *args, process_request=None, **options):
        def check(connection, request):
            reason = refusal(request.headers, host)
            if reason is not None:
                body = f"refused: {reason}\n".encode()
                return Response(http.HTTPStatus.FORBIDDEN, "Forbidden",
                                Headers({"Content-Type": "text/plain", "Content-Length": str(len(body))}), body)
            return process_request(connection, request) if process_request else None
        return serve(handler, *args, process_request=check, **options)
    return guarded_serve


class Server(viser.ViserServer):
    """viser on `host` (this machine by default), quiet, without its share tunnel.

    A busy port moves on to the next free one; ``url`` names the one in use.
    """

    def __init__(self, host="127.0.0.1", port=8080):
        with _starting:
            serve = websocket_server.serve
            websocket_server.serve = _guarded(serve, host)
            try:
                with contextlib.redirect_stdout(io.StringIO()):  # viser prints a banner
                    super().__init__(host=host, port=port, verbose=False)
            finally:
                websocket_server.serve = serve

    @property
    def url(self):
        """Address of the page, with the port in use."""
        return f"http://{self.get_host()}:{self.get_port()}"

    def stop(self):
        """Stops listening."""
        with contextlib.redirect_stdout(io.StringIO()):  # viser says goodbye
            super().stop()

    def request_share_url(self, verbose=True):
        """Never opens a tunnel to the outside, whatever a client asks."""
        return None
