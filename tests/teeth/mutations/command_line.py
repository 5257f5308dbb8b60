"""Mutations of the whole command line: help, completion, documentation, logs."""

from tests.teeth.mutations.mutation import Mutation

LINE = "tests/cli/test_command_line.py"

MUTATIONS = (
    Mutation(
        "command line: help imports the modules of all commands",
        "actors/cli/parser.py:parser_for",
        "if name != chosen: ...",
        "",
        (f"{LINE}::test_top_level_help_imports_no_command_and_no_dependency",),
    ),
    Mutation(
        "command line: an option is missing in the reference",
        "actors/cli/models.py:add_arguments",
        "add_config_option(parser)",
        'add_config_option(parser)\nparser.add_argument("--verbose", action="store_true")',
        (f"{LINE}::test_every_command_and_every_option_is_documented",),
    ),
    Mutation(
        "command line: an action has no test",
        "actors/cli/sessions.py:add_arguments",
        'add("vacuum", "remove remaining data of deleted sessions", _vacuum_journal)',
        'add("vacuum", "remove remaining data of deleted sessions", _vacuum_journal)\n'
        'add("shrink", "shrink", _vacuum_journal)',
        (f"{LINE}::test_every_command_and_every_action_is_covered_by_a_test",),
    ),
    Mutation(
        "command line: an example names an unknown option",
        "actors/cli/doctor.py:EXAMPLES",
        '"actors doctor --config actors.toml --network"',
        '"actors doctor --config actors.toml --net"',
        (f"{LINE}::test_each_help_text_ends_with_examples_that_the_command_line_accepts",),
    ),
)
