"""The reference server loaded once, and forked for each child process: the SDK and its models take it a second to load.

A test names `command()` as the program. That program is small: it hands its streams, arguments and environment to the
process that forks, and lives as long as the server that it has for them, so that whoever started it sees one program.
A server whose program is gone is killed.
"""

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from functools import cache
from tempfile import mkdtemp

PROGRAM = """
import json, os, socket, sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    socket.send_fds(server, [b"\\n"], [0, 1, 2])
    server.sendall(json.dumps([sys.argv[1:], dict(os.environ)]).encode() + b"\\n")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    server.recv(1)
"""


def command() -> list[str]:
    """Return the command line of the reference server, for arguments to follow."""
    path, _ = _forking()
    return [sys.executable, "-I", "-S", "-c", PROGRAM, path]


@cache
def _forking() -> tuple[str, "subprocess.Popen[bytes]"]:
    """Return where the process listens that forks for each server; it ends when its input does, with this one."""
    path = os.path.join(mkdtemp(dir=os.environ["XDG_DATA_HOME"]), "socket")
    line = [sys.executable, "-W", "ignore", "-m", "tests.tools.mcp_servers.forking", path]
    process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"listens\n"
    return path, process


def _serve(program: socket.socket) -> None:
    """Be the server for a program, with its streams, arguments and environment."""
    _, streams, _, _ = socket.recv_fds(program, 1, 3)
    with program.makefile() as said:
        arguments, environ = json.loads(said.readline())
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    program.close()
    sys.argv[:] = arguments
    os.environ.clear()
    os.environ.update(environ)
    from tests.tools.mcp_servers import reference

    reference.main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # to take down all that is loaded would take half a second, for which every test would wait


def _keep(program: socket.socket) -> None:
    """Fork the server, and let neither it nor its program outlive the other."""
    alive, held = os.pipe()
    server = os.fork()
    if server == 0:
        os.close(alive)
        _serve(program)
    os.close(held)
    # What the program says goes to the server alone: there is something to read here only when it is gone.
    gone = select.poll()
    gone.register(program, select.POLLRDHUP)
    gone.register(alive, select.POLLHUP)
    gone.poll()
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)
    os._exit(0)


def main() -> None:
    """Load, then fork for each program."""
    import uvicorn  # noqa: F401  what serves over HTTP

    from tests.tools.mcp_servers import reference  # noqa: F401

    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen()
        sys.stdout.write("listens\n")
        sys.stdout.flush()
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            program, _ = listener.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listener.close()
                _keep(program)
            program.close()


if __name__ == "__main__":
    main()
