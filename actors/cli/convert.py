"""`actors convert`: convert a transcript to a valid request body of another dialect."""

import argparse
import sys

from actors.cli.arguments import add_dialect_option
from actors.cli.exits import Exit
from actors.cli.parser import Parser
from actors.cli.screen import print_notice
from actors.cli.transcript_file import Conversion, read_transcript
from actors.core.dialects.profiles import dialect

EXAMPLES = (("actors convert body.json --to anthropic > valid.json", "standard error lists the changes"),)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("file", help="a request body or a list of messages, as JSON; `-` is standard input")
    add_dialect_option(parser, "--from", dest="source", help="dialect of the file; detected by default")
    add_dialect_option(parser, "--to", required=True, help="dialect of the result")
    parser.add_argument(
        "--model", metavar="NAME", help="model of the result; the model in the file by default"
    )


def run(options: argparse.Namespace) -> Exit:
    """Print the converted request body on standard output, and every change on standard error."""
    _, value = read_transcript(options.file)
    made = Conversion(value, options.source, dialect(options.to), options.model)
    for line in (*made.repairs, *made.additions, *made.losses):
        print_notice(line)
    sys.stdout.write(made.request.body.decode() + "\n")
    return Exit.OK
