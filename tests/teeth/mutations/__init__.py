"""The mistakes, as data: where, what stands there, what is put in its place, and which tests must turn red.

Each is a misunderstanding someone could have, not a syntax error. `old` occurs exactly once in its file.
"""

from tests.teeth.mutations import (
    asking,
    caches,
    cli,
    compaction,
    configure,
    core,
    dialects,
    faults,
    imports,
    journal,
    judge,
    judges,
    kernel,
    platform,
    profiles,
    render,
    resources,
    routing,
    runtime,
    scale,
    servers,
    simulation,
    storage,
    streams,
    subagents,
    tools,
    transport,
    turn,
)
from tests.teeth.mutations.mutation import Mutation

__all__ = ["MUTATIONS", "Mutation"]

MUTATIONS: tuple[Mutation, ...] = (
    *render.MUTATIONS,
    *core.MUTATIONS,
    *dialects.MUTATIONS,
    *imports.MUTATIONS,
    *journal.MUTATIONS,
    *judge.MUTATIONS,
    *judges.MUTATIONS,
    *profiles.MUTATIONS,
    *kernel.MUTATIONS,
    *platform.MUTATIONS,
    *runtime.MUTATIONS,
    *transport.MUTATIONS,
    *servers.MUTATIONS,
    *caches.MUTATIONS,
    *simulation.MUTATIONS,
    *storage.MUTATIONS,
    *streams.MUTATIONS,
    *turn.MUTATIONS,
    *cli.MUTATIONS,
    *compaction.MUTATIONS,
    *routing.MUTATIONS,
    *subagents.MUTATIONS,
    *tools.MUTATIONS,
    *resources.MUTATIONS,
    *faults.MUTATIONS,
    *asking.MUTATIONS,
    *scale.MUTATIONS,
    *configure.MUTATIONS,
)
