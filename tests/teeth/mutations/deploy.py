"""Mutations of the program that the manifests for Kubernetes and systemd start."""

from tests.teeth.mutations.mutation import Mutation

HOST = "docs/examples/deploy/host.py"
SERVER = "docs/examples/deploy/server.py"
TESTS = "tests/deploy/test_host.py"
TERMINATED = "tests/deploy/test_kubernetes.py::test_a_terminated_pod_moves_its_sessions_before_it_ends"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "deploy: a host stops before its sessions have moved",
        f"{HOST}:main",
        "await drain(runtime, float(os.environ['RATE']), float(os.environ['TURN_TIMEOUT']))",
        "pass",
        (TERMINATED,),
    ),
    Mutation(
        "deploy: a host is ready while it drains",
        f"{HOST}:ready",
        "200 if app.state.runtime.stats().is_ready else 503",
        "200",
        (TERMINATED,),
    ),
    Mutation(
        "deploy: a redirect to the owner of a session loses the message",
        f"{HOST}:fail",
        "307",
        "303",
        (TERMINATED,),
    ),
    Mutation(
        "deploy: a host stops its server as soon as it stops",
        f"{HOST}:main",
        "await stop.wait()",
        "await stop.wait()\nserver.should_exit = True",
        (TERMINATED,),
    ),
    Mutation(
        "deploy: one failure of the journal ends the move of a host's sessions",
        f"{SERVER}:drain",
        "timeout = end - time.monotonic()",
        "return",
        (f"{TESTS}::test_a_host_tries_again_to_move_its_sessions_after_a_failure_of_its_journal",),
    ),
    Mutation(
        "deploy: a host whose drain fails drops its connections",
        f"{HOST}:main",
        "await serving",
        "pass",
        (f"{TESTS}::test_a_host_that_cannot_drain_still_stops_its_server_properly",),
    ),
    Mutation(
        "deploy: an invalid session id is a failure of the host",
        f"{HOST}:ask",
        "Name",
        "str",
        (f"{TESTS}::test_a_request_with_an_invalid_session_id_is_rejected",),
    ),
)
