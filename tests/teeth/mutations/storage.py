"""Journals: who may write, what a commit outlives, what damage does, what is erased."""

from tests.teeth.mutations.mutation import Mutation

SQLITE, CONNECTION = "actors/storage/sqlite/storage.py", "actors/storage/sqlite/connection.py"
ROWS, WAL, FAULTS = (
    "actors/storage/rows.py",
    "actors/storage/sqlite/wal.py",
    "actors/storage/sqlite/faults.py",
)
HOSTS, FORMAT = (f"actors/storage/sqlite/{name}.py" for name in ("hosts", "format"))
STORAGES, FILES, DAMAGE = "tests/test_storages.py", "tests/test_sqlite.py", "tests/test_damage.py"
CHECKPOINTS, FSCK = "tests/test_checkpoints.py", "tests/test_fsck.py"
CHECK = "actors/storage/sqlite/check.py"

_DIED = (
    "tests/test_sqlite.py::"
    "test_what_was_erased_and_left_in_the_log_by_a_crash_is_gone_when_the_file_is_opened"
)

MUTATIONS = (
    Mutation(
        "storage: what a crash left in the write-ahead log stays there",
        "actors/storage/sqlite/connection.py",
        "            self.erased = True\n        connection = self._connected()",
        "            pass\n        connection = self._connected()",
        (_DIED,),
    ),
    Mutation(
        "storage: hosts whose process is dead are never dropped",
        "actors/storage/sqlite/hosts.py",
        "            self._drop_dead(connection)\n",
        "",
        (_DIED,),
    ),
    Mutation(
        "storage: hosts that live are dropped too",
        "actors/storage/sqlite/hosts.py",
        "            if not is_held(file := self._file(name)):",
        "            if is_held(file := self._file(name)) or True:",
        (_DIED,),
    ),
    Mutation(
        "storage: a write-ahead log grows with every commit",
        CONNECTION,
        "            self._lengthen()\n",
        "",
        (CHECKPOINTS,),
    ),
    Mutation(
        "storage: a write-ahead log is made longer without end",
        CONNECTION,
        "min(size, LENGTHENED - size)",
        "size",
        (CHECKPOINTS,),
    ),
    Mutation(
        "storage: a claim gives the number that the writer before had",
        SQLITE,
        "self._write(connection, row, row.fence + 1, self._hosts.name)",
        "self._write(connection, row, row.fence, self._hosts.name)",
        (STORAGES,),
    ),
    Mutation(
        "storage: an older number may write too",
        SQLITE,
        "if row is None or row.fence != entry.fence:",
        "if row is None:",
        (STORAGES,),
    ),
    Mutation(
        "storage: an erased session's number begins anew",
        SQLITE,
        "erased = SessionRow(row.name, row.key, row.fence + 1)",
        "erased = SessionRow(row.name, row.key)",
        (STORAGES,),
    ),
    Mutation(
        "storage: a session of another host may be claimed",
        SQLITE,
        "            self._check_free(connection, row)\n            self._hosts.begin(connection)",
        "            self._hosts.begin(connection)",
        (FILES,),
    ),
    Mutation(
        "storage: a lease that is over lasts on",
        HOSTS,
        "return seconds if seconds > 0 and is_held(self._file(name)) else 0.0",
        "return max(seconds, 0.1) if is_held(self._file(name)) else 0.0",
        (FILES,),
    ),
    Mutation(
        "storage: rows are remembered though another process wrote",
        CONNECTION,
        "self.changed |= seen != self._seen",
        "self.changed = False",
        (FILES,),
    ),
    Mutation(
        "storage: that another process wrote is forgotten with the next transaction",
        CONNECTION,
        "self.changed |= seen != self._seen",
        "self.changed = seen != self._seen",
        (FILES,),
    ),
    Mutation(
        "storage: level power syncs like level process",
        CONNECTION,
        'synchronous = "FULL" if',
        'synchronous = "NORMAL" if',
        (FILES,),
    ),
    Mutation(
        "storage: a loss of power loses what level power told",
        CONNECTION,
        'synchronous = "FULL" if',
        'synchronous = "NORMAL" if',
        ("tests/test_power_loss.py",),
    ),
    Mutation(
        "storage: a transaction that a loss of power tore is taken for damage",
        WAL,
        "if self._commits_from(place) >= 2 else None",
        "if self._commits_from(place) >= 1 else None",
        ("tests/test_power_loss.py",),
    ),
    Mutation(
        "storage: an older file is opened as it is",
        FORMAT,
        "            MIGRATIONS[older](connection)",
        "            assert older >= 0",
        (FILES,),
    ),
    Mutation(
        "storage: an older record is read as it is",
        "actors/core/upgrades.py",
        "        event = STEPS[step](event)\n",
        "        assert STEPS[step]\n",
        ("tests/core/test_upgrades.py",),
    ),
    Mutation(
        "storage: a field may be added and no version with it",
        "actors/core/events.py",
        '    why: str = ""\n\n\nCompletion: TypeAlias',
        '    why: str = ""\n    more: str = ""\n\n\nCompletion: TypeAlias',
        (FILES,),
    ),
    Mutation(
        "storage: a checksum does not cover the record's place",
        ROWS,
        "return crc32(stored, crc32(_PLACE.pack(key, number)))",
        "return crc32(stored)",
        (DAMAGE,),
    ),
    Mutation(
        "storage: a record is read whatever its checksum",
        ROWS,
        "if stored is None or record_checksum(self.key, number, stored) != checksum:",
        "if stored is None:",
        (f"{DAMAGE}::test_what_is_damaged_is_refused_with_its_place",),
    ),
    Mutation(
        "storage: a lost end is taken for the end",
        ROWS,
        '        if expected <= self.last:\n            raise self.damaged(where, expected, "is missing")\n',
        "",
        (f"{DAMAGE}::test_what_is_damaged_is_refused_with_its_place",),
    ),
    Mutation(
        "storage: an entry is read whatever its checksum",
        ROWS,
        "if not is_whole:",
        "if is_whole is None:",
        (DAMAGE,),
    ),
    Mutation(
        "storage: a session whose row is missing is unknown",
        SQLITE,
        "            self._search(connection)\n            return None",
        "            return None",
        (f"{DAMAGE}::test_what_is_damaged_is_refused_with_its_place",),
    ),
    Mutation(
        "storage: a blob is read whatever its hash",
        ROWS,
        "if sha256(content).digest() != digest:",
        "if not content:",
        (f"{DAMAGE}::test_what_is_damaged_is_refused_with_its_place",),
    ),
    Mutation(
        "storage: a text that is none is told with what it held",
        FAULTS,
        'f"{path}: a text has changed; restore a copy, or see `actors fsck`"',
        'f"{path}: {error}; restore a copy, or see `actors fsck`"',
        (f"{DAMAGE}::test_what_a_damaged_journal_held_is_in_no_error",),
    ),
    Mutation(
        "storage: whole transactions behind a damaged one are dropped in silence",
        WAL,
        "return place + 1 if self._commits_from(place) >= 2 else None",
        "return None",
        (f"{DAMAGE}::test_a_flipped_bit_of_the_write_ahead_log_costs_the_last_transaction_at_most",),
    ),
    Mutation(
        "storage: a torn end is taken for damage",
        WAL,
        "return place + 1 if self._commits_from(place) >= 2 else None",
        "return place + 1 if self._frame(place) is not None else None",
        (DAMAGE,),
    ),
    Mutation(
        "storage: a checkpoint that fails is told as a write that failed",
        CONNECTION,
        '        with suppress(sqlite3.Error):\n            connection.execute("PRAGMA busy',
        '        if True:\n            connection.execute("PRAGMA busy',
        (CHECKPOINTS,),
    ),
    Mutation(
        "storage: nothing checkpoints",
        CONNECTION,
        "if not self.erased and self.pages < CHECKPOINT:",
        "if not self.erased:",
        (CHECKPOINTS,),
    ),
    Mutation(
        "storage: what was erased stays in the write-ahead log where a reader was in the way",
        CONNECTION,
        "self.erased and bool(busy), 0",
        "False, 0",
        (CHECKPOINTS,),
    ),
    Mutation(
        "storage: what was erased stays in the write-ahead log",
        SQLITE,
        "            self._connections.erased = True\n",
        "",
        (CHECKPOINTS,),
    ),
    Mutation(
        "storage: a blob goes with the first log that goes",
        SQLITE,
        "DELETE FROM blob_count WHERE hash = ? AND uses <= 0",
        "DELETE FROM blob_count WHERE hash = ? AND uses <= 1",
        (FILES,),
    ),
    Mutation(
        "storage: a large value is kept in each record",
        SQLITE,
        "record if len(record) < LARGE else self._slimmed(connection, row, record)",
        "record",
        (FILES,),
    ),
    Mutation(
        "storage: fsck believes the directory of where a log ends",
        CHECK,
        "last = self._last(key)",
        "last = 3",
        (FSCK,),
    ),
    Mutation(
        "storage: fsck takes a record as it stands",
        CHECK,
        "records = replace(row, last=last).proven(found, 0, self._blob, JournalPlace(str(self._path)))",
        "records = [stored for _, _, stored in found]",
        (FSCK,),
    ),
    Mutation(
        "storage: fsck counts no blobs' users",
        CHECK,
        "elif not users or users != count:",
        "elif False:",
        (FSCK,),
    ),
    Mutation(
        "storage: fsck does not miss a session",
        CHECK,
        "if entries != (made",
        "if entries > (made",
        (FSCK,),
    ),
    Mutation(
        "storage: fsck sees what is written while it looks",
        CHECK,
        '        self._connection.execute("SELECT count(*) FROM meta").fetchone()  # from here on one moment is seen\n',
        "",
        (FSCK,),
    ),
)
