"""A journal host in its own process, which executes one command per line until it is killed.

    python -m tests.runtime.takeover_child LEASE < commands   (the journal's path or address is the first line)

| command | action and output |
| --- | --- |
| `claim SESSION` | claim the session: `claimed FENCE LAST`, or `elsewhere` |
| `append SESSION FENCE NAME` | append an event: its number, `fenced`, or `unavailable` |
| `renew_lease` | renew the lease: `beaten` |
| `load SESSION FENCE` | append events `0`, `1`, ... without end; print the number of each once it is durable |
| `race SEED COUNT SESSION...` | claim, append and release at random: `claimed` or `wrote`, SESSION FENCE; `done` |
| `fork` | fork a worker that lives for at most five minutes: `forked PID` |
| `close` | close the journal |
| `inherit PATH` | use, close and reopen it in a forked child: each method with its error; `ended` |
| `write SESSION FENCE` | append an event in a transaction that does not end: `writing` |
"""

import os
import random
import signal
import sys
from contextlib import suppress
from itertools import count

from actors.errors import Fenced, JournalError, JournalUnavailable, SessionLeased
from actors.journal.storage import Entry, Storage
from actors.journal.storage.named import create_storage
from tests.journal.storages import to


def say(*words: object) -> None:
    """Print an answer."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def claim(storage: Storage, session: str) -> None:
    try:
        claimed = storage.claim(session)
    except SessionLeased:
        say("elsewhere")
    else:
        say("claimed", claimed.fence, claimed.last)


def append(storage: Storage, session: str, fence: str, name: str) -> None:
    try:
        (outcome,) = storage.append([Entry(session, int(fence), (to(name),))])
    except JournalUnavailable:
        say("unavailable")
    else:
        say("fenced" if isinstance(outcome, Fenced) else outcome)


def load(storage: Storage, session: str, fence: str) -> None:
    for number in count():
        append(storage, session, fence, str(number))


def race(storage: Storage, seed: str, claims: str, *sessions: str) -> None:
    """Claim, append and release at random, also with numbers that were released or are owned by others by now."""
    chance, fences = random.Random(seed), dict[str, int]()
    for _ in range(int(claims)):
        session = chance.choice(sessions)
        with suppress(SessionLeased):
            fences[session] = storage.claim(session).fence
            say("claimed", session, fences[session])
        entries = [Entry(each, fence, (to(str(fence)),)) for each, fence in fences.items()]
        for entry, outcome in zip(entries, storage.append(entries), strict=True):
            if not isinstance(outcome, Fenced):
                say("wrote", entry.session, entry.fence)
        for each in chance.sample(sorted(fences), len(fences) // 2):
            storage.release(each, fences[each])
    say("done")


def fork() -> None:
    """Fork a worker that outlives this host, as a pool of processes does."""
    if worker := os.fork():
        say("forked", worker)
        return
    for stream in (0, 1):  # a reader of this host's output does not wait for its worker
        os.close(stream)
    signal.alarm(300)
    while True:
        signal.pause()


def inherit(storage: Storage, path: str) -> None:
    """Use the journal in a forked child, which ends as a script does."""
    if child := os.fork():
        os.waitpid(child, 0)
        say("ended")
        return
    signal.alarm(60)
    anew = create_storage(path)
    for method in (storage.open, storage.sessions, storage.vacuum, anew.open):
        try:
            method()
        except JournalError as error:
            say(method.__name__, error)
        else:
            say(method.__name__)
    storage.close()
    anew.close()
    say("closed")
    sys.exit()


def write(storage: Storage, session: str, fence: str) -> None:
    """Append in a transaction, and do not end it."""
    with storage.transaction():
        storage.append([Entry(session, int(fence), (to("lost"),))])
        say("writing")
        sys.stdin.readline()


def main(lease: float) -> None:
    storage = create_storage(sys.stdin.readline().strip(), lease=lease)
    storage.open()
    say("open")
    for line in sys.stdin:
        match line.split():
            case ["claim", session]:
                claim(storage, session)
            case ["append", session, fence, name]:
                append(storage, session, fence, name)
            case ["beat"]:
                storage.renew_lease()
                say("beaten")
            case ["load", session, fence]:
                load(storage, session, fence)
            case ["race", *words]:
                race(storage, *words)
            case ["fork"]:
                fork()
            case ["close"]:
                storage.close()
            case ["inherit", path]:
                inherit(storage, path)
            case ["write", session, fence]:
                write(storage, session, fence)
            case unknown:
                raise AssertionError(unknown)
    storage.close()


if __name__ == "__main__":
    main(float(sys.argv[1]))
