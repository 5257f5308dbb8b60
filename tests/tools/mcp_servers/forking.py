"""The reference MCP server, loaded once and forked for each child process, because loading the SDK takes a second.

A test starts `command()` as its program. That small program passes its streams, arguments and environment to the
forking process, and lives as long as its server, so that its parent sees a single process. A server is killed when
its program ends.
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
    """Return the command line of the reference server, without arguments."""
    path, _ = _forking_process()
    return [sys.executable, "-I", "-S", "-c", PROGRAM, path]


@cache
def _forking_process() -> tuple[str, "subprocess.Popen[bytes]"]:
    """Return the socket path of the forking process, and the process, which ends when its input ends."""
    path = os.path.join(mkdtemp(dir=os.environ["XDG_DATA_HOME"]), "socket")
    line = [sys.executable, "-W", "ignore", "-m", "tests.tools.mcp_servers.forking", path]
    process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"listens\n"
    return path, process


def _serve(program: socket.socket) -> None:
    """Serve a program with its streams, arguments and environment."""
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
    os._exit(0)  # a normal exit would take half a second, for which every test would wait


def _keep(program: socket.socket) -> None:
    """Fork the server, and end it and its program together."""
    alive, held = os.pipe()
    server = os.fork()
    if server == 0:
        os.close(alive)
        _serve(program)
    os.close(held)
    # The program writes only to the server, so this socket becomes readable only when the program is gone.
    gone = select.poll()
    gone.register(program, select.POLLRDHUP)
    gone.register(alive, select.POLLHUP)
    gone.poll()
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)
    os._exit(0)


def main() -> None:
    """Load the SDK, then fork for each program."""
    import uvicorn  # noqa: F401  the HTTP server

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
