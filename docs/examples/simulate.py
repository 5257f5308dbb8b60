import anyio

from actors import tool
from actors.testing import simulate

rooms = {"free": 3, "sold": 0}


@tool
async def book(hotel: str) -> str:
    """Book a room. The bug: another call may take the last room during the sleep."""
    free = rooms["free"]
    await anyio.sleep(0.2)  # a slow booking system
    rooms["free"] = free - 1
    rooms["sold"] += 1
    return f"{hotel}: booked"


report = simulate(7, sessions=6, turns=3, tools=[book])
assert not report.problems, report
print("every invariant holds")
print("rooms that were sold twice:", rooms["free"] + rooms["sold"] != 3)
again = simulate(7, sessions=6, turns=3)
print("the same seed is the same run:", again == simulate(7, sessions=6, turns=3))
