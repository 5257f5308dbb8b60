"""The end of a run: every session is its log, and what was counted is what the logs say."""

import anyio

from actors.core.data.form import replace
from actors.core.log.codec import decode_event, encode_event
from actors.core.session.state import rebuilt
from actors.renderer.renderer_actor import AdoptedLanes
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.session.commands import Look
from actors.testing.simulation.recount import Recount, differences
from actors.testing.simulation.world import World


async def judged(world: World, runtime: Runtime) -> None:
    """Note every invariant that does not hold at the end of a run."""
    for name in tuple(runtime.sessions):
        await _rebuilds(world, runtime, runtime.session(name))
    for key in world.toolbox.returned:
        if (session := world.session_of(key)) not in world.crashed:
            world.witness.returned(session, key)
    if not world.features.shared.sessions & world.crashed:  # of what was in flight, a log says nothing then
        world.features.shared.judge()
    for refusal in runtime.refusals:
        if refusal.by == "judge":
            about = f"{refusal.session}, {refusal.binding.backend}: {refusal.why[:200]}"
            world.problems.add("no body is refused for its structure", about)


async def _rebuilds(world: World, runtime: Runtime, session: Session) -> None:
    """Compare a session with the fold of its log: state, ledger, and each lane byte for byte."""
    records = [encode_event(event) for event in world.witness.read(session.id)]
    for record in records:
        world.digest.update(record)
    state, lanes = rebuilt([decode_event(record) for record in records], runtime.rules)
    live = await session._session.ask(Look())
    ledger = await session.ledger()
    if ledger != state.ledger or live.history != state.history:
        world.problems.add("a session is the fold of its log", f"{session.id}: history or ledger")
    if replace(live, ledger=ledger, history=state.history) != replace(state, ledger=ledger):
        world.problems.add("a session is the fold of its log", f"{session.id}: state")
    for binding, lane in (await session._refs.renderer.ask(AdoptedLanes())).items():
        if b"".join(lane.segments) != b"".join(lanes.of(binding).segments):
            world.problems.add("a lane is rebuilt to the same bytes", f"{session.id}: {binding.backend}")
    held = session._activation.holding
    if (held.messages, held.calls, held.lanes) != (state.size, state.ledger.size, lanes.size):
        world.problems.add("what a session holds is counted", f"{session.id}: {held}")


async def counted(world: World, runtime: Runtime) -> None:
    """Compare the runtime's stats with what the servers, the tools and the logs say, once what was aborted is over.

    After a crash, calls of subagents may still be about to be closed, and tools have a grace to end.
    """
    for _ in range(60):
        is_asking = any(each.in_flight or each.waiting for each in runtime.stats().backends.values())
        is_open = any(sighting.open_calls for sighting in world.witness.seen.values())
        if not (is_asking or is_open) and world.toolbox.running.total() == runtime.quarantine.size:
            break
        await anyio.sleep(1)
    for line in differences(runtime.stats(), Recount(world)):
        world.problems.add("the stats are what was seen", line)
