"""The demo's last act: a stop in every other dialect, where the model thinks and asks for the weather of a city."""

from dataclasses import dataclass

from actors.strict.server import LoopbackServer
from actors.testing import Call, Say, Think, Turn, strict_server


@dataclass(frozen=True, slots=True)
class Stop:
    """One dialect, by the name of its profile, and what its model asks."""

    dialect: str
    city: str
    weather: str

    @property
    def script(self) -> tuple[Turn, ...]:
        """What the model says."""
        asks = Turn(Think(f"{self.city}?"), Call("weather", {"city": self.city}))
        return asks, Turn(Say(f"{self.city} has {self.weather}."))


STOPS = (
    Stop("openai_responses", "Lima", "19 C, fog"),
    Stop("gemini", "Quito", "15 C, rain"),
    Stop("vertex", "Havana", "28 C, sunny"),
    Stop("gemini_2", "Boston", "9 C, wind"),
    Stop("bedrock", "Reykjavik", "2 C, snow"),
    Stop("vertex_anthropic", "Dakar", "26 C, breeze"),
    Stop("bedrock_anthropic", "Hanoi", "24 C, showers"),
    Stop("mistral", "Paris", "13 C, clear"),
    Stop("kimi", "Kyoto", "17 C, clear"),
    Stop("deepseek", "Hangzhou", "20 C, rain"),
    Stop("openrouter", "Lagos", "31 C, humid"),
    Stop("xai", "Austin", "27 C, sunny"),
    Stop("qwen", "Shanghai", "18 C, haze"),
    Stop("glm", "Beijing", "12 C, dry"),
    Stop("minimax", "Nairobi", "23 C, clear"),
    Stop("groq", "Perth", "25 C, sunny"),
    Stop("vllm", "Cairo", "30 C, dust"),
    Stop("open_models", "Denver", "8 C, clear"),
    Stop("azure", "Seattle", "10 C, drizzle"),
    Stop("llama_cpp", "Sofia", "11 C, clear"),
    Stop("ollama", "Toronto", "6 C, sleet"),
    Stop("openai_compatible", "Delhi", "33 C, dry"),
)
CITIES = {stop.city: stop.weather for stop in STOPS}


def servers() -> dict[str, LoopbackServer]:
    """Return the strict servers of the stops, not yet running, by dialect."""
    return {stop.dialect: strict_server(stop.dialect, stop.script) for stop in STOPS}
