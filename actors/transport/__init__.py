"""Send requests to providers over HTTP/1.1, with h11 and anyio streams.

Provider actors use this package. Only this package opens connections to providers. A request is a sequence of segments,
and a response is a status, headers and chunks. No type of h11 or of a stream leaves this package. Redirects are not
followed, so that a credential is sent only to its endpoint. If the environment names a proxy, requests go through the
proxy. Responses must not be compressed, because a compressed response may expand a thousandfold before its size can be
checked.

An exchange takes a connection from the pool of its origin, or opens a new one. It returns the connection for reuse only
if both the request and the response are complete.
"""

from actors.transport.client import HttpTransport
from actors.transport.contract import ForwardedRequest, ForwardedResponse, Response, Timeouts, Transport

__all__ = ["ForwardedRequest", "ForwardedResponse", "HttpTransport", "Response", "Timeouts", "Transport"]
