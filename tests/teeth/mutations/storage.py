"""Mutations of SQLite journals: writers, durability of commits, damage, deletions."""

from tests.teeth.mutations.mutation import Mutation

SQLITE, CONNECTION = "actors/journal/storage/sqlite/storage.py", "actors/journal/storage/sqlite/connection.py"
ROWS, WAL, FAULTS = (
    "actors/journal/storage/rows.py",
    "actors/journal/storage/sqlite/wal.py",
    "actors/journal/storage/sqlite/faults.py",
)
HOSTS, FORMAT = (f"actors/journal/storage/sqlite/{name}.py" for name in ("locks", "format"))
STORAGES, FILES, DAMAGE = (
    "tests/journal/test_storages.py",
    "tests/journal/test_sqlite.py",
    "tests/journal/test_damage.py",
)
SHARED = "tests/journal/test_shared_storages.py"
CHECKPOINTS, FSCK = "tests/journal/test_checkpoints.py", "tests/journal/test_fsck.py"
CHECK, RECORDS, SALVAGE = (
    f"actors/journal/storage/sqlite/{name}.py" for name in ("check", "records", "salvage")
)

_DIED = "tests/journal/test_sqlite.py::test_opening_a_file_removes_deleted_data_that_remained_after_a_crash"

_DISKS = "tests/journal/test_unavailable.py"

_LOG = "tests/journal/test_write_ahead_log.py"

MUTATIONS = (
    Mutation(
        "sqlite: a name that cannot be encoded counts as damage",
        "actors/journal/storage/sqlite/faults.py:translate_errors",
        "UnicodeDecodeError",
        "UnicodeError",
        ("tests/journal/test_damage.py::test_a_name_that_cannot_be_encoded_is_not_reported_as_damage",),
    ),
    Mutation(
        "journal: a caller may look up an id that no storage accepts",
        "actors/runtime/validation.py:checked_session_id",
        "not _is_storable_string(value)",
        "False",
        ("tests/runtime/test_misuse.py::test_invalid_arguments_of_journal_methods_are_rejected",),
    ),
    Mutation(
        "journal: a caller may look up a tenant that no storage accepts",
        "actors/runtime/validation.py:checked_tenant_filter",
        "None if tenant is None else checked_tenant(tenant)",
        "tenant",
        ("tests/runtime/test_misuse.py::test_invalid_arguments_of_journal_methods_are_rejected",),
    ),
    Mutation(
        "storage: a read-only copy is checked only if an index can be created beside it",
        f"{CHECK}:JournalFile._address",
        "f\"{self._path.as_uri()}?{('immutable=1' if is_fixed else 'mode=ro')}\"",
        "f\"{self._path.as_uri()}?{'mode=ro'}\"",
        (f"{FSCK}::test_a_read_only_copy_can_be_checked",),
    ),
    Mutation(
        "storage: a frame half written during fsck is damage",
        f"{WAL}:check_wal_in_use",
        "flaw == before",
        "flaw is not None",
        (f"{_LOG}::test_a_torn_frame_is_damage_only_if_it_stays_torn",),
    ),
    Mutation(
        "storage: fsck reads a write-ahead log only once",
        f"{WAL}:check_wal_in_use",
        "before = flaw",
        "return",
        (f"{_LOG}::test_a_torn_frame_is_damage_only_if_it_stays_torn",),
    ),
    Mutation(
        "storage: frames of an uncommitted crashed transaction are summed",
        f"{WAL}:_Wal.lost_frame",
        "len(commits) > 1 and place <= commits[-2]",
        "place < self._frames",
        (f"{_LOG}::test_only_frame_headers_of_an_uncommitted_transaction_are_read",),
    ),
    Mutation(
        "storage: a file upgraded by a newer program is written",
        f"{CONNECTION}:Connections._transaction",
        "check_version(connection, str(self.path))",
        "",
        (f"{FILES}::test_an_open_file_upgraded_by_another_process_is_refused",),
    ),
    Mutation(
        "storage: a file upgraded by a newer program is read",
        f"{CONNECTION}:Connections.read_snapshot",
        "check_version(self._reader, str(self.path))",
        "",
        (f"{FILES}::test_an_open_file_upgraded_by_another_process_is_refused",),
    ),
    Mutation(
        "storage: a deleted index of the write-ahead log is not noticed",
        f"{CONNECTION}:Connections._check_files_in_place",
        "(*..., self._index)",
        "(*...,)",
        (_DISKS,),
    ),
    Mutation(
        "storage: a log is read through an index that other processes do not share",
        f"{CONNECTION}:Connections.read_snapshot",
        "self._check_index()",
        "",
        (f"{_DISKS}::test_a_wal_with_a_replaced_index_is_no_longer_read",),
    ),
    Mutation(
        "storage: a symlink to a file is a separate journal",
        f"{SQLITE}:_resolve_path",
        "Path(os.path.realpath(path))",
        "Path(path).absolute()",
        ("tests/journal/test_sqlite.py::test_a_symlinked_file_is_one_journal_with_one_live_writer",),
    ),
    Mutation(
        "storage: a journal is readable for all users",
        "actors/journal/storage/sqlite/connection.py:Connections._open_writer",
        "os.open(*..., 384)",
        "os.open(*..., 420)",
        ("tests/journal/test_sqlite.py::test_a_new_file_is_private_and_an_existing_file_keeps_its_mode",),
    ),
    Mutation(
        "storage: deleted data left by a crash stays in the write-ahead log",
        "actors/journal/storage/sqlite/connection.py:Connections._open_writer",
        "self.deleted = True",
        "pass",
        (_DIED,),
    ),
    Mutation(
        "storage: dead hosts are never dropped",
        "actors/journal/storage/sqlite/locks.py:Hosts.become_host",
        "self._remove_dead_hosts(connection)",
        "",
        (_DIED,),
    ),
    Mutation(
        "storage: live hosts are dropped too",
        "actors/journal/storage/sqlite/locks.py:Hosts._remove_dead_hosts",
        "not is_held((file := self._lock_path(name)))",
        "is_held((file := self._lock_path(name))) or True",
        (_DIED,),
    ),
    Mutation(
        "storage: a write-ahead log grows with every commit",
        f"{CONNECTION}:Connections.transaction",
        "self._extend_wal()",
        "",
        (CHECKPOINTS,),
    ),
    Mutation(
        "storage: a write-ahead log is preallocated without a limit",
        f"{CONNECTION}:Connections._extend_wal",
        "max(0, min(size, MAX_EXTENDED - size))",
        "max(0, size)",
        (CHECKPOINTS,),
    ),
    Mutation(
        "storage: a claim returns the previous writer's number",
        f"{SQLITE}:SqliteStorage.claim",
        "self._set_owner(*..., row.fence + 1, *...)",
        "self._set_owner(*..., row.fence, *...)",
        (STORAGES,),
    ),
    Mutation(
        "storage: an older number may write too",
        "actors/journal/storage/__init__.py:Entry.refusal",
        "fence != self.fence",
        "fence < self.fence",
        (STORAGES,),
    ),
    Mutation(
        "storage: the numbers of a deleted session start again",
        f"{SQLITE}:SqliteStorage._create_row",
        "SqliteRow(*..., highest_removed_fence(connection, str(self.path)))",
        "SqliteRow(*...)",
        (STORAGES,),
    ),
    Mutation(
        "storage: a session of another host may be claimed",
        f"{SQLITE}:SqliteStorage.claim",
        "self._check_not_leased(connection, row)",
        "",
        (SHARED,),
    ),
    Mutation(
        "storage: an expired lease continues",
        f"{HOSTS}:Hosts.find",
        "(seconds := row[0] - monotonic()) <= 0",
        "(seconds := max(row[0] - monotonic(), 0.1)) <= 0",
        (SHARED,),
    ),
    Mutation(
        "storage: rows are cached although another process wrote",
        f"{CONNECTION}:Connections._transaction",
        "self.changed = True",
        "self.changed = False",
        (FILES, SHARED),
    ),
    Mutation(
        "storage: another process's write is forgotten with the next transaction",
        f"{CONNECTION}:Connections._transaction",
        """
        if seen != self._data_version:
            ...
        """,
        """
        self.changed = False
        if seen != self._data_version:
            ...
        """,
        (FILES, SHARED),
    ),
    Mutation(
        "storage: durability power syncs like durability process",
        f"{CONNECTION}:Connections._configure_connection",
        '"FULL" if self._durability == "power" else "NORMAL"',
        '"NORMAL" if self._durability == "power" else "NORMAL"',
        (FILES,),
    ),
    Mutation(
        "storage: a power loss loses acknowledged writes at durability power",
        f"{CONNECTION}:Connections._configure_connection",
        '"FULL" if self._durability == "power" else "NORMAL"',
        '"NORMAL" if self._durability == "power" else "NORMAL"',
        ("tests/commands/test_power_loss.py",),
    ),
    Mutation(
        "storage: a transaction torn by a power loss is damage",
        f"{WAL}:_Wal.lost_frame",
        "self._count_commits_from(place) >= 2",
        "self._count_commits_from(place) >= 1",
        (f"{_LOG}::test_a_torn_end_followed_by_remains_of_a_failed_write_is_not_damage",),
    ),
    Mutation(
        "storage: fsck reads a file of a newer version",
        f"{CHECK}:JournalFile._start_snapshot",
        "check_version(self._connection, str(self._path))",
        "pass",
        (f"{FILES}::test_a_file_of_a_newer_version_is_refused_and_unchanged",),
    ),
    Mutation(
        "storage: the tables may change without a new version",
        f"{FORMAT}:SCHEMA",
        'SCHEMA = "...CREATE INDEX session_used ON session (bucket)..."',
        'SCHEMA = "...CREATE INDEX session_used ON session (bucket, used)..."',
        (f"{FILES}::test_a_new_file_matches_the_golden_schema",),
    ),
    Mutation(
        "storage: a field may be added without a new version",
        "actors/core/log/events.py:Closed.reason",
        'reason: str = ""',
        """
        reason: str = ""
        more: str = ""
        """,
        (FILES,),
    ),
    Mutation(
        "storage: a checksum does not cover the record's place",
        f"{ROWS}:record_checksum",
        "crc32(stored, crc32(_PLACE.pack(key, number)))",
        "crc32(stored)",
        (DAMAGE,),
    ),
    Mutation(
        "storage: a record is read despite a wrong checksum",
        f"{ROWS}:SessionRow.is_intact_record",
        "stored is not None and record_checksum(self.key, number, stored) == checksum",
        "stored is not None",
        (f"{DAMAGE}::test_damage_is_reported_with_its_location",),
    ),
    Mutation(
        "storage: a lost end counts as the end",
        f"{ROWS}:SessionRow.verified_records",
        """
        if expected <= until:
            raise self.record_damage(location, expected, f"record {expected} is missing")
        """,
        "",
        ("tests/journal/test_postgres.py::test_damage_is_reported_with_its_location",),
    ),
    Mutation(
        "storage: an entry is read despite a wrong checksum",
        f"{RECORDS}:decode_row",
        "not is_intact",
        "is_intact is None",
        (DAMAGE,),
    ),
    Mutation(
        "storage: a session without a row is unknown",
        f"{SQLITE}:SqliteStorage._find_row",
        "self._check_no_row_is_missing(connection)",
        "",
        (f"{DAMAGE}::test_damage_is_reported_with_its_location",),
    ),
    Mutation(
        "storage: a blob is read despite a wrong hash",
        f"{ROWS}:SessionRow._restore_blobs",
        "sha256(content).digest() != digest",
        "not content",
        (f"{DAMAGE}::test_damage_is_reported_with_its_location",),
    ),
    Mutation(
        "storage: invalid text is reported with its content",
        f"{FAULTS}:translate_errors",
        'f"{path}: a stored string is corrupt; restore a copy, or see `actors sessions fsck`"',
        'f"{path}: {error}; restore a copy, or see `actors sessions fsck`"',
        (f"{DAMAGE}::test_errors_about_damage_contain_no_journal_content",),
    ),
    Mutation(
        "storage: complete transactions after a damaged one are dropped silently",
        f"{WAL}:_Wal.lost_frame",
        "place + 1 if self._count_commits_from(place) >= 2 else None",
        "None",
        (f"{DAMAGE}::test_a_flipped_bit_in_the_wal_loses_at_most_the_last_transaction",),
    ),
    Mutation(
        "storage: a torn end is damage",
        f"{WAL}:_Wal.lost_frame",
        "self._count_commits_from(place) >= 2",
        "self._frame_header(place) is not None",
        (f"{_LOG}::test_a_torn_end_followed_by_remains_of_a_failed_write_is_not_damage",),
    ),
    Mutation(
        "storage: a failed checkpoint is reported as a failed write",
        f"{CONNECTION}:Connections._checkpoint",
        """
        with suppress(sqlite3.Error):
            ...
        """,
        """
        if True:
            ...
        """,
        (CHECKPOINTS,),
    ),
    Mutation(
        "storage: no checkpoint ever runs",
        f"{CONNECTION}:Connections._checkpoint",
        "not self.deleted and self.pages < CHECKPOINT",
        "not self.deleted",
        (CHECKPOINTS,),
    ),
    Mutation(
        "storage: deleted data stays in the write-ahead log after a reader blocked it",
        f"{CONNECTION}:Connections._checkpoint",
        "(self.deleted and bool(busy), 0)",
        "(False, 0)",
        (CHECKPOINTS,),
    ),
    Mutation(
        "storage: deleted data stays in the write-ahead log",
        f"{SQLITE}:SqliteStorage._remove_row",
        "self._connections.deleted = True",
        "",
        (CHECKPOINTS,),
    ),
    Mutation(
        "storage: a blob is deleted with its first log",
        f"{SQLITE}:SqliteStorage._delete_session",
        'connection.execute("...AND uses <= 0", (digest,))',
        'connection.execute("...AND uses <= 1", (digest,))',
        (FILES,),
    ),
    Mutation(
        "storage: a large value is stored in each record",
        f"{SQLITE}:SqliteStorage.append",
        "record if len(record) < LARGE else self._extract_blobs(connection, row, record)",
        "record",
        (FILES,),
    ),
    Mutation(
        "storage: fsck trusts the directory about the end of a log",
        f"{SALVAGE}:ReadableLogs.__iter__",
        "self._highest_number(key)",
        "3",
        (FSCK,),
    ),
    Mutation(
        "storage: fsck does not count the users of blobs",
        f"{CHECK}:JournalFile._check_blobs",
        "not users or users != count",
        "False",
        (FSCK,),
    ),
    Mutation(
        "storage: fsck does not notice a missing session",
        f"{CHECK}:JournalFile._check_logs",
        "entries != (kept := expected_session_count(self._connection, str(self._path)))",
        "entries > (kept := expected_session_count(self._connection, str(self._path)))",
        (FSCK,),
    ),
    Mutation(
        "storage: fsck sees writes during its check",
        f"{CHECK}:JournalFile._start_snapshot",
        'self._connection.execute("SELECT count(*) FROM meta").fetchone()',
        "",
        (FSCK,),
    ),
    Mutation(
        "storage: a record of another session is accepted along the links",
        f"{RECORDS}:_READ",
        '"""...record.session = :key AND record.number..."""',
        '"""...record.number..."""',
        (DAMAGE,),
    ),
    Mutation(
        "storage: the links continue from a record of another log",
        f"{RECORDS}:_LOG",
        '_LOG = "...record.session = :key AND record.number = log.number AND log.number..."',
        '_LOG = "...log.number..."',
        (DAMAGE, FSCK),
    ),
    Mutation(
        "storage: links that end too early count as the beginning of the log",
        f"{RECORDS}:read_records",
        "raise row.record_damage(location, number, f'record {number} is missing')",
        "after = number",
        (f"{DAMAGE}::test_damage_is_reported_with_its_location",),
    ),
    Mutation(
        "storage: a log is read past its beginning",
        f"{RECORDS}:_LOG",
        '_LOG = "...:place WHERE :last > :after..."',
        '_LOG = "...:place..."',
        (FILES,),
    ),
    Mutation(
        "storage: a damaged log is deleted only as far as its links lead",
        f"{RECORDS}:delete_records",
        'connection.execute("DELETE FROM record WHERE session = ?", (row.key,))',
        "assert row.last",
        (f"{DAMAGE}::test_deleting_a_damaged_log_affects_no_other_log",),
    ),
    Mutation(
        "storage: a damaged log is deleted together with another's record",
        f"{RECORDS}:_DELETE",
        '"""...log) AND session = :key"""',
        '"""...log)"""',
        (f"{DAMAGE}::test_deleting_a_damaged_log_affects_no_other_log",),
    ),
    Mutation(
        "storage: a record has no link to its predecessor",
        f"{RECORDS}:SqliteRow.append",
        "(place, before, *...)",
        "(place, place - 1, *...)",
        (FILES,),
    ),
    Mutation(
        "storage: a place is assigned twice",
        f"{RECORDS}:last_place",
        "place or 0",
        "(place or 1) - 1",
        (STORAGES,),
    ),
    Mutation(
        "storage: a log is appended to despite an unexpected end",
        f"{SQLITE}:SqliteStorage._write_records",
        "changed != len(rows)",
        "changed < 0",
        (FILES,),
    ),
    Mutation(
        "storage: a session's row is read again between two entries of one append",
        f"{SQLITE}:SqliteStorage.append",
        "rows.get(entry.session) or self._cached_row(connection, entry.session)",
        "self._cached_row(connection, entry.session)",
        (FILES,),
    ),
    Mutation(
        "storage: fsck does not notice unlinked records",
        f"{CHECK}:JournalFile._check_extra_records",
        '""") ON session = key WHERE found > last"""',
        '""") ON session = key WHERE found > last + 1"""',
        (FSCK,),
    ),
    Mutation(
        "storage: an older frame's commit counts for a lost transaction",
        f"{WAL}:_Wal._count_commits_from",
        "bool(frame[0]) and (follows or self._is_in_one_sector(each))",
        "bool(frame[0])",
        (
            "tests/journal/test_write_ahead_log.py::test_a_frame_header_across_two_sectors_does_not_prove_a_commit",
        ),
    ),
)
