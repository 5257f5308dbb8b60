"""Mistakes in toolsets: how they are opened, kept, opened again and closed, and what MCP servers say."""

from tests.teeth.mutations.mutation import Mutation

TOOLSETS = "tests/test_toolsets.py"
MCP = "tests/test_mcp.py"
SETS = "actors/toolsets/__init__.py"
OWNER = "actors/toolsets/owner.py"
OFFER = "actors/toolsets/offer.py"
SERVER = "actors/mcp/connection.py"
RESULTS = "actors/mcp/results.py"

FREED = ("tests/test_garbage.py::test_a_session_that_its_own_tools_refer_to_is_freed_once_it_is_forgotten",)

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "freed: a session's configuration hides what its tools refer to from the garbage collector",
        "actors/turns/configuration.py",
        "class Configuration(Struct):",
        "class Configuration(Struct, gc=False):",
        FREED,
    ),
    Mutation(
        "freed: the set of a session's tools is known by the tools themselves, which so stay",
        SETS,
        "setdefault(tuple(map(id, tools)), tools)",
        "setdefault(tuple(tools), tools)",
        FREED,
    ),
    Mutation(
        "servers: the SDK is told an address with the user and the password in it",
        "actors/mcp/transports.py",
        'netloc=parts.netloc.rpartition("@")[2], query=""',
        'query=""',
        ("tests/test_mcp_secrets.py::test_an_address_that_refuses",),
    ),
    Mutation(
        "servers: the SDK is told an address with its query",
        "actors/mcp/transports.py",
        '.rpartition("@")[2], query="", fragment=""',
        '.rpartition("@")[2], fragment=""',
        ("tests/test_mcp_secrets.py::test_an_address_that_refuses",),
    ),
    Mutation(
        "servers: the query of an address is not sent",
        "actors/mcp/transports.py",
        "request.url.copy_with(query=self._query)",
        "request.url",
        ("tests/test_mcp_secrets.py::test_an_address_that_refuses",),
    ),
    Mutation(
        "servers: a configuration shows the arguments of a program",
        "actors/config/settings.py",
        "Field(max_length=256, strict=False, repr=False)",
        "Field(max_length=256, strict=False)",
        ("tests/test_mcp_secrets.py::test_a_configuration_and_what_the_command_line_says_of_it",),
    ),
    Mutation(
        "toolsets: a session waits for those it used to be left",
        "actors/hosting/activation.py",
        "                await self._end()\n",
        "                await self._end()\n                await self.host.toolsets.close()\n",
        ("tests/test_toolsets.py", "tests/subagents/test_ends.py"),
    ),
    Mutation(
        "toolsets: nobody hears of one that goes on though it was cancelled",
        "actors/toolsets/__init__.py",
        "            if scope.cancelled_caught:",
        "            if not scope.cancel_called:",
        ("tests/test_toolsets.py",),
    ),
    Mutation(
        "toolsets: each session opens its own",
        SETS,
        "            if source.shared:\n",
        "            if not source.shared:\n",
        (TOOLSETS,),
    ),
    Mutation(
        "toolsets: the first session that ends closes it",
        SETS,
        "            if not owner.users:\n",
        "            if owner:\n",
        (TOOLSETS,),
    ),
    Mutation(
        "toolsets: closed in the order they were opened in",
        SETS,
        "for owner in reversed(self._owners)",
        "for owner in self._owners",
        (TOOLSETS,),
    ),
    Mutation(
        "toolsets: an open that failed or was cancelled keeps what it had opened",
        SETS,
        "        unused: list[ToolsetOwner] = []\n",
        "        unused: list[ToolsetOwner] = []\n        return self._closed(unused)\n",
        (TOOLSETS,),
    ),
    Mutation(
        "toolsets: one that takes too long to open is waited for",
        OWNER,
        "anyio.CancelScope(deadline=self._began + self.source.opening)",
        "anyio.CancelScope()",
        (TOOLSETS,),
    ),
    Mutation(
        "toolsets: a call does not hasten the next try",
        OWNER,
        "        if not self._is_up(beyond):\n            self._hasten()\n",
        "        if not self._is_up(beyond):\n",
        (TOOLSETS,),
    ),
    Mutation(
        "toolsets: tries to open again come at one distance",
        OWNER,
        "min(2 * self._delay, MOST)",
        "FIRST",
        (TOOLSETS,),
    ),
    Mutation(
        "toolsets: a changed list is taken as it comes",
        OFFER,
        "order = self._names if self._seen is not None else {key: self._names[key] for key in listed}",
        "order = {key: self._names[key] for key in listed}",
        (TOOLSETS,),
    ),
    Mutation(
        "toolsets: a changed list is never offered",
        "actors/turns/configuration.py",
        "        if offer.tools is not self._offered:\n",
        "        if offer.owners and not offer.owners:\n",
        (TOOLSETS,),
    ),
    Mutation(
        "toolsets: what may have taken effect is run again",
        OFFER,
        'return tool.effects != "once" or not lost.may_have_run',
        "return True",
        (MCP,),
    ),
    Mutation(
        "toolsets: what only reads is not run again",
        OFFER,
        'return tool.effects != "once" or not lost.may_have_run',
        "return not lost.may_have_run",
        (MCP,),
    ),
    Mutation(
        "mcp: a stranger's tools run unasked",
        SERVER,
        '("allow" if effects == "pure" else "ask")',
        '"allow"',
        (MCP,),
    ),
    Mutation(
        "mcp: a tool that says it is idempotent only reads",
        SERVER,
        'return "idempotent" if hints.idempotent_hint else "once"',
        'return "pure" if hints.idempotent_hint else "once"',
        (MCP,),
    ),
    Mutation(
        "mcp: a lost connection is an error of the server's",
        SERVER,
        "return self._is_lost or error.code == CONNECTION_CLOSED or error.message in REFUSED",
        "return False",
        (MCP,),
    ),
    Mutation(
        "mcp: a tool that cannot be shown takes all others with it",
        SERVER,
        "        except ToolDefinitionError as error:\n",
        "        except ZeroDivisionError as error:\n",
        (MCP,),
    ),
    Mutation(
        "mcp: an error of a tool is its result",
        RESULTS,
        "    if result.is_error:\n",
        "    if result.is_error and not texts:\n",
        (MCP,),
    ),
    Mutation(
        "mcp: structured content is given twice",
        RESULTS,
        " and not _is_said(result.structured_content, texts)",
        "",
        (MCP,),
    ),
    Mutation(
        "toolsets: one that is lost may take for ever to be left",
        OWNER,
        "                    scope.deadline = self._system.now() + self.source.closing\n",
        "                    pass\n",
        (TOOLSETS,),
    ),
    Mutation(
        "mcp: what the host's function gives is not looked at before it is sent",
        "actors/mcp/questions.py",
        '            return CreateMessageResult(role="assistant", content=TextContent(text=said), model="host")\n'
        "        except Exception as error:",
        '            return CreateMessageResult(role="assistant", content=TextContent(text=said), model="host")\n'
        "        except OSError as error:",
        (MCP,),
    ),
)
