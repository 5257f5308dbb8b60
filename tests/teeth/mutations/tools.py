"""Mistakes where tools are described, see their session, write in order, and have their results read."""

from tests.teeth.mutations.mutation import Mutation

ARGUMENTS = "tests/core/test_arguments.py"
CONTEXT = "tests/test_tool_context.py"
EDGE = "tests/test_tools_at_the_edge.py"
LARGE = "tests/test_large_results.py"
OPTIONS = "tests/test_tool_options.py"
ORDER = "tests/test_resource_order.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "run_tool: what the tool says of its progress is shown to nobody",
        "actors/driver.py",
        "ask.log.prelude(), view, approved=True)",
        "ask.log.prelude(), approved=True)",
        ("tests/test_run_tool.py",),
    ),
    Mutation(
        "run_tool: who reads the session along is left out",
        "actors/handle.py",
        "Submit(message, heard, copy_context(), call)",
        "Submit(message, sink, copy_context(), call)",
        ("tests/test_run_tool.py",),
    ),
    Mutation(
        "options: a rule that says no known word allows",
        "actors/tools/tool.py",
        'return said if said in ("allow", "ask", "deny") else "deny"',
        "return said",
        (OPTIONS,),
    ),
    Mutation(
        "options: a tool of strangers runs without a question",
        "actors/tools/options.py",
        'return "allow" if effects == "pure" else "ask"',
        'return "allow"',
        (OPTIONS,),
    ),
    Mutation(
        "options: a pure tool may write to what it likes",
        "actors/tools/options.py",
        'if effects == "pure" and resources:',
        'if effects == "pure" and resources and False:',
        (OPTIONS,),
    ),
    Mutation(
        "options: a description of any size goes into each request",
        "actors/tools/tool.py",
        "len(about) > MAX_DESCRIPTION",
        "False",
        (OPTIONS,),
    ),
    Mutation(
        "context: the model is shown the parameter it comes by",
        "actors/tools/signature.py",
        "for key, each in _parameters(function, name).items() if key != context",
        "for key, each in _parameters(function, name).items()",
        (CONTEXT,),
    ),
    Mutation(
        "context: what a model gives by its name takes its place",
        "actors/calls.py",
        "arguments = {**arguments, name: context}",
        "arguments = {name: context, **arguments}",
        (CONTEXT,),
    ),
    Mutation(
        "context: a schema may have a field of its name",
        "actors/tools/tool.py",
        "in _properties(made.schema):",
        "in ():",
        (CONTEXT,),
    ),
    Mutation(
        "context: sessions of one id share their idempotency keys",
        "actors/views.py",
        'key = f"{executor.session}/{executor.key}/{call_id}"',
        'key = f"{executor.session}/{call_id}"',
        (CONTEXT,),
    ),
    Mutation(
        "context: the history goes on while the turn does",
        "actors/steps.py",
        "return TurnView(self._number, self._round, self._history, self._ledger, put)",
        "return TurnView(self._number, self._round, self._log.state.history, self._ledger, put)",
        (CONTEXT,),
    ),
    Mutation(
        "context: a call that has no time left is not told to end",
        "actors/calls.py",
        "return self._is_stopped or self.is_late",
        "return self._is_stopped",
        (CONTEXT,),
    ),
    Mutation(
        "timeout: a thread that could hear of it is given no time to end",
        "actors/calls.py",
        "if self._thread is not None and self.tool.context_parameter is None:",
        "if self._thread is not None:",
        (CONTEXT,),
    ),
    Mutation(
        "progress: each word of a thread is a piece of work for the event loop",
        "actors/views.py",
        "        if not is_coming:\n",
        "        if not is_coming or True:\n            self._turn.put(event)\n",
        (CONTEXT,),
    ),
    Mutation(
        "progress: a call that has ended goes on talking",
        "actors/views.py",
        "if event is not None and self._turn.put is not None and not self._ongoing.is_closed:",
        "if event is not None and self._turn.put is not None:",
        (CONTEXT,),
    ),
    Mutation(
        "order: a writer does not wait for those before it",
        "actors/calls.py",
        "if (self.tool.resources and self._must_wait()) or self._asks:",
        "if (self._must_wait() and False) or self._asks:",
        (ORDER,),
    ),
    Mutation(
        "order: a writer begins while one that was ended still works",
        "actors/ordering.py",
        "            if not writer.is_over:\n",
        "            if not writer.is_over and False:\n",
        (ORDER,),
    ),
    Mutation(
        "order: one who is refused is all that the next one looks at",
        "actors/ordering.py",
        "[writer for key in keys for writer in order.get(key, ())]",
        "[writer for key in keys for writer in order.get(key, ())[-1:]]",
        (ORDER,),
    ),
    Mutation(
        "order: a call that was stopped before it began keeps its place",
        "actors/calls.py",
        "            self._give_back()\n            if self._writer is not None:\n"
        "                self._writer.end()\n            self._has_ended",
        "            self._give_back()\n            self._has_ended",
        (ORDER,),
    ),
    Mutation(
        "results: a large one is read in the event loop",
        "actors/calls.py",
        "return await self._read(value) if is_large(value) else self._given(value)",
        "return self._given(value)",
        (LARGE,),
    ),
    Mutation(
        "results: what has code of its own is read in any thread",
        "actors/calls.py",
        "partial(self._given, value, plain_only=True)",
        "partial(self._given, value)",
        (LARGE,),
    ),
    Mutation(
        "results: an object inside plain data passes as plain",
        "actors/core/ingest.py",
        "if self._plain_only and not is_plain(kind):",
        "if self._plain_only and depth == 0 and not is_plain(kind):",
        (LARGE,),
    ),
    Mutation(
        "results: a cancel loses what was already returned",
        "actors/calls.py",
        "        except BaseException:\n            return self._given(value)\n",
        "        except ThreadsBusy:\n            return self._given(value)\n",
        (LARGE,),
    ),
    Mutation(
        "results: the limit that was set is not heeded",
        "actors/runtime.py",
        "limits.tool_wait, kept",
        "limits.tool_wait",
        (LARGE,),
    ),
    Mutation(
        "results: all of a list is searched for media",
        "actors/core/returned.py",
        "if Media not in map(type, islice(items, limits.max_items)):",
        "if Media not in map(type, items):",
        (LARGE,),
    ),
    Mutation(
        "schemas: what a stranger wrote reaches the terminal as it is",
        "actors/core/arguments.py",
        'reason = printable(_clipped(str(error).partition("\\n")[0], 2 * _NAMED))',
        'reason = _clipped(str(error).partition("\\n")[0], 2 * _NAMED)',
        (ARGUMENTS,),
    ),
    Mutation(
        "context: a fraction is shown as whatever it is",
        "actors/views.py",
        "max(0.0, float(fraction))",
        "max(0.0, fraction)",
        (CONTEXT,),
    ),
    Mutation(
        "hooks: an exit of the hook for failures takes the runtime along",
        "actors/executor.py",
        "        except BaseException as raised:  # the hook",
        "        except Exception as raised:  # the hook",
        (EDGE,),
    ),
    Mutation(
        "threads: one that cannot begin keeps its place",
        "actors/threads.py",
        "                place.give_back()\n                raise\n",
        "                raise\n",
        (EDGE,),
    ),
    Mutation(
        "watchdog: a tool fails where no thread can watch it",
        "actors/watchdog.py",
        "with suppress(RuntimeError):",
        "with suppress(LookupError):",
        (EDGE,),
    ),
)
