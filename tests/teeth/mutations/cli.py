"""Mutations of the command line: approvals, signals, the chat."""

from tests.teeth.mutations.mutation import Mutation

_APPROVALS = "actors/cli/conversation.py"
_KEYBOARD = "actors/cli/terminal.py"
_RUN = "actors/cli/run.py"
APPROVALS = "tests/cli/test_approvals.py"
RUN = "tests/cli/test_run.py"
_LOOP = "actors/cli/chat/__init__.py"
_TERMINAL = "actors/cli/terminal.py"
HELP = "tests/cli/test_asked_for_help.py"
MODES = "tests/cli/test_modes.py"
CHAT = "tests/cli/test_chat_terminal.py"
KEPT = "tests/cli/test_sessions.py"
WAITS = "test_the_run_command_refuses_a_waiting_conversation_that_the_chat_command_can_resolve"
LINE = "tests/cli/test_command_line.py"
STREAMS = "tests/cli/test_streams_of_the_process.py"

MUTATIONS = (
    Mutation(
        "command line: conversations are stored under a relative path",
        "actors/cli/journal.py:default_journal_path",
        "data.is_absolute()",
        'data != Path("")',
        ("tests/cli/test_sessions.py::test_the_default_file_of_a_user_has_an_absolute_path",),
    ),
    Mutation(
        "command line: the runtime's log is shown without --debug",
        "actors/cli/__init__.py:_run",
        "logging_to_stderr(debug=options.debug)",
        "logging_to_stderr(debug=True)",
        (f"{KEPT}::test_an_unwritable_journal_is_reported_once",),
    ),
    Mutation(
        "sessions: an empty tenant deletes all sessions without one",
        "actors/cli/sessions.py:_run_delete",
        'options.tenant == ""',
        "options.tenant is False",
        (f"{KEPT}::test_an_option_of_another_action_is_an_error_and_nothing_is_deleted",),
    ),
    Mutation(
        "command line: an unknown argument is ignored",
        "actors/cli/parser.py:parse",
        "if unknown: ...",
        "",
        (f"{KEPT}::test_an_option_of_another_action_is_an_error_and_nothing_is_deleted",),
    ),
    Mutation(
        "sessions: a mistyped journal is created",
        "actors/cli/journal.py:_configured_storage",
        'create or "://" in name or Path(name).exists()',
        'name or "://" in name or Path(name).exists()',
        ("tests/cli/test_sessions.py::test_listing_the_sessions_of_a_mistyped_journal_path_creates_no_file",),
    ),
    Mutation(
        "sessions: continuing a conversation creates a missing journal",
        "actors/cli/conversation.py:open_conversation",
        "conversation_storage(options, config, create=not continues)",
        "conversation_storage(options, config, create=True)",
        ("tests/cli/test_sessions.py::test_continuing_in_a_mistyped_journal_creates_no_file",),
    ),
    Mutation(
        "sessions: the original settings of a stored conversation are silently kept",
        "actors/cli/conversation.py:_is_continuation",
        "options.max_cost is not None",
        "options.max_cost is ...",
        ("tests/cli/test_sessions.py::test_options_that_a_stored_conversation_cannot_change_are_errors",),
    ),
    Mutation(
        "run: a conversation that waits for a result counts as answered",
        f"{_RUN}:_run_ask",
        "return Exit.NOT_APPROVED",
        "return Exit.OK",
        (f"{KEPT}::{WAITS}",),
    ),
    Mutation(
        "chat: a pending call is presented only after the user's next message",
        f"{_LOOP}:Chat.__init__",
        "self._session.pending",
        "not self._session",
        (f"{KEPT}::{WAITS}",),
    ),
    Mutation(
        "chat: an approval left open by a program is denied whatever the answer",
        f"{_LOOP}:Chat._resolve_call",
        '"allow" if ... else "deny"',
        '"deny" if ... else "deny"',
        (f"{CHAT}::test_a_chat_asks_for_an_approval_that_a_program_left_open",),
    ),
    Mutation(
        "chat: after an answer, a pipe is read before its turn has ended",
        "actors/cli/chat/view.py:Questions.answer",
        "self._close_question()",
        "pass",
        (f"{KEPT}::test_a_chat_completes_its_turn_after_the_end_of_input",),
    ),
    Mutation(
        "approvals: any answer but no is a yes",
        f"{_APPROVALS}:parse_answer",
        'word in ("y", "yes")',
        'word.startswith("y")',
        (f"{APPROVALS}::test_any_answer_except_a_clear_yes_denies_the_call[yep-no]",),
    ),
    Mutation(
        "approvals: without a user to ask, a call is approved",
        f"{_APPROVALS}:Approvals.__call__",
        "return False",
        "return True",
        (f"{APPROVALS}::test_a_call_is_denied_and_counted_if_no_person_can_be_asked",),
    ),
    Mutation(
        "approvals: two questions are asked at once",
        f"{_APPROVALS}:Approvals._ask_person",
        "self._lock",
        "anyio.Lock()",
        (f"{APPROVALS}::test_approvals_are_requested_one_at_a_time",),
    ),
    Mutation(
        "keyboard: the last line is lost without its newline",
        f"{_KEYBOARD}:Keyboard.read_line",
        "newline or line",
        "newline",
        (f"{APPROVALS}::test_a_last_line_without_newline_is_read",),
    ),
    Mutation(
        "run: a turn that continued without its call counts as complete",
        f"{_RUN}:_run_ask",
        "Exit.NOT_APPROVED if code is Exit.OK and approve.denied else code",
        "code",
        (f"{RUN}::test_a_tool_that_changes_something_needs_approval",),
    ),
    Mutation(
        "run: every signal counts as an interrupt",
        f"{_RUN}:_Ask._watch_signals",
        "self._cancelled_by = EXIT_BY_SIGNAL[await anext(signals)]",
        "await anext(signals)",
        (f"{RUN}::test_a_signal_cancels_the_turn_and_has_its_exit_code",),
    ),
    Mutation(
        "chat: a second interrupt waits for the tools too",
        f"{_LOOP}:Chat._exit_now",
        "os._exit(code)",
        "self._state.leave(code)",
        (f"{CHAT}::test_ctrl_c_cancels_the_turn_and_then_ends_the_chat[while leaving-trio]",),
    ),
    Mutation(
        "chat: output follows the prompt of a line typed ahead",
        f"{_TERMINAL}:Terminal.show_prompt",
        "not self._keyboard.has_input",
        "self._keyboard",
        (f"{CHAT}::test_a_message_may_have_more_than_one_line",),
    ),
    Mutation(
        "chat: a termination signal is ignored",
        f"{_LOOP}:Chat._watch_signals",
        "self._state.leave(code)",
        "pass",
        (f"{CHAT}::test_sighup_alone_ends_the_chat",),
    ),
    Mutation(
        "chat: an interrupt stops the chat instead of the turn",
        f"{_LOOP}:Chat._handle_interrupt",
        "self._idle.is_set()",
        "True",
        (f"{CHAT}::test_the_conversation_continues_after_a_cancelled_turn",),
    ),
    Mutation(
        "chat: an answer to a question is sent as the next message",
        f"{_LOOP}:Chat._handle_line",
        "self._questions.answer(words)",
        "words == self._questions",
        (f"{CHAT}::test_an_approval_and_a_deferred_switch_can_share_a_turn",),
    ),
    Mutation(
        "command line: a reader that leaves during an answer causes an error",
        "actors/cli/__init__.py:_is_broken_pipe",
        "all(map(_is_broken_pipe, error.exceptions))",
        "False",
        (f"{STREAMS}::test_a_reader_that_closes_the_pipe_during_an_answer_is_not_an_error",),
    ),
    Mutation(
        "command line: colours are used although disabled",
        "actors/cli/screen.py:screen",
        'color == "auto" and target.isatty() and (not plain)',
        "target.isatty() and (not plain)",
        (
            "tests/cli/test_screen.py::test_colour_is_printed_only_on_terminals_and_the_variable_NO_COLOR_turns_it_off",
        ),
    ),
    Mutation(
        "command line: a pipe receives the model's text unescaped",
        f"{_RUN}:AnswerPrinter._write",
        "sys.stdout.write(escape_controls(text))",
        "sys.stdout.write(text)",
        (f"{STREAMS}::test_pipes_receive_no_control_characters[line0]",),
    ),
    Mutation(
        "command line: the tools of a module are searched for as a file",
        "actors/cli/targets.py:load_tools",
        'name.endswith(".py") or ":" not in name or Path(name).is_file()',
        "bool(name)",
        (f"{RUN}::test_tools_can_be_named_in_a_module",),
    ),
    Mutation(
        "run: a turn at its round limit counts as complete",
        f"{_RUN}:_Ask._exit_code",
        "Exit.LIMIT",
        "Exit.OK",
        (f"{RUN}::test_a_run_stopped_by_the_round_limit_ends_with_text_and_exit_code_7",),
    ),
    Mutation(
        "chat: an external result is always a text",
        "actors/cli/chat/view.py:Questions.result",
        'parse(line.encode("utf-8", "replace"))',
        "line",
        (f"{CHAT}::test_external_results_are_requested_one_after_the_other",),
    ),
    Mutation(
        "command line: help has no examples",
        "actors/cli/parser.py:parser_for",
        "command.examples = module.EXAMPLES",
        "",
        (f"{LINE}::test_each_help_text_ends_with_examples_that_the_command_line_accepts",),
    ),
    Mutation(
        "doctor: a fault does not affect the exit code",
        "actors/cli/doctor.py:run",
        'result.sign == "FAIL"',
        'result.sign == "--"',
        (f"{HELP}::test_a_configuration_error_gives_one_line_and_its_exit_code",),
    ),
    Mutation(
        "doctor: the network is used without --network",
        "actors/cli/doctor.py:_backend_results",
        "may_use_network",
        "True",
        (f"{HELP}::test_the_doctor_command_contacts_a_server_only_with_the_network_option",),
    ),
    Mutation(
        "explain: a refusal is not read",
        "actors/cli/explain.py:_refusal_lines",
        "classify(400, {}, text, *...)",
        'classify(400, {}, b"", *...)',
        (f"{HELP}::test_the_explain_command_classifies_a_refusal_and_names_its_rule",),
    ),
    Mutation(
        "modes: the command line's system prompt is lost",
        "actors/cli/conversation.py:_open_new_session",
        "options.system",
        "None",
        (f"{MODES}::test_every_mode_logs_the_same_events_for_one_turn",),
    ),
    Mutation(
        "chat: notes are coloured wherever they go",
        f"{_TERMINAL}:Terminal.print",
        "self._screen.style(text, style)",
        r'f"\x1b[2m{text}\x1b[0m"',
        (f"{CHAT}::test_a_chat_only_appends_lines_to_the_terminal",),
    ),
    Mutation(
        "cli: piped input is not read if a prompt is given",
        "actors/cli/run.py:_read_prompt",
        """
        if not _has_input(sys.stdin.fileno()):
            return before
        """,
        "return before",
        ("tests/cli/test_run.py::test_the_prompt_may_come_from_standard_input",),
    ),
)
