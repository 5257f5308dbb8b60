"""Define the script of the demo: its strict servers, their models' answers, its tools and its configuration.

`gpt` is an OpenAI Chat Completions server that restarts its call ids in every response. `claude` is an Anthropic
Messages server that binds the signature of its thinking to the messages before it. `STOPS` has one server for each
other dialect, whose model thinks and calls the weather tool for a city. Each server refuses the same requests as the
real provider.
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from actors.config import BackendLimits, BackendSettings, Config, FileSettings, PoolSettings
from actors.config.providers import kind_of
from actors.core.dialects.profiles import dialect
from actors.strict.loopback import HttpRequest
from actors.strict.server import LoopbackServer
from actors.testing import (
    SERVER_ERROR,
    AnthropicProfile,
    AnthropicServer,
    AnthropicSettings,
    Call,
    InjectedFault,
    OpenAIServer,
    Say,
    Think,
    Turn,
    strict_server,
)
from actors.tools import Tool, tool


@dataclass(frozen=True, slots=True)
class DemoStop:
    """A dialect that the demo visits with `--all`, and the city whose weather its model asks for.

    Args:
        dialect: Name of the profile.
        weather: The result of the weather tool for the city.
    """

    dialect: str
    city: str
    weather: str

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The two answers of the model: a call of the weather tool, then a text."""
        asks = Turn(Think(f"{self.city}?"), Call("weather", {"city": self.city}))
        return asks, Turn(Say(f"{self.city} has {self.weather}."))


STOPS = (
    DemoStop("openai_responses", "Lima", "19 C, fog"),
    DemoStop("gemini", "Quito", "15 C, rain"),
    DemoStop("vertex", "Havana", "28 C, sunny"),
    DemoStop("gemini_2", "Boston", "9 C, wind"),
    DemoStop("bedrock", "Reykjavik", "2 C, snow"),
    DemoStop("vertex_anthropic", "Dakar", "26 C, breeze"),
    DemoStop("bedrock_anthropic", "Hanoi", "24 C, showers"),
    DemoStop("mistral", "Paris", "13 C, clear"),
    DemoStop("kimi", "Kyoto", "17 C, clear"),
    DemoStop("deepseek", "Hangzhou", "20 C, rain"),
    DemoStop("openrouter", "Lagos", "31 C, humid"),
    DemoStop("xai", "Austin", "27 C, sunny"),
    DemoStop("qwen", "Shanghai", "18 C, haze"),
    DemoStop("glm", "Beijing", "12 C, dry"),
    DemoStop("minimax", "Nairobi", "23 C, clear"),
    DemoStop("groq", "Perth", "25 C, sunny"),
    DemoStop("vllm", "Cairo", "30 C, dust"),
    DemoStop("open_models", "Denver", "8 C, clear"),
    DemoStop("azure", "Seattle", "10 C, drizzle"),
    DemoStop("llama_cpp", "Sofia", "11 C, clear"),
    DemoStop("ollama", "Toronto", "6 C, sleet"),
    DemoStop("openai_compatible", "Delhi", "33 C, dry"),
)
CITIES = {
    "Oslo": "4 C, clear",
    "Rome": "21 C, sunny",
    "Bergen": "6 C, rain",
    **{stop.city: stop.weather for stop in STOPS},
}
HOTELS = ("Astoria", "Bellevue", "Continental", "Dante", "Excelsior")
MODELS = {"gpt": "gpt-5.2", "claude": "claude-sonnet-5"}
FAST, UNSTOPPABLE = HOTELS[0], HOTELS[4]

# A history that a crashed program left behind: a duplicate result, a call without a result, a result without a call.
BROKEN: list[dict[str, Any]] = [  # Any: message fields have many types
    {"role": "user", "content": "Find me a warm city and a train."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_0", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
            {"id": "call_1", "type": "function", "function": {"name": "trains", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "call_0", "content": "Rome is warm."},
    {"role": "tool", "tool_call_id": "call_0", "content": "Rome is warm."},
    {"role": "tool", "tool_call_id": "call_77", "content": "Night train at 21:04."},
]

GPT_TURNS = (
    Turn(Call("weather", {"city": "Oslo"}), Call("weather", {"city": "Rome"}), ids="restart"),
    Turn(Say("Oslo has 4 C, Rome 21 C.")),
    Turn(Call("weather", raw='{"city": "Ber'), ids="restart"),
    Turn(Call("weather", {"city": "Bergen"}), ids="restart"),
    Turn(Say("Bergen has 6 C and rain.")),
    Turn(Say("The Astoria in Rome is booked. The Excelsior would have been dearer.")),
    Turn(Say("A light coat will do.")),
    Turn(Say("In Delhi; it was coldest in Reykjavik.")),
)
CLAUDE_TURNS = (
    Turn(Think("Rome, then. Let me be sure."), Say("One moment."), Call("weather", {"city": "Rome"})),
    Turn(
        Think("Five hotels, five prices."),
        *(Call("price", {"hotel": hotel}) for hotel in HOTELS),
    ),
    Turn(Think("One price is better than none."), Say("The Astoria costs 120.")),
    Turn(Think("They want it."), Call("book", {"hotel": "Astoria"})),
    Turn(Say("Booked: the Astoria.")),
    Turn(Think("Spring in Rome."), Say("Take a light coat.")),
    Turn(Think("Nothing is missing."), Say("Ticket, passport, coat.")),
    Turn(Think("A short farewell."), Say("Have a good trip!")),
    Turn(Think("All is in this conversation."), Say("Twenty-two cities, and a night in Rome.")),
)


@dataclass(slots=True)
class Gates:
    """Events that make tools of the demo wait until a certain point, so that every run has the same order.

    `outage` is true while `gpt` answers every request with an error.
    """

    booking: anyio.Event = field(default_factory=anyio.Event)
    excelsior: anyio.Event = field(default_factory=anyio.Event)
    outage: bool = False

    def fault(self, _order: int, _body: object) -> InjectedFault | None:
        """Return the fault to inject into a request to `gpt`, or None."""
        return SERVER_ERROR if self.outage else None

    @contextmanager
    def failing(self) -> Generator[None]:
        """Let `gpt` answer every request inside the block with status 500."""
        self.outage = True
        yield
        self.outage = False


def unrepaired_requests() -> dict[str, HttpRequest]:
    """Return requests to the two servers with the broken history, translated block by block without repair."""
    gpt = {"model": MODELS["gpt"], "messages": BROKEN}
    called, *answers = BROKEN[1:]
    calls: list[dict[str, Any]] = [
        {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": {}}
        for call in called["tool_calls"]
    ]
    results = [
        {"type": "tool_result", "tool_use_id": answer["tool_call_id"], "content": answer["content"]}
        for answer in answers
    ]
    messages: list[dict[str, Any]] = [
        BROKEN[0],
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]
    claude: dict[str, Any] = {"model": MODELS["claude"], "max_tokens": 1024, "messages": messages}
    version = {"anthropic-version": "2023-06-01"}
    return {
        "gpt": HttpRequest("POST", "/v1/chat/completions", {}, json.dumps(gpt).encode(), False),
        "claude": HttpRequest("POST", "/v1/messages", version, json.dumps(claude).encode(), False),
    }


def servers(gates: Gates, *, all_dialects: bool) -> dict[str, LoopbackServer]:
    """Return the servers by backend name. They are not running yet.

    The servers are `gpt` and `claude`. With `all_dialects`, there is one server for each other dialect too.
    """
    strict = AnthropicSettings(profile=AnthropicProfile(prefix_bound=True))
    return {
        "gpt": OpenAIServer(GPT_TURNS, faults=gates.fault),
        "claude": AnthropicServer(CLAUDE_TURNS, settings=strict),
        **({stop.dialect: strict_server(stop.dialect, stop.turns) for stop in STOPS} if all_dialects else {}),
    }


def config(running: dict[str, LoopbackServer]) -> Config:
    """Return a configuration with one backend per server and two pools, as an `actors.toml` would define them."""
    backends = {name: _backend_settings(name, server) for name, server in running.items()}
    pools = {
        "by-turns": PoolSettings(members=("claude", "gpt"), policy="round_robin"),
        "either": PoolSettings(members=("gpt", "claude"), policy="failover"),
    }
    return Config(FileSettings(backends=backends, pools=pools), {}, "the demo")


def _backend_settings(name: str, server: LoopbackServer) -> BackendSettings:
    return BackendSettings(
        kind=kind_of(dialect(server.dialect)),
        dialect=server.dialect,
        model=MODELS.get(name, name),
        base_url=server.endpoint,
        limits=BackendLimits(attempts=2),
    )


def tools(gates: Gates) -> list[Tool[..., Any]]:  # Any: tools differ in result type
    """Return the three tools of the demo: `weather`, `price` and `book`."""

    @tool
    async def weather(city: str) -> str:
        """Weather of a city."""
        return f"{city}: {CITIES[city]}"

    @tool
    async def price(hotel: str) -> str:
        """Price of a night. The first hotel answers; the others never do, and the last cannot be stopped."""
        if hotel == UNSTOPPABLE:
            with anyio.CancelScope(shield=True):
                await gates.excelsior.wait()
        elif hotel != FAST:
            await anyio.sleep_forever()
        return f"{hotel}: {90 + 30 * (HOTELS.index(hotel) + 1)}"

    @tool
    async def book(hotel: str) -> str:
        """Book a hotel."""
        await gates.booking.wait()
        return f"{hotel}: booked"

    return [weather, price, book]
