import asyncio
import sys
from functools import partial

import ray

from actors import Runtime, Session
from actors.hosts import RayHosts
from actors.testing import OpenAIServer, Say, Turn, serve


def make_runtime(environ: dict[str, str], journal: str, name: str) -> Runtime:
    return Runtime(environ=environ, journal=journal, address=name)


async def open_session(runtime: Runtime, name: str) -> Session:
    return await runtime.open("openai:gpt-5.2", id=name, resume=True)


async def main(journal: str) -> None:
    server = OpenAIServer(lambda request: Turn(Say(f"Answer {len(request['messages']) // 2 + 1}")))
    async with serve(server):
        environ = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.base_url}
        hosts = RayHosts(("a", "b", "c"), partial(make_runtime, environ, journal), open_session)
        await hosts.wait_started()
        for number in range(1, 4):
            asks = [hosts.ask(f"session-{each}", f"Question {number}") for each in range(12)]
            print({result.text for result in await asyncio.gather(*asks)})
        print({host.address: host.sessions for host in await hosts.hosts()})
        await hosts.close()


if __name__ == "__main__":
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level="error")
    asyncio.run(main(sys.argv[1]))
