import io
import json
import logging

import anyio
import structlog

from actors import Runtime
from actors.testing import OpenAIServer, Status, serve

lines = io.StringIO()  # in your program: sys.stderr
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.JSONRenderer(),
    ],
    wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    logger_factory=structlog.PrintLoggerFactory(lines),
)


async def main() -> None:
    server = OpenAIServer(faults={0: Status(401, message="Incorrect API key provided.")})
    async with serve(server):
        environ = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "wrong"}
        async with Runtime(environ=environ) as runtime:
            session = await runtime.open("openai:gpt-5.2", id="s1")
            await session.ask("Weather in Oslo?", check=False)


anyio.run(main)
for line in lines.getvalue().splitlines():
    event = json.loads(line)
    if "kind" in event:
        print(event["level"], event["logger"], event["event"], event["backend"], event["kind"])
