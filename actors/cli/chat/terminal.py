"""A chat on a terminal: whole lines scroll, and below them stand what is not finished and the input line.

prompt_toolkit draws and reads in a thread with an event loop of its own, whatever loop the session runs on; lines go to
it and come from it by that loop's and ours' own doors. The terminal's settings are taken down before and put back
at the end, however it comes.
"""

import asyncio
import os
import sys
import termios
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from io import StringIO, TextIOBase
from threading import Event, Thread
from types import TracebackType
from typing import Self

import anyio
import anyio.from_thread
import anyio.lowlevel
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.console import Console
from rich.table import Table

from actors.cli.chat.face import Control, Given, Live, Row
from actors.cli.chat.loop import CONTINUED, PROMPT
from actors.cli.screen import ColorOption, Screen, Style, safe, screen, wrapped

_BUSY = "~ "
"""Stands in front of the person's line while a turn runs."""
_LIVE_ROWS = 8
_INPUT_ROWS = 10
_GIVEN = 64
"""Lines that the person may be ahead of the chat."""
_SECONDS = 5.0
"""What the drawing thread gets to end; then the terminal is put back without it."""
_AT_ONCE = 1.0
_BACK = "\x1b[0m\x1b[?25h\x1b[?2004l"
"""No style, a cursor, pasting as typing."""
_DRAWN: dict[Style, str] = {
    "bold": "bold",
    "dim": "ansibrightblack",
    "red": "ansired",
    "green": "ansigreen",
    "yellow": "ansiyellow",
    "cyan": "ansicyan",
}


class TerminalFace:
    """Takes the terminal of standard input and output for the time of its block.

    Args:
        words: What the input line completes.
        color: What `--color` says.
    """

    is_live = True

    def __init__(self, words: Iterable[str], color: ColorOption = "auto") -> None:
        self._descriptor = sys.stdin.fileno()
        self._saved = termios.tcgetattr(self._descriptor)
        self._screen: Screen = screen(color=color)
        self._redirected = ExitStack()
        self._drawing = _Drawing(self._give, words, self._screen)
        self._thread = Thread(target=self._drawing.run, name="actors chat", daemon=True)

    async def __aenter__(self) -> Self:
        self._token = anyio.lowlevel.current_token()
        self._sender, self._receiver = anyio.create_memory_object_stream[Given](_GIVEN)
        printed = _Printed(self.put)
        self._redirected.enter_context(
            redirect_stdout(printed)
        )  # what a tool prints does not break the picture
        self._redirected.enter_context(redirect_stderr(printed))
        self._thread.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sender.close()
        self._receiver.close()
        self._drawing.end()
        try:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._thread.join, _SECONDS)
        finally:
            self._redirected.close()
            self.restore()
        if self._drawing.error is not None and error is None:
            raise self._drawing.error

    async def next(self) -> Given:
        """Return what the person gives next."""
        try:
            return await self._receiver.receive()
        except anyio.EndOfStream:
            return Control.END

    def put(self, text: str, style: Style | None = None) -> None:
        """Let whole lines scroll."""
        whole = self._wrapped(text).split("\n")
        styled = (self._screen.styled(line, style) if style else line for line in whole)
        self._drawing.put("".join(f"{line}\n" for line in styled))

    def table(self, columns: Row, rows: Sequence[Row]) -> None:
        """Show rows in columns."""
        made = Table(*columns, box=None, header_style="dim", pad_edge=True)
        for row in rows:
            made.add_row(*row)
        drawn = StringIO()
        Console(
            file=drawn,
            width=self._screen.width,
            force_terminal=self._screen.color,
            markup=False,
            highlight=False,
        ).print(made)
        self._drawing.put(drawn.getvalue())

    def live(self, lines: Live) -> None:
        """Draw what is not finished above the input line."""
        self._drawing.live([(self._wrapped(text), style) for text, style in lines])

    def _wrapped(self, text: str) -> str:
        """Return a text with no word split at the edge of the terminal."""
        try:
            width = os.get_terminal_size(self._descriptor).columns or self._screen.width
        except OSError:
            width = self._screen.width
        return "\n".join(part for line in text.split("\n") for part in wrapped(line, width))

    def prompt(self, text: str) -> None:
        """Draw what stands in front of the person's line."""
        self._drawing.prompt(text or _BUSY)

    def restore(self) -> None:
        """Put the terminal's settings back, as far as there still is one, once nothing draws any more."""
        self._drawing.end()
        if self._thread.is_alive():
            self._drawing.ended.wait(_AT_ONCE)
        with suppress(OSError, termios.error):
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._saved)
        with suppress(OSError):
            os.write(sys.__stdout__.fileno() if sys.__stdout__ else 1, _BACK.encode())

    def _give(self, given: Given) -> None:
        """Hand over what the person gave: called in the drawing thread."""
        with suppress(anyio.WouldBlock, anyio.ClosedResourceError, anyio.BrokenResourceError, RuntimeError):
            anyio.from_thread.run_sync(self._sender.send_nowait, given, token=self._token)


class _Drawing:
    """The thread's side: an application of prompt_toolkit. What others call is handed to its loop."""

    def __init__(self, give: Callable[[Given], None], words: Iterable[str], look: Screen) -> None:
        self._give = give
        self._look = look
        self._lines: deque[str] = deque()  # one thread appends, the other takes: no line is lost or overtaken
        self._live: StyleAndTextTuples = []
        self._prompt = PROMPT
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready, self._over = Event(), False
        self.ended = Event()
        """Set once nothing is drawn any more; the thread may still wait for our loop, to hand over the end."""
        self.error: BaseException | None = None
        """What broke it, unless that was the end of the terminal."""
        self._buffer = Buffer(
            multiline=True, completer=WordCompleter([*words], sentence=True), accept_handler=self._accept
        )

    def run(self) -> None:
        """Draw and read until `end`."""
        try:
            asyncio.run(self._run())
        except (OSError, EOFError, termios.error):
            pass  # the terminal is gone
        except BaseException as error:
            self.error = error
        self._ready.set()
        self.ended.set()
        self._give(Control.END if self._over else Control.GONE)

    async def _run(self) -> None:
        self._app = self._application()
        self._loop = asyncio.get_running_loop()
        if self._over:
            return
        try:
            await self._app.run_async(pre_run=self._begun, handle_sigint=False)
        finally:
            self._loop = None  # what is said of a failure to draw would be drawn, too

    def _begun(self) -> None:
        self._ready.set()
        self._flush()

    def end(self) -> None:
        """Stop drawing; the last lines are written before."""
        self._over = True
        self._ready.wait(_SECONDS)
        self._call(self._exit)

    def _exit(self) -> None:
        self._flush()
        self._live, self._prompt = [], ""
        if self._app.is_running and not (self._app.future is None or self._app.future.done()):
            self._app.exit()

    def put(self, text: str) -> None:
        """Write lines above the picture."""
        self._lines.append(text)
        self._call(self._flush)

    def live(self, lines: Live) -> None:
        """Draw these above the input line."""
        drawn: StyleAndTextTuples = []
        for number, (text, style) in enumerate(lines):
            drawn.append((_DRAWN[style] if style else "", text if number == 0 else f"\n{text}"))
        self._live = drawn
        self._call(self._invalidate)

    def prompt(self, text: str) -> None:
        """Draw this in front of the input."""
        self._prompt = text
        self._call(self._invalidate)

    def _call(self, function: Callable[[], None]) -> None:
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it has just ended
                loop.call_soon_threadsafe(function)

    def _invalidate(self) -> None:
        self._app.invalidate()

    def _flush(self) -> None:
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        if lines:
            with suppress(OSError):  # the terminal is gone, which its reader is told
                self._app.renderer.erase()
                self._app.output.write_raw("".join(lines))
                self._app.output.flush()
            self._app.invalidate()

    def _accept(self, buffer: Buffer) -> bool:
        text = buffer.text
        self._lines.extend(f"{line}\n" for line in f"{self._prompt}{safe(text)}".split("\n"))
        self._flush()
        self._give(text)
        return False

    def _application(self) -> Application[None]:
        live = Window(
            FormattedTextControl(lambda: self._live),
            wrap_lines=True,
            dont_extend_height=True,
            height=Dimension(max=_LIVE_ROWS),
        )
        typed = Window(
            BufferControl(self._buffer, input_processors=[BeforeInput(lambda: self._prompt)]),
            wrap_lines=True,
            dont_extend_height=True,
            height=Dimension(min=1, max=_INPUT_ROWS),
        )
        body = HSplit([ConditionalContainer(live, Condition(lambda: bool(self._live))), typed])
        output = Vt100_Output.from_pty(sys.__stdout__ or sys.stdout, term=os.environ.get("TERM"))
        output.enable_cpr = False  # its answer would come as typed text where nobody gives it
        return Application(
            Layout(body, focused_element=typed),
            key_bindings=self._keys(),
            color_depth=None if self._look.color else ColorDepth.DEPTH_1_BIT,
            input=create_input(sys.stdin),
            output=output,
        )

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter")
        def _(event: KeyPressEvent) -> None:
            self._buffer.validate_and_handle()

        @keys.add("escape", "enter")
        @keys.add("c-j")
        def _(event: KeyPressEvent) -> None:
            self._buffer.insert_text("\n")

        @keys.add("c-c")
        def _(event: KeyPressEvent) -> None:
            is_idle = self._prompt in (PROMPT, CONTINUED)  # else a turn is cancelled, and what is typed stays
            self._give(Control.CLEARED if self._buffer.text and is_idle else Control.INTERRUPT)
            if is_idle:
                self._buffer.reset()

        @keys.add("c-d")
        def _(event: KeyPressEvent) -> None:
            if self._buffer.text:
                self._buffer.delete()
            else:
                self._give(Control.END)

        return keys


class _Printed(TextIOBase):
    """Takes what others print while the terminal is drawn on, line by line."""

    def __init__(self, put: Callable[[str, Style | None], None]) -> None:
        self._put = put
        self._rest = ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._put(safe(line), "dim")
        return len(text)
