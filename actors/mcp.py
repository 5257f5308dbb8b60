"""MCP servers as toolsets, through the `mcp` SDK (the extra `mcp`).

    from actors import mcp

    files = mcp.stdio("npx", ["-y", "@modelcontextprotocol/server-filesystem", "/data"], name="files")
    issues = mcp.http("https://example.com/mcp", headers={"Authorization": f"Bearer {token}"}, name="issues")
    session = await runtime.open("openai:gpt-5.2", tools=[files, issues], approve=ask_the_user)

Both give a `ToolSource`: when it is opened, kept, opened again and closed is as of any toolset. What a server says of
itself is a stranger's word: its tools are asked about before they run, unless it says that they only read.
"""

from actors.tools.mcp import Elicit, Elicitation, McpOptions, Sample, Sampling, http, stdio
from actors.tools.mcp.options import ElicitationAnswer

__all__ = ["Elicit", "Elicitation", "ElicitationAnswer", "McpOptions", "Sample", "Sampling", "http", "stdio"]
