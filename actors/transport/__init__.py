"""Send requests to providers: HTTP/1.1 by h11 over anyio streams. Only this package opens connections to providers.

Provider actors use it. A request is a sequence of segments; a response is a status, headers and chunks. No type of h11
or of a stream leaves this package. Redirects are not followed, so a credential goes only to its own endpoint, through a
proxy if the environment names one. Responses must not be compressed, because a compressed response may expand
a thousandfold before its size can be checked.

An exchange takes a connection from the pool of its origin, or opens one, and returns it to the pool only after a
complete request and a complete response.
"""

from actors.transport.client import HttpTransport
from actors.transport.contract import Response, Timeouts, Transport

__all__ = ["HttpTransport", "Response", "Timeouts", "Transport"]
