"""Tools for a stress run: a correct one, and one that leaks."""

import os

from actors import tool


@tool
async def weather(city: str) -> str:
    """Weather of a city."""
    return f"{city}: 21 C"


@tool
async def leak(name: str) -> str:
    """Open a file and never close it."""
    os.dup(1)
    return name


good = [weather]
none = [str]
