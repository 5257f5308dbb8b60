"""Mutations of the checks of arguments that a program passes."""

from tests.teeth.mutations.mutation import Mutation

MISUSE = "tests/runtime/test_misuse.py"
_CHOICE = f"{MISUSE}::test_an_ask_takes_either_a_message_or_results_and_approvals"
_ASKED = f"{MISUSE}::test_invalid_arguments_of_journal_methods_are_rejected"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "misuse: the results of a toolset are not checked",
        "actors/tools/toolset_owner.py:ToolsetOwner._publish_tools",
        "not is_tool_list(opened)",
        "opened is ...",
        ("tests/tools/test_toolsets.py::test_a_toolset_that_does_not_yield_a_list_of_tools_is_rejected",),
    ),
    Mutation(
        "misuse: an empty id counts as missing",
        "actors/core/session/export_file.py:assign_ids",
        "{first.key: first.session if name is None else name}",
        "{first.key: name or first.session}",
        (_ASKED,),
    ),
    Mutation(
        "misuse: an invalid timeout waits forever",
        "actors/runtime/validation.py:_is_number",
        "isinstance(value, int | float) and value == value",
        "isinstance(value, int | float)",
        (_ASKED,),
    ),
    Mutation(
        "misuse: a page of a list may have any length",
        "actors/runtime/validation.py:check_limit",
        "not (isinstance(limit, int) and 0 <= limit <= MAX_PAGE)",
        "False",
        (_ASKED,),
    ),
    Mutation(
        "misuse: an id may be any text",
        "actors/runtime/validation.py:checked_session_id",
        "not isinstance(value, str)",
        "False",
        (_ASKED,),
    ),
    Mutation(
        "misuse: an id that no storage accepts is a fault of the program",
        "actors/runtime/validation.py:checked_session_id",
        "InvalidIdentifier",
        "ConfigError",
        (f"{MISUSE}::test_an_invalid_session_id_is_reported_as_an_error_of_the_client",),
    ),
    Mutation(
        "misuse: the arguments of a runtime are not checked",
        "actors/runtime/validation.py:check_types",
        "value is not None and (not _ARGUMENT_TYPES[name].accepts(value))",
        "False",
        (f"{MISUSE}::test_invalid_arguments_of_a_runtime_raise_config_errors",),
    ),
    Mutation(
        "misuse: a folder is accepted as a journal",
        "actors/journal/storage/sqlite/storage.py:_resolve_path",
        """
        if is_folder:
            ...
        """,
        """
        if False:
            ...
        """,
        (f"{MISUSE}::test_invalid_arguments_of_a_runtime_raise_config_errors",),
    ),
    Mutation(
        "misuse: a journal's path depends on the working directory",
        "actors/journal/storage/sqlite/storage.py:_resolve_path",
        "Path(os.path.realpath(path))",
        "Path(path)",
        ("tests/journal/test_sqlite.py::test_a_relative_path_names_the_same_file_after_chdir",),
    ),
    Mutation(
        "misuse: an empty set of results is accepted",
        "actors/session/resolutions.py:resolutions",
        "not (ended or decided)",
        "False",
        (MISUSE,),
    ),
    Mutation(
        "misuse: a decision's reason may be too long for the log",
        "actors/session/resolutions.py:_convert_decision",
        "not isinstance(reason, str)",
        "False",
        (MISUSE,),
    ),
    Mutation(
        "misuse: a decision may have any type",
        "actors/session/resolutions.py:_convert_decision",
        "not isinstance(decision, ApprovalDecision)",
        "False",
        (f"{MISUSE}::test_a_decision_of_the_wrong_type_is_rejected_by_call_id",),
    ),
    Mutation(
        "misuse: call ids may have any type",
        "actors/session/resolutions.py:_by_call_id",
        "not all((isinstance(call_id, str) for call_id in mapping))",
        "False",
        (f"{MISUSE}::test_results_that_are_not_a_mapping_by_call_id_are_rejected",),
    ),
    Mutation(
        "misuse: an ask without arguments continues the waiting one",
        "actors/session/resolutions.py:check_ask_arguments",
        "message is None and (not resolves)",
        "False",
        (_CHOICE,),
    ),
    Mutation(
        "misuse: results beside a message are dropped",
        "actors/session/resolutions.py:check_ask_arguments",
        "message is not None and resolves",
        "False",
        (_CHOICE,),
    ),
    Mutation(
        "misuse: settings beside results are dropped",
        "actors/session/resolutions.py:check_ask_arguments",
        "resolves and ...",
        "... and False",
        (_CHOICE,),
    ),
    Mutation(
        "misuse: a call may have both a result and a decision",
        "actors/session/resolutions.py:resolutions",
        "ended.keys() & decided.keys()",
        "ended.keys() - ended.keys()",
        (_CHOICE,),
    ),
    Mutation(
        "misuse: a user message may contain any block",
        "actors/session/user_input.py:_pack_message",
        "_to_block(number, block)",
        "block",
        (MISUSE,),
    ),
    Mutation(
        "misuse: the reason of a denial is not reported",
        "actors/scheduler/calls.py:CallExecution._run_to_end",
        'denial(self.call, answer if isinstance(answer, str) else "")',
        "denial(self.call)",
        (
            "tests/scheduler/test_tools_at_the_edge.py::test_a_string_returned_by_an_approval_hook_denies_and_is_shown_as_the_reason",
        ),
    ),
    Mutation(
        "misuse: an unsupported option of a subagent is found only when its model calls it",
        "actors/runtime/subagents.py:subagent",
        """
        for each in offered:
            toolset_source(each)
        """,
        "",
        ("tests/subagents/test_subagents.py::test_invalid_options_are_rejected_when_a_subagent_is_defined",),
    ),
    Mutation(
        "misuse: a pool routes to the cheapest member although prices are unknown",
        "actors/provider/resolver.py:check_prices",
        'pool.policy == "cheapest" and ...',
        "False and ...",
        ("tests/provider/test_pools.py::test_a_pool_with_the_policy_cheapest_requires_prices",),
    ),
    Mutation(
        "misuse: a deeply nested body crashes a strict server",
        "actors/strict/rules/reading.py:_parse_latest",
        "(ValueError, RecursionError)",
        "ValueError",
        ("tests/strict/test_server.py",),
    ),
    Mutation(
        "output: the caller does not learn the errors of an answer",
        "actors/session/inflight.py:AskInFlight.read_answer",
        "Checked(*..., describe_errors(made))",
        "Checked(*...)",
        (
            "tests/session/test_output.py::test_the_error_of_an_invalid_output_names_missing_fields_but_no_values",
        ),
    ),
    Mutation(
        "misuse: a handoff may have any target",
        "actors/tools/tool.py:Handover.__post_init__",
        "not isinstance(self.target, str)",
        "False",
        (
            "tests/subagents/test_handoff.py::test_invalid_options_of_a_handoff_are_rejected_at_its_definition",
        ),
    ),
    Mutation(
        "misuse: a simulation with an unknown mode checks less",
        "actors/testing/simulation/__init__.py:checked_plan",
        "mode not in get_args(Mode)",
        "False",
        (
            "tests/testing/test_stress.py::test_invalid_simulation_arguments_are_refused_with_a_one_line_error",
        ),
    ),
    Mutation(
        "misuse: a load may have any figures",
        "actors/testing/stressing.py:Load.__post_init__",
        "fits((value := getattr(self, name)))",
        "((value := getattr(self, name)), fits)",
        ("tests/testing/test_stress.py::test_invalid_stress_arguments_are_refused_with_a_one_line_error",),
    ),
    Mutation(
        "misuse: any object is accepted as tracing",
        "actors/telemetry/callbacks.py:RuntimeTracing.__init__",
        'not hasattr(tracer, "_start_ask_spans")',
        "False",
        (MISUSE,),
    ),
    Mutation(
        "misuse: an async rule is accepted and denies every call",
        "actors/tools/tool.py:option_errors",
        "is_async(rule)",
        "False",
        ("tests/tools/test_tool_options.py",),
    ),
    Mutation(
        "misuse: a model may pass arguments bound by a partial",
        "actors/tools/signature.py:_named_parameters",
        "{key: each for key, each in parameters.items() if key not in function.keywords}",
        "{key: each for key, each in parameters.items()}",
        ("tests/tools/test_tools.py",),
    ),
    Mutation(
        "package: a name of another public module has no hint",
        "actors/__init__.py:_submodule_hint",
        "name in import_module(f'{__name__}.{module}').__all__",
        "False",
        ("tests/project/test_public.py",),
    ),
    Mutation(
        "package: the package lists only the names used so far",
        "actors/__init__.py:__dir__",
        "[*__all__, '__version__', *(name for name in globals() if name.startswith('__'))]",
        "[*globals()]",
        ("tests/project/test_public.py",),
    ),
    Mutation(
        "pickles: a table is pickled with its versions",
        "actors/core/data/persistent.py:PersistentMap.__reduce__",
        "(PersistentMap, (self._as_dict(),))",
        "object.__reduce_ex__(self, 2)",
        ("tests/project/test_pickling.py",),
    ),
    Mutation(
        "pickles: a history is unpickled through its constructor",
        "actors/core/history/history.py:History",
        "reduce_fields",
        "Struct.__reduce__",
        ("tests/project/test_pickling.py",),
    ),
    Mutation(
        "pickles: a ledger is unpickled through its constructor",
        "actors/core/ledger.py:Ledger",
        "reduce_fields",
        "Struct.__reduce__",
        ("tests/project/test_pickling.py",),
    ),
)
