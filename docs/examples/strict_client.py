import json

import anyio
import httpx2

from actors.testing import RATE_LIMITED, AnthropicServer, Call, Say, Turn, serve


async def my_client(base_url: str, messages: list[dict[str, object]]) -> str:
    """Your client. The bug: it sends a tool result with the role of the user."""
    body = {"model": "claude-sonnet-5", "max_tokens": 100, "messages": messages}
    async with httpx2.AsyncClient() as client:
        response = await client.post(f"{base_url}/v1/messages", json=body)
    answer = response.json()
    return f"{response.status_code} {json.dumps(answer.get('error') or answer['content'])}"


async def main() -> None:
    server = AnthropicServer([Turn(Call("weather", {"city": "Oslo"}, id="toolu_1")), Turn(Say("4 C."))])
    server.faults = {2: RATE_LIMITED}
    async with serve(server):
        question: dict[str, object] = {"role": "user", "content": "Weather in Oslo?"}
        print(await my_client(server.base_url, [question]))
        call = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}
        asked: dict[str, object] = {"role": "assistant", "content": [call]}
        print(await my_client(server.base_url, [question, asked, {"role": "user", "content": "4 C"}]))
        print(await my_client(server.base_url, [question]))
    for exchange in server.requests:
        print(exchange.order, exchange.status, exchange.verdict.rule if exchange.verdict else "-")


anyio.run(main)
