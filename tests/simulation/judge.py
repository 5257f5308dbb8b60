"""Compare the sessions of a simulation with their logs at the end of the run."""

import anyio

from actors.core.data.record import replace
from actors.core.log.codec import decode_event, encode_event
from actors.core.session.lanes import rebuild
from actors.renderer.renderer_actor import AdoptedLanes
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.session.commands import GetState
from actors.testing.simulation.world import World
from tests.simulation.witness import Witness


async def compare(world: World, runtime: Runtime, session: Session) -> None:
    """Compare a session with the fold of its log: state, ledger, and each lane byte for byte."""
    records = [encode_event(event) for event in world.journal.read(session.id)]
    state, lanes = rebuild([decode_event(record) for record in records], runtime._backends.rules)
    live = await session._session.ask(GetState())
    ledger = await session.ledger()
    if ledger != state.ledger or live.history != state.history:
        world.problems.add("a session is the fold of its log", f"{session.id}: history or ledger")
    if replace(live, ledger=ledger, history=state.history) != replace(state, ledger=ledger):
        world.problems.add("a session is the fold of its log", f"{session.id}: state")
    for binding, lane in (await session._refs.renderer.ask(AdoptedLanes())).items():
        if b"".join(lane._segments) != b"".join(lanes.of(binding)._segments):
            world.problems.add("a lane is rebuilt to the same bytes", f"{session.id}: {binding.backend}")
    held = session._lifecycle.memory_use
    if (held.messages, held.calls, held.lanes) != (state.size, state.ledger.size, lanes.size):
        world.problems.add("the memory use of a session is counted", f"{session.id}: {held}")


async def quiescent(world: World, witness: Witness, runtime: Runtime) -> None:
    """Wait until aborted work has ended: calls of subagents after a crash, and tools in their grace period."""
    for _ in range(60):
        is_asking = any(each.in_flight or each.waiting for each in runtime.stats().backends.values())
        is_open = any(sighting.open_calls for sighting in witness.seen.values())
        if not (is_asking or is_open) and world.toolbox.running.total() == runtime._quarantine.size:
            return
        await anyio.sleep(1)
