"""Mutations of the program that the manifests for Kubernetes and systemd start."""

from tests.teeth.mutations.mutation import Mutation

HOST = "docs/examples/deploy/host.py"
SERVER = "docs/examples/deploy/server.py"
TERMINATED = "tests/deploy/test_kubernetes.py::test_a_terminated_pod_moves_its_sessions_before_it_ends"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "deploy: a host stops before its sessions have moved",
        f"{HOST}:main",
        "await runtime.drain(**...)",
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
        f"{HOST}:error_response",
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
)
