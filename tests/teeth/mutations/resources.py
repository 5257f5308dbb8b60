"""Mutations of toolsets: opening, sharing, reopening and closing them, and answers of MCP servers."""

from tests.teeth.mutations.mutation import Mutation

TOOLSETS = "tests/tools/test_toolsets.py"
MCP = "tests/tools/test_mcp.py"
RAW = "tests/tools/test_mcp_raw.py"
SETS = "actors/tools/toolsets.py"
OWNER = "actors/tools/toolset_owner.py"
OFFER = "actors/tools/toolsets.py"
SERVER = "actors/tools/mcp/connection.py"
RESULTS = "actors/tools/mcp/answers.py"

FREED = ("tests/runtime/test_garbage.py::test_a_session_referenced_by_its_own_tools_is_freed_after_deletion",)

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "freed: a session's configuration hides its tools' references from the garbage collector",
        "actors/session/configuration.py:Configuration",
        "class Configuration(Struct): ...",
        "class Configuration(Struct, gc=False): ...",
        FREED,
    ),
    Mutation(
        "freed: a session's tool set is referenced by its tools and stays",
        f"{SETS}:Toolsets._shared_toolset",
        "tuple(map(id, tools))",
        "tuple(tools)",
        FREED,
    ),
    Mutation(
        "servers: the SDK receives a URL with its user and password",
        "actors/tools/mcp/transports.py:RemoteServer.open",
        'parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")',
        'parts._replace(query="", fragment="")',
        ("tests/tools/test_mcp_secrets.py::test_an_mcp_server_that_refuses_a_request_reveals_no_secret",),
    ),
    Mutation(
        "servers: the SDK receives a URL with its query",
        "actors/tools/mcp/transports.py:RemoteServer.open",
        'parts._replace(**..., query="", fragment="")',
        'parts._replace(**..., fragment="")',
        ("tests/tools/test_mcp_secrets.py::test_an_mcp_server_that_refuses_a_request_reveals_no_secret",),
    ),
    Mutation(
        "servers: the query of a URL is not sent",
        "actors/tools/mcp/transports.py:GuardedTransport.handle_async_request",
        "request.url.copy_with(query=self._query)",
        "request.url",
        ("tests/tools/test_mcp_secrets.py::test_an_mcp_server_that_refuses_a_request_reveals_no_secret",),
    ),
    Mutation(
        "servers: a configuration shows the arguments of a program",
        "actors/config/settings.py:McpSettings.args",
        "Field(max_length=256, strict=False, repr=False)",
        "Field(max_length=256, strict=False)",
        ("tests/tools/test_mcp_secrets.py::test_the_configuration_and_the_command_line_reveal_no_secret",),
    ),
    Mutation(
        "mcp answers: a compressed answer is decoded",
        "actors/tools/mcp/transports.py:GuardedTransport.handle_async_request",
        'encoding not in ("", "identity")',
        "False",
        (RAW,),
    ),
    Mutation(
        "mcp answers: any compression is requested",
        "actors/tools/mcp/transports.py:GuardedTransport.handle_async_request",
        'headers["accept-encoding"] = "identity"',
        "",
        (RAW,),
    ),
    Mutation(
        "mcp answers: blocks are parsed before they are counted",
        "actors/tools/mcp/options.py:McpLimits.excess_error",
        "(blocks := _block_count(data)) > self.max_blocks",
        "(blocks := _block_count(data)) < 0",
        (RAW,),
    ),
    Mutation(
        "mcp answers: an event of a stream may have any size",
        "actors/tools/mcp/transports.py:BoundedEvents._event_error",
        'self._limits.excess_error(b"\\n".join(lines).strip())',
        "None",
        (RAW,),
    ),
    Mutation(
        "mcp answers: one invalid tool invalidates the list",
        "actors/tools/mcp/answers.py:clean_result",
        "_clean_listing(result, on_dropped)",
        "result",
        (RAW, "tests/tools/test_mcp_answers.py"),
    ),
    Mutation(
        "mcp answers: a result without content is an error",
        "actors/tools/mcp/answers.py:clean_result",
        "_clean_call_result(result)",
        "result",
        (RAW, "tests/tools/test_mcp_answers.py"),
    ),
    Mutation(
        "mcp answers: the server's error message is dropped",
        f"{RESULTS}:rejection_error",
        "_compact_json(error.error.data)",
        '""',
        (RAW,),
    ),
    Mutation(
        "mcp answers: the name of a tool depends on its position in the list",
        f"{SERVER}:assign_names",
        "usable == name or alike[usable] == 1",
        "usable == name or list(tools).index(name) == 0 or alike[usable] == 1",
        (RAW,),
    ),
    Mutation(
        "mcp answers: the standard error of a crashed program is not shown",
        "actors/tools/mcp/child.py:_read_stderr",
        "tail.add(data)",
        "pass",
        (RAW,),
    ),
    Mutation(
        "mcp answers: secrets in standard error are shown",
        "actors/tools/mcp/child.py:redact",
        "text.replace(secret, HIDDEN)",
        "text",
        (RAW,),
    ),
    Mutation(
        "toolsets: a session waits for its former toolsets to close",
        "actors/runtime/session_actors.py:_stop",
        """
        with anyio.CancelScope(shield=True):
            ...
        """,
        """
        with anyio.CancelScope(shield=True):
            ...
        await session.host.toolsets.close()
        """,
        ("tests/tools/test_toolsets.py", "tests/subagents/test_ends.py"),
    ),
    Mutation(
        "toolsets: a toolset that ignores cancellation is not reported",
        "actors/tools/toolsets.py:Toolsets._close",
        "scope.cancelled_caught",
        "not scope.cancel_called",
        ("tests/tools/test_toolsets.py",),
    ),
    Mutation(
        "toolsets: each session opens its own",
        f"{SETS}:Toolsets._resolve_item",
        "source.shared",
        "not source.shared",
        (TOOLSETS,),
    ),
    Mutation(
        "toolsets: the first session that ends closes it",
        f"{SETS}:Toolsets.release",
        "not owner.users",
        "owner",
        (TOOLSETS,),
    ),
    Mutation(
        "toolsets: they are closed in the order of opening",
        f"{SETS}:Toolsets._start_closing",
        "reversed(self._owners)",
        "self._owners",
        (TOOLSETS,),
    ),
    Mutation(
        "toolsets: a failed or cancelled open keeps its resources",
        f"{SETS}:Toolsets.release",
        "unused: list[ToolsetOwner] = []",
        """
        unused: list[ToolsetOwner] = []
        return self._start_closing(unused)
        """,
        (TOOLSETS,),
    ),
    Mutation(
        "toolsets: a slow open is waited for without a limit",
        f"{OWNER}:ToolsetOwner._start_opening",
        "anyio.CancelScope(deadline=self._began + self.source.opening)",
        "anyio.CancelScope()",
        (TOOLSETS,),
    ),
    Mutation(
        "toolsets: a call does not trigger the next attempt",
        f"{OWNER}:ToolsetOwner.current_tool",
        "self._retry_soon()",
        "",
        (TOOLSETS,),
    ),
    Mutation(
        "toolsets: attempts to reopen have constant intervals",
        f"{OWNER}:ToolsetOwner._on_end",
        "min(2 * self._delay, MAX_RETRY)",
        "FIRST_RETRY",
        (TOOLSETS,),
    ),
    Mutation(
        "toolsets: a changed list is accepted unchecked",
        f"{OFFER}:SessionTools.refresh",
        "self._names if self._versions is not None else {key: self._names[key] for key in entries}",
        "{key: self._names[key] for key in entries}",
        (TOOLSETS,),
    ),
    Mutation(
        "toolsets: a changed list is never offered",
        "actors/session/configuration.py:ActiveConfig.refresh",
        "session_tools.tools is not self._adopted_tools",
        "session_tools.owners and (not session_tools.owners)",
        (TOOLSETS,),
    ),
    Mutation(
        "toolsets: a call that may have taken effect runs again",
        f"{OFFER}:_may_run_again",
        'tool.effects != "once" or not lost.may_have_run',
        "True",
        (MCP,),
    ),
    Mutation(
        "toolsets: a read-only call is not repeated",
        f"{OFFER}:_may_run_again",
        'tool.effects != "once" or not lost.may_have_run',
        "not lost.may_have_run",
        (MCP,),
    ),
    Mutation(
        "mcp: an untrusted tool runs without approval",
        f"{SERVER}:ServerTools._approval",
        'rule or ("allow" if effects == "pure" else "ask")',
        'rule or "allow"',
        (MCP,),
    ),
    Mutation(
        "mcp: a tool marked idempotent counts as read-only",
        f"{SERVER}:effects_of",
        '"idempotent" if hints.idempotent_hint else "once"',
        '"pure" if hints.idempotent_hint else "once"',
        (MCP,),
    ),
    Mutation(
        "mcp: a lost connection is an error of the server",
        f"{SERVER}:ServerTools._is_lost_call",
        "self._is_lost or error.code == CONNECTION_CLOSED or error.message in REJECTION_MESSAGES",
        "False",
        (MCP,),
    ),
    Mutation(
        "mcp: a tool that cannot be offered removes all others",
        f"{SERVER}:ServerTools._build_tools",
        "ToolDefinitionError",
        "ZeroDivisionError",
        (MCP,),
    ),
    Mutation(
        "mcp: a tool's error is a normal result",
        f"{RESULTS}:tool_output",
        "result.is_error",
        "result.is_error and (not parts)",
        (MCP,),
    ),
    Mutation(
        "mcp: structured content is returned twice",
        f"{RESULTS}:tool_output",
        "_is_repeated(structured, texts)",
        "False",
        (MCP,),
    ),
    Mutation(
        "toolsets: leaving a lost toolset may take forever",
        f"{OWNER}:ToolsetOwner._run_opening",
        "scope.deadline = self._system.now() + self.source.closing",
        "pass",
        (TOOLSETS,),
    ),
    Mutation(
        "mcp: headers from the host's function are sent unchecked",
        "actors/tools/mcp/connection.py:sampling_callback",
        "await await_host(partial(respond, params), ...)",
        "await respond(params)",
        (MCP,),
    ),
)
