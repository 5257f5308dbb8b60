"""Read the parts of the manifests in docs/examples/deploy by which hosts are started, probed and stopped."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "examples" / "deploy"
KUBERNETES, STATEFULSET, UNIT = (
    FOLDER / name for name in ("kubernetes.yaml", "statefulset.yaml", "actors@.service")
)
Document: TypeAlias = Mapping[str, Any]  # Any: parsed YAML
REFERENCE = re.compile(r"\$\((\w+)\)")


@dataclass(frozen=True, slots=True)
class Probe:
    """An HTTP probe of a container. Times are in seconds."""

    path: str
    port: str
    period: float
    timeout: float
    failures: int
    grace: float | None


@dataclass(frozen=True, slots=True)
class Pod:
    """The container of a pod, and the time in seconds that the pod has to end.

    `environ` contains the variables in order; a value that Kubernetes fills in is the path of its field.
    """

    command: Sequence[str]
    ports: Mapping[str, int]
    environ: Mapping[str, str]
    fields: frozenset[str]
    pre_stop: Sequence[str]
    grace: float
    startup: Probe
    readiness: Probe
    liveness: Probe

    def environment(self, fields: Mapping[str, str], **replaced: str) -> dict[str, str]:
        """Return the variables of the container, expanded in order as by Kubernetes.

        Args:
            fields: The values of the pod's fields, by path.
            replaced: Other values for variables of the manifest.
        """
        result = dict[str, str]()
        for name, value in {**self.environ, **replaced}.items():
            value = fields[value] if name in self.fields else value
            result[name] = REFERENCE.sub(lambda found: result[found[1]], value)
        return result


def documents(path: Path) -> list[Document]:
    """Return the documents of a YAML file."""
    return [*yaml.safe_load_all(path.read_text())]


def document(path: Path, kind: str, name: str = "") -> Document:
    """Return the only document of a kind, or the only one with this name."""
    (found,) = [
        each for each in documents(path) if each["kind"] == kind and name in ("", each["metadata"]["name"])
    ]
    return found


def configuration() -> str:
    """Return the `actors.toml` in the ConfigMap."""
    return str(document(KUBERNETES, "ConfigMap")["data"]["actors.toml"])


def container(path: Path, kind: str) -> Document:
    """Return the only container in the pod template of a Deployment or a StatefulSet."""
    (found,) = document(path, kind)["spec"]["template"]["spec"]["containers"]
    return dict(found)


def pod(path: Path, kind: str) -> Pod:
    """Read the pod template of a Deployment or a StatefulSet."""
    found = container(path, kind)
    values = {each["name"]: _value(each) for each in found["env"]}
    startup, readiness, liveness = (
        _probe(found[f"{name}Probe"]) for name in ("startup", "readiness", "liveness")
    )
    return Pod(
        found["command"],
        {each["name"]: each["containerPort"] for each in found["ports"]},
        values,
        frozenset(each["name"] for each in found["env"] if "valueFrom" in each),
        found["lifecycle"]["preStop"]["exec"]["command"],
        document(path, kind)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"],
        startup,
        readiness,
        liveness,
    )


def _value(variable: Document) -> str:
    value = variable["value"] if "value" in variable else variable["valueFrom"]["fieldRef"]["fieldPath"]
    assert isinstance(value, str), f"{variable['name']}: Kubernetes accepts only strings"
    return value


def _probe(probe: Document) -> Probe:
    get = probe["httpGet"]
    return Probe(
        get["path"],
        get["port"],
        probe["periodSeconds"],
        probe.get("timeoutSeconds", 1),
        probe["failureThreshold"],
        probe.get("terminationGracePeriodSeconds"),
    )


@dataclass(frozen=True, slots=True)
class Unit:
    """The `[Service]` section of a unit for one instance. A key that occurs several times has several values."""

    settings: Mapping[str, Sequence[str]]

    def __getitem__(self, key: str) -> str:
        (value,) = self.settings[key]
        return value

    @property
    def environ(self) -> dict[str, str]:
        """The variables in `Environment=`."""
        pairs = [pair for value in self.settings["Environment"] for pair in shlex.split(value)]
        return dict(pair.split("=", 1) for pair in pairs)


def unit(path: Path, instance: str) -> Unit:
    """Read a template unit for an instance. Each line is a section, empty, or a setting."""
    sections, settings = dict[str, dict[str, list[str]]](), dict[str, list[str]]()
    for line in path.read_text().splitlines():
        if line.startswith("["):
            settings = sections.setdefault(line.strip("[]"), {})
        elif line:
            key, is_setting, value = line.partition("=")
            assert is_setting, line
            settings.setdefault(key, []).append(value.replace("%i", instance))
    assert sorted(sections) == ["Install", "Service", "Unit"]
    return Unit(sections["Service"])
