"""The only place that opens connections to providers: HTTP/1.1 by h11 over anyio's streams.

It takes a request of segments and gives status, headers and chunks. No type of h11 or of a stream leaves this
package. Redirects are not followed: a credential goes to its own endpoint and nowhere else, through a proxy if the
environment names one. Answers are asked for, and taken, as they are: a compressed one may be a
thousand times as large as what came, and would be unpacked before anyone could count it.

An exchange takes a connection from the pool of its origin, or dials a new one, and returns it only after a whole
request and a whole answer.
"""

from actors.transport.client import HttpTransport
from actors.transport.contract import Response, Timeouts, Transport

__all__ = ["HttpTransport", "Response", "Timeouts", "Transport"]
