import io
import json
import logging

import anyio

from actors import Runtime
from actors.testing import OpenAIServer, Status, serve

PLAIN = {*vars(logging.makeLogRecord({})), "message", "asctime"}


class JsonLines(logging.Formatter):
    """Format a record as one line of JSON: time, level, logger, event, and the fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        known = {"time": record.created, "level": record.levelname, "logger": record.name}
        fields = {name: value for name, value in vars(record).items() if name not in PLAIN}
        trace = {"traceback": record.exc_text} if record.exc_text else {}
        return json.dumps({**known, "event": record.getMessage(), **fields, **trace})


lines = io.StringIO()  # in your program: sys.stderr
handler = logging.StreamHandler(lines)
handler.setFormatter(JsonLines())
logging.getLogger("actors").addHandler(handler)
logging.getLogger("actors").setLevel(logging.INFO)
logging.getLogger("actors").propagate = False


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
        print(event["level"], event["event"], event["session"], event["http_status"], event.get("advice", ""))
