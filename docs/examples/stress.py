import anyio

from actors import tool
from actors.testing import stress


@tool
async def weather(city: str) -> str:
    """Weather of a city."""
    return f"{city}: 21 C"


async def main() -> None:
    report = await stress(tools=[weather], sessions=20, turns=4, cancelling=0)
    print(report.asks, "in", report.rounds, "rounds")
    print("refused:", report.refusals, "leaks:", dict(report.leaks))
    assert report.is_sound, report


anyio.run(main)
