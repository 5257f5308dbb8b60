"""Mutations of the directory of hosts, and of sessions that move between hosts."""

from tests.teeth.mutations.mutation import Mutation

DEPARTURE = "actors/runtime/departure.py"
MOVER = "actors/runtime/mover.py"
MOVEMENT = "tests/runtime/test_movement.py"
SHARED = "tests/journal/test_shared_storages.py"
SQLITE = "actors/journal/storage/sqlite/storage.py:SqliteStorage"
SQLITE_HOSTS = "actors/journal/storage/sqlite/locks.py:Hosts"
STATEMENTS = "actors/journal/storage/postgres/statements.py"
ASSIGNED = f"{SHARED}::test_an_assigned_session_belongs_to_its_new_host_at_once"
STAYS = f"{SHARED}::test_a_session_cannot_be_assigned_to_a_host_that_is_not_serving"
WRITER = f"{SHARED}::test_a_session_is_assigned_only_by_its_writer"
DRAINS = f"{SHARED}::test_a_host_that_released_all_sessions_drains_and_may_write_until_the_next_claim"
READINESS = "tests/runtime/test_readiness.py"
REPLACED = f"{SHARED}::test_a_new_host_at_the_same_address_takes_over_without_waiting"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "movement: a session is assigned without a new fencing number",
        f"{SQLITE}.assign",
        "self._set_owner(connection, row, fence + 1, host)",
        "self._set_owner(connection, row, fence, host)",
        (ASSIGNED,),
    ),
    Mutation(
        "movement: a session in a file is assigned with an old fencing number",
        f"{SQLITE}.assign",
        "row is None or not row.last or row.fence != fence",
        "row is None or not row.last",
        (WRITER,),
    ),
    Mutation(
        "movement: a session in a file is assigned to a host that drains",
        f"{SQLITE_HOSTS}.is_serving",
        "host is not None and host.state == 'serving'",
        "host is not None",
        (STAYS, DRAINS),
    ),
    Mutation(
        "movement: a session in Postgres is assigned to any host",
        f"{STATEMENTS}:ASSIGN",
        "f\"... AND state = 'serving' AND ...{_IS_OURS}...\"",
        'f"... AND ...{_IS_OURS}..."',
        (STAYS, DRAINS),
    ),
    Mutation(
        "movement: a host in a file releases its sessions and still accepts others",
        f"{SQLITE}.release_all",
        "self._hosts.status = replace(self._hosts.status, state='draining')",
        "",
        (DRAINS,),
    ),
    Mutation(
        "movement: an earlier host at the same address keeps its lease in a file",
        f"{SQLITE_HOSTS}.become_host",
        "connection.execute('DELETE FROM host WHERE address = ?', (address,))",
        "pass",
        (REPLACED,),
    ),
    Mutation(
        "movement: an earlier host at the same address keeps its lease in Postgres",
        "actors/journal/storage/postgres/hosts.py:remove_earlier_hosts",
        "connection.execute(sql.REPLACE_HOST, (status.address, name))",
        "pass",
        (REPLACED,),
    ),
    Mutation(
        "movement: a list of hosts in a file always counts sessions",
        "actors/journal/storage/sqlite/locks.py:Hosts.live",
        "_COUNTED if count_sessions else _ROW",
        "_COUNTED",
        (f"{SHARED}::test_hosts_are_listed_without_a_count_of_their_sessions",),
    ),
    Mutation(
        "movement: a list of hosts in Postgres always counts sessions",
        "actors/journal/storage/postgres/hosts.py:live_hosts",
        "sql.COUNTED_HOSTS if count_sessions else sql.HOSTS",
        "sql.COUNTED_HOSTS",
        (f"{SHARED}::test_hosts_are_listed_without_a_count_of_their_sessions",),
    ),
    Mutation(
        "movement: queued asks run before the session departs",
        f"{DEPARTURE}:_end_turn",
        "lifecycle.drop_queued(error)",
        "",
        (f"{MOVEMENT}::test_a_hand_over_waits_for_the_running_turn_and_later_asks_name_the_new_host",),
    ),
    Mutation(
        "movement: a departing session accepts asks",
        "actors/runtime/delivery.py:SessionCaller._send",
        "await self._lifecycle.wait_departed()",
        "",
        (f"{MOVEMENT}::test_a_hand_over_waits_for_the_running_turn_and_later_asks_name_the_new_host",),
    ),
    Mutation(
        "movement: a departing session cancels its turn at once",
        f"{DEPARTURE}:_end_turn",
        "lifecycle.is_asking and (left := until - anyio.current_time()) > 0",
        "lifecycle.is_asking and (left := until - anyio.current_time()) > 100",
        (
            f"{MOVEMENT}::test_releasing_a_session_ends_its_turn_first_and_then_its_handle_raises_session_closed",
        ),
    ),
    Mutation(
        "movement: the handle of a moved session does not name the new host",
        f"{DEPARTURE}:_end",
        "lifecycle.end(error)",
        "lifecycle.end()",
        (f"{MOVEMENT}::test_a_session_without_a_turn_is_handed_over_without_waiting",),
    ),
    Mutation(
        "movement: a runtime that is left keeps its sessions until its toolsets are closed",
        "actors/runtime/session_host.py:SessionHost.release_all",
        "await self.journal.ask(ReleaseAll())",
        "pass",
        (f"{MOVEMENT}::test_an_exiting_runtime_releases_its_sessions_before_it_closes_its_toolsets",),
    ),
    Mutation(
        "movement: a runtime is ready while it drains",
        "actors/core/stats/stats.py:RuntimeStats.is_ready",
        "self.journal.is_ready and not self.is_draining",
        "self.journal.is_ready",
        (READINESS,),
    ),
    Mutation(
        "movement: a runtime is ready after its drain has begun",
        "actors/runtime/session_host.py:SessionHost.is_draining",
        "self.state == 'draining' or not self.running",
        "not self.running",
        (f"{READINESS}::test_a_runtime_is_not_ready_during_and_after_a_drain",),
    ),
    Mutation(
        "movement: a runtime is ready while it is left",
        "actors/runtime/session_host.py:SessionHost.is_draining",
        "self.state == 'draining' or not self.running",
        "self.state == 'draining'",
        (f"{READINESS}::test_a_runtime_is_not_ready_while_it_exits",),
    ),
    Mutation(
        "movement: a draining host opens sessions",
        "actors/runtime/opening.py:SessionOpener._ensure_room",
        "await self._host.check_serving(existing)",
        "pass",
        (f"{MOVEMENT}::test_a_drain_moves_every_session_to_the_hosts_with_the_fewest_sessions",),
    ),
    Mutation(
        "movement: a draining host does not name the owner of a session that has left",
        "actors/runtime/session_host.py:SessionHost.check_serving",
        "await self.journal.ask(CheckOwner(existing))",
        "pass",
        (f"{MOVEMENT}::test_a_draining_host_names_the_owner_of_a_session_that_has_left",),
    ),
    Mutation(
        "movement: the owner of a session in a file is not checked",
        "actors/journal/storage/sqlite/storage.py:SqliteStorage.check_owner",
        "self._check_not_leased(connection, row)",
        "pass",
        (f"{SHARED}::test_the_owner_of_a_session_is_checked_without_a_claim",),
    ),
    Mutation(
        "movement: the owner of a session in Postgres is not checked",
        "actors/journal/storage/postgres/storage.py:PostgresStorage.check_owner",
        "self._read(...)",
        "pass",
        (f"{SHARED}::test_the_owner_of_a_session_is_checked_without_a_claim",),
    ),
    Mutation(
        "movement: a drain prefers the fullest host",
        f"{MOVER}:OtherHosts.choose",
        "min(*..., **...)",
        "max(*..., **...)",
        (f"{MOVEMENT}::test_a_drain_moves_every_session_to_the_hosts_with_the_fewest_sessions",),
    ),
    Mutation(
        "movement: a drain moves all sessions at once",
        f"{MOVER}:SessionMover._keep_rate",
        "self._due += self._pause",
        "pass",
        (f"{MOVEMENT}::test_a_drain_moves_at_most_the_given_number_of_sessions_per_second",),
    ),
    Mutation(
        "movement: a tool drains its own runtime, and waits for itself",
        f"{MOVER}:SessionMover.drain",
        "_check_not_in_call(host)",
        "pass",
        (f"{MOVEMENT}::test_a_tool_cannot_drain_the_runtime_that_waits_for_it",),
    ),
    Mutation(
        "movement: a drain moves subagents while their parents use them",
        f"{MOVER}:_first_to_move",
        "parents or [*registry.open]",
        "[*registry.open]",
        (f"{MOVEMENT}::test_a_drain_moves_subagents_after_the_turn_that_uses_them",),
    ),
    Mutation(
        "movement: a drain leaves sessions that are being opened",
        f"{MOVER}:SessionMover.drain",
        "await registry.wait_settled()",
        "pass",
        (f"{MOVEMENT}::test_a_drain_waits_for_sessions_that_are_being_opened",),
    ),
    Mutation(
        "movement: a drained host keeps the sessions that nobody has claimed there",
        f"{MOVER}:SessionMover.drain",
        "await self.move_unopened(page)",
        "pass",
        (f"{MOVEMENT}::test_a_drain_also_moves_received_sessions_that_the_host_has_not_opened_yet",),
    ),
    Mutation(
        "movement: a rebalance moves busy sessions",
        f"{MOVER}:_is_idle",
        "lifecycle.busy or lifecycle.runs_tools or ...",
        "...",
        (f"{MOVEMENT}::test_a_rebalance_makes_the_load_even_and_moves_no_busy_session",),
    ),
    Mutation(
        "movement: a rebalance moves sessions although the load is even",
        f"{MOVER}:SessionMover.rebalance",
        "abs(each.sessions - mean) > TOLERANCE * mean",
        "True",
        (f"{MOVEMENT}::test_a_rebalance_moves_nothing_while_the_load_is_nearly_even",),
    ),
    Mutation(
        "movement: a rebalance moves more sessions than allowed",
        f"{MOVER}:SessionMover.rebalance",
        "min(own.sessions - ceil(mean), int(limit))",
        "own.sessions - ceil(mean)",
        (f"{MOVEMENT}::test_a_rebalance_moves_at_most_the_given_number_of_sessions",),
    ),
)
