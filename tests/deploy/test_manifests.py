"""The manifests agree with each other, with the page that shows them, and with the time that a host needs to stop."""

import re
from math import ceil
from pathlib import Path

import pytest

from actors.config import load
from actors.kernel import system
from actors.runtime import departure, runtime
from tests.deploy.manifests import (
    FOLDER,
    KUBERNETES,
    STATEFULSET,
    UNIT,
    configuration,
    container,
    document,
    documents,
    pod,
    unit,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "deploy.md"
TEXT = PAGE.read_text()
DEPLOYMENT, STATEFUL = (KUBERNETES, "Deployment"), (STATEFULSET, "StatefulSet")
TEMPLATES = pytest.mark.parametrize("manifest", [DEPLOYMENT, STATEFUL], ids=["deployment", "statefulset"])
CONNECTIONS = 5
"""Seconds that the server in server.py waits for open connections."""


def page_times() -> tuple[float, float, float, float, float, float]:
    """Return the numbers in the page's formula: preStop, sessions, rate, timeout of a turn, reserve, and their sum."""
    (found,) = re.findall(r"^    (\d+) \+ (\d+) / (\d+) \+ (\d+) \+ (\d+) = (\d+)$", TEXT, re.MULTILINE)
    pre_stop, sessions, rate, turn, reserve, total = map(float, found)
    return pre_stop, sessions, rate, turn, reserve, total


@TEMPLATES
def test_the_grace_period_of_a_pod_follows_the_formula_on_the_page(
    manifest: tuple[Path, str], tmp_path: Path
) -> None:
    spec = pod(*manifest)
    (tmp_path / "actors.toml").write_text(configuration())
    replicas = document(*manifest)["spec"]["replicas"]
    usual = load(tmp_path / "actors.toml", {}).limits.sessions
    sessions = usual * replicas / (replicas - 1)  # the other hosts take over the sessions of a lost host
    assert f"{usual} * {replicas} / {replicas - 1} = {sessions:.0f}" in TEXT
    pre_stop, rate, turn = (
        float(spec.pre_stop[1]),
        *(float(spec.environ[name]) for name in ("RATE", "TURN_TIMEOUT")),
    )
    assert list(spec.pre_stop[:1]) == ["sleep"]
    assert page_times()[:4] == (pre_stop, sessions, rate, turn)
    assert page_times()[5] == spec.grace == pre_stop + sessions / rate + turn + page_times()[4]


def test_the_stop_timeout_of_the_systemd_unit_follows_the_formula_without_pre_stop() -> None:
    settings = unit(UNIT, "8001")
    pre_stop, _, rate, turn, _, total = page_times()
    assert float(settings["TimeoutStopSec"]) == total - pre_stop
    assert (settings.environ["RATE"], settings.environ["TURN_TIMEOUT"]) == (f"{rate:.0f}", f"{turn:.0f}")


def test_the_reserve_covers_a_cancelled_turn_open_connections_and_leaving_the_runtime() -> None:
    cancelling = departure.CANCEL_TIMEOUT + departure.PASSIVATE_TIMEOUT
    kernel = (
        2 * system.SHUTDOWN_TIMEOUT + 3 * system.GRACE
    )  # the actors, the remaining tasks, and foreign code
    leaving = runtime.ASK_TIMEOUT + runtime.RELEASE_TIMEOUT + kernel + 2 * runtime.CLOSE_TIMEOUT
    assert f"timeout_graceful_shutdown={CONNECTIONS})" in (FOLDER / "server.py").read_text()
    assert cancelling + CONNECTIONS + leaving <= page_times()[4]
    prose = " ".join(TEXT.split())
    assert f"cancelled ({cancelling:.0f} s), for open connections ({CONNECTIONS} s)" in prose
    toolsets = f"with toolsets such as MCP servers up to {runtime.TOOLSET_TIMEOUT:.0f} s more"
    assert f"at most {ceil(leaving)} s, and {toolsets}" in prose


@TEMPLATES
def test_the_probes_and_the_address_use_the_port_of_the_host(manifest: tuple[Path, str]) -> None:
    spec = pod(*manifest)
    assert {probe.port for probe in (spec.startup, spec.readiness, spec.liveness)} == {*spec.ports}
    assert [str(port) for port in spec.ports.values()] == [spec.environ["PORT"]]
    fields = {"status.podIP": "10.0.0.5", "metadata.name": "assistants-0"}
    assert spec.environment(fields)["ADDRESS"] in (
        "http://10.0.0.5:8000",
        "http://assistants-0.assistants-hosts:8000",
    )


@TEMPLATES
def test_every_selector_matches_the_labels_of_the_pods(manifest: tuple[Path, str]) -> None:
    labels = document(*manifest)["spec"]["template"]["metadata"]["labels"]
    selectors = [
        each["spec"]["selector"].get("matchLabels", each["spec"]["selector"])
        for path in (KUBERNETES, manifest[0])
        for each in documents(path)
        if "selector" in each.get("spec", {})
    ]
    assert selectors == [labels] * len(selectors)
    assert len(selectors) >= 3


def test_the_stateful_set_runs_the_container_of_the_deployment_at_a_stable_address() -> None:
    common = [
        {
            **container(*each),
            "env": [
                name
                for name in container(*each)["env"]
                if name["name"] in ("PORT", "CONFIG", "RATE", "TURN_TIMEOUT")
            ],
        }
        for each in (DEPLOYMENT, STATEFUL)
    ]
    assert common[0] == common[1]
    spec, headless = document(*STATEFUL)["spec"], document(STATEFULSET, "Service")
    assert (spec["podManagementPolicy"], headless["spec"]["clusterIP"]) == ("Parallel", "None")
    assert f".{spec['serviceName']}:" in pod(*STATEFUL).environ["ADDRESS"]
    assert spec["serviceName"] == headless["metadata"]["name"]


def test_the_page_quotes_the_files_of_the_deployment_and_the_unit_and_the_configuration() -> None:
    blocks = dict[str, list[str]]()
    for kind, text in re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL):
        blocks.setdefault(kind, []).append(text)
    deployment, difference = blocks["yaml"]
    assert deployment in KUBERNETES.read_text().split("---\n")
    assert difference in STATEFULSET.read_text()
    assert blocks["ini"] == [UNIT.read_text()]
    assert blocks["toml"][0] == configuration()
    state = unit(UNIT, "8001")["StateDirectory"]
    assert f'path = "/var/lib/{state}/' in blocks["toml"][1]
