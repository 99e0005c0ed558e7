"""Checks the files of `crates/server/packaging`: `cargo xtask nightly --only packages` calls this.

The chart is rendered by Helm itself and compared with the schemas of Kubernetes, the compose file with the schema of Compose,
and each configuration file in them with the schema that the gateway prints. systemd and Prometheus read their own files. The
steps of the Dockerfile are run by `image.py`, and `packages.py` packs a release, both in the folder of the first argument.
`SLUICEGATE_BIN` names the gateway, and `SLUICEGATE_MODEL` the weights of its text model.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from itertools import product
from pathlib import Path
from typing import Any

import helm_python
import image
import jsonschema
import kubernetes_validate
import packages
import yaml

HERE = Path(__file__).resolve().parent
PACKAGING = HERE.parents[1] / "crates/server/packaging"
CHART = PACKAGING / "chart"
ALERTS = CHART / "monitoring/alerts.yaml"
GATEWAY = os.environ["SLUICEGATE_BIN"]
KUBERNETES = ["1.30", "1.37"]
# From 0, for a service that can do nothing, to 100.
EXPOSURE = "15"


def main() -> None:
    for check in [chart, compose, unit, rules, dockerfile, image.check, packages.check]:
        print(f"checking {check.__module__}.{check.__name__}", flush=True)
        check()


def chart() -> None:
    """With and without each option, the documents are valid, and refer to each other."""
    findings = helm_python.lint(str(CHART))
    assert not [finding for finding in findings["messages"] if finding["severity"] > 1], findings
    for scaled, monitored, fenced in product([False, True], repeat=3):
        values = {
            "autoscaling": {"enabled": scaled},
            "monitoring": {"enabled": monitored, "labels": {"release": "prometheus"}},
            "networkPolicy": {"enabled": fenced},
        }
        found = rendered(values)
        kinds = ["ConfigMap", "Deployment", "PodDisruptionBudget", "Service"]
        kinds += ["HorizontalPodAutoscaler"] * scaled + ["NetworkPolicy"] * fenced
        kinds += ["PrometheusRule", "ServiceMonitor"] * monitored
        assert sorted(set(kind for kind, _ in found)) == sorted(kinds), found.keys()
        for (kind, _), document in found.items():
            if kind not in ("PrometheusRule", "ServiceMonitor"):
                for version in KUBERNETES:
                    kubernetes_validate.validate(document, version, strict=True)
        pods(found, scaled)
        if monitored:
            scrapes(found)


def rendered(values: dict[str, Any]) -> dict[tuple[str, str], Any]:
    with helm_python.Chart.load(str(CHART)) as loaded:
        files = loaded.render(values, name="gate", namespace="models").values()
    documents = [document for file in files for document in yaml.safe_load_all(file) if document]
    return {(document["kind"], document["metadata"]["name"]): document for document in documents}


def pods(found: dict[tuple[str, str], Any], scaled: bool) -> None:
    spec = found["Deployment", "gate"]["spec"]
    assert ("replicas" in spec) != scaled
    pod, labels = spec["template"]["spec"], spec["template"]["metadata"]["labels"].items()
    (container,) = pod["containers"]
    secured = container["securityContext"]
    assert pod["securityContext"]["runAsNonRoot"] and secured["readOnlyRootFilesystem"]
    assert not secured["allowPrivilegeEscalation"] and secured["capabilities"] == {"drop": ["ALL"]}
    config = found["ConfigMap", "gate"]["data"]["sluicegate.toml"]
    assert pod["terminationGracePeriodSeconds"] > seconds_to_stop(configuration(config))
    ports = {port["name"] for port in container["ports"]}
    for name in ["gate", "gate-admin"]:
        service = found["Service", name]["spec"]
        assert service["selector"].items() <= labels
        assert {port["targetPort"] for port in service["ports"]} <= ports


def scrapes(found: dict[tuple[str, str], Any]) -> None:
    """The monitor selects the service of the admin addresses alone, and the rules are the alerts."""
    monitor = found["ServiceMonitor", "gate"]["spec"]
    wanted = monitor["selector"]["matchLabels"].items()
    selected = [service for (kind, _), service in found.items() if kind == "Service" and wanted <= service["metadata"]["labels"].items()]
    (service,) = selected
    assert monitor["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert found["PrometheusRule", "gate"]["spec"] == yaml.safe_load(ALERTS.read_text())
    boards = found["ConfigMap", "gate-dashboards"]["data"]
    assert {json.loads(board)["uid"] for board in boards.values()} == {"sluicegate-operations", "sluicegate-money"}


def compose() -> None:
    file = PACKAGING / "compose.yaml"
    checker = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(file)]
    subprocess.run(checker, check=True)
    services = yaml.safe_load(file.read_text())["services"]
    mounts = [mount for service in services.values() for mount in service.get("volumes", []) if mount.startswith(".")]
    for mount in mounts:
        assert (PACKAGING / mount.split(":")[0]).exists(), mount
    config = configuration((PACKAGING / "compose/sluicegate.toml").read_text())
    assert seconds(services["gateway"]["stop_grace_period"]) > seconds_to_stop(config)


def configuration(text: str) -> dict[str, Any]:
    """The configuration in a text, which has to match the schema of the gateway."""
    schema = json.loads(subprocess.run([GATEWAY, "config", "schema"], stdout=subprocess.PIPE, check=True).stdout)
    config = tomllib.loads(text)
    jsonschema.Draft7Validator(schema).validate(config)
    defaults = schema["properties"]["limits"]["properties"]
    limits = {name: setting["default"] for name, setting in defaults.items() if "default" in setting}
    return config | {"limits": limits | config.get("limits", {})}


def seconds_to_stop(config: dict[str, Any]) -> int:
    """The longest time that the gateway takes after SIGTERM."""
    return seconds(config["limits"]["lame_duck"]) + seconds(config["limits"]["drain"])


def seconds(text: str) -> int:
    assert text.endswith("s"), text
    return int(text[:-1])


def unit() -> None:
    """systemd accepts the unit, apart from the paths of what is not installed here."""
    if not shutil.which("systemd-analyze"):
        missing("systemd-analyze", "systemd")
        return
    text = (PACKAGING / "systemd/sluicegate.service").read_text()
    assert "TimeoutStopSec=140\n" in text
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sluicegate.service"
        path.write_text(text.replace("/usr/bin/sluicegate", GATEWAY))
        subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", path], check=True)
        subprocess.run(["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE}", path], check=True, stdout=subprocess.DEVNULL)


def rules() -> None:
    """Prometheus reads the alerts and the queries of the dashboards, and the alerts fire in their tests."""
    if not shutil.which("promtool"):
        missing("promtool", "prometheus")
        return
    subprocess.run(["promtool", "check", "rules", ALERTS], check=True)
    subprocess.run(["promtool", "test", "rules", HERE / "alerts.yaml"], check=True)
    queries = [query for board in (CHART / "monitoring").glob("*.json") for query in expressions(json.loads(board.read_text()))]
    assert len(queries) > 20
    named = [{"record": f"panel_{number}", "expr": query} for number, query in enumerate(queries)]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump({"groups": [{"name": "dashboards", "rules": named}]}, file)
        file.flush()
        subprocess.run(["promtool", "check", "rules", file.name], check=True)


def expressions(value: Any) -> list[str]:
    """The queries of Prometheus in a dashboard, with the variables of Grafana filled in."""
    if isinstance(value, list):
        return [found for entry in value for found in expressions(entry)]
    if not isinstance(value, dict):
        return []
    own = [value["expr"].replace("$__rate_interval", "5m").replace("$__range", "1h")] if "expr" in value else []
    return own + expressions(list(value.values()))


def dockerfile() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    subprocess.run([hadolint, PACKAGING / "Dockerfile"], check=True)


def missing(program: str, package: str) -> None:
    """In CI everything is checked."""
    text = f"{program} is not installed (Debian and Ubuntu: `apt-get install {package}`)"
    if "CI" in os.environ:
        sys.exit(text)
    print(f"left out: {text}")


if __name__ == "__main__":
    main()
