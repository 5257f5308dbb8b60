"""Connect to MCP servers and use their tools, through the `mcp` SDK (the extra `mcp`).

    from actors import mcp

    files = mcp.stdio("npx", ["-y", "@modelcontextprotocol/server-filesystem", "/data"], name="files")
    issues = mcp.http("https://example.com/mcp", headers={"Authorization": f"Bearer {token}"}, name="issues")
    session = await runtime.open("openai:gpt-5.2", tools=[files, issues], approve=ask_the_user)

Both functions return a `ToolSource`, a toolset that the runtime opens and closes like any other. Servers are not
trusted: by default, every call of their tools needs approval, except calls of tools that the server declares read-only.
"""

from actors.tools.mcp import Elicit, Elicitation, McpOptions, Sample, Sampling, http, stdio
from actors.tools.mcp.options import ElicitationAnswer

__all__ = ["Elicit", "Elicitation", "ElicitationAnswer", "McpOptions", "Sample", "Sampling", "http", "stdio"]
