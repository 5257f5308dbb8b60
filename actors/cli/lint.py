"""`actors lint`: check a transcript against the rules of a provider."""

import argparse

from actors.adapters.importing import recognise_dialect
from actors.cli.arguments import add_dialect_option
from actors.cli.exits import Exit
from actors.cli.parser import Parser
from actors.cli.screen import escape_controls, print_notice
from actors.cli.transcript_file import MODEL, Conversion, Value, read_transcript
from actors.core.check import check, container
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import dialect
from actors.errors import TranscriptError

EXAMPLES = (
    ("actors lint body.json --for anthropic", "list the rules that the transcript breaks"),
    (
        "actors lint body.json --from openai --for anthropic",
        "list the repairs before it can be sent to Anthropic",
    ),
)
_ANY_TOOL = b'{"toolSpec":{"name":"any","inputSchema":{"json":{"type":"object"}}}}'


def add_arguments(parser: Parser) -> None:
    parser.add_argument("file", help="a request body or a list of messages, as JSON; `-` is standard input")
    add_dialect_option(parser, "--for", dest="to", required=True, help="the dialect whose rules apply")
    add_dialect_option(
        parser,
        "--from",
        dest="source",
        help="dialect of the file, if it differs from --for; checks the converted transcript",
    )


def run(options: argparse.Namespace) -> Exit:
    """Print a line for each broken rule or necessary repair. The exit code is 1 if there are any."""
    rules = dialect(options.to)
    text, value = read_transcript(options.file)
    if options.source is None:
        lines = [str(fault) for fault in check(_request_body(text, value, rules), rules)]
        if lines and (other := _other_dialect(value, rules)):
            print_notice(f"{other}; use --from to check the converted transcript")
    else:
        made = Conversion(value, options.source, rules)
        lines = [*made.repairs, *(str(fault) for fault in check(made.request.body, rules))]
    for line in lines:
        print(escape_controls(line))
    print_notice(
        f"{options.file} for {rules.name}: {f'{len(lines)} violations' if lines else 'no violations'}"
    )
    return Exit.FAILED if lines else Exit.OK


def _other_dialect(value: Value, rules: Dialect) -> str | None:
    """Return a message if the transcript clearly has another dialect than `rules`; otherwise None."""
    try:
        recognise_dialect(value, rules)
    except TranscriptError as error:
        return str(error)
    return None


def _request_body(text: bytes, value: Value, rules: Dialect) -> bytes:
    """Return a request body. If the file is only a list of messages, add the fields that a body must have."""
    if isinstance(value, dict):
        return text
    key, model = container(rules).encode(), MODEL.encode()
    match rules.family:
        case "converse":
            return b'{"toolConfig":{"tools":[%b]},"%b":%b}' % (_ANY_TOOL, key, text)
        case "gemini":
            return b'{"%b":%b}' % (key, text)
        case "anthropic":
            return b'{"model":"%b","max_tokens":1,"%b":%b}' % (model, key, text)
        case "openai_chat" | "responses":
            return b'{"model":"%b","%b":%b}' % (model, key, text)
