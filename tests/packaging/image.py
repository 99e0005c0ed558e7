"""Runs the steps of the Dockerfile without a container runtime, and the image in an empty file system.

The image of Rust is replaced by the toolchain of this machine, and the folder of a build by one in the target folder. Each
stage `FROM scratch` becomes a folder, in which its program runs as the user of the image, and sees nothing else.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "crates/server/packaging/Dockerfile"
TARGET = Path(sys.argv[1]) / "packaging"
# A release takes a quarter of an hour.
ARGUMENTS = {"PROFILE": os.environ.get("SLUICEGATE_PACKAGING_PROFILE", "quick")}
KEY = "sg_test_packaging_key_00000000000000"
# The program finds the model server by the hosts file, as in a container.
CONFIG = """
[state]
accounting = "sqlite:/var/lib/sluicegate/accounting.db"
[[upstreams]]
name = "models"
protocol = "chat"
base_url = "http://models.test:{port}/v1"
[[models]]
id = "*"
family = "text"
protocols = ["chat"]
targets = [{{ upstream = "models" }}]
"""


class Stage:
    """A stage of the Dockerfile, and the folder with its files."""

    def __init__(self, name: str, base: Stage | None) -> None:
        self.folder = base.folder if base else TARGET / name
        self.env = dict(base.env) if base else {}
        self.settings: dict[str, Any] = {}

    def expanded(self, text: str) -> str:
        return Template(text).safe_substitute(self.env)

    def command(self, *extra: str) -> list[str]:
        """The program of the image, as it is called in a container, but on ports that the system chooses."""
        arguments = [re.sub(r"^0\.0\.0\.0:\d+$", "127.0.0.1:0", argument) for argument in self.settings["CMD"]]
        return self.inside(self.settings["ENTRYPOINT"] + arguments + list(extra))

    def inside(self, command: list[str]) -> list[str]:
        return ["chroot", f"--userspec={self.settings['USER']}", str(self.folder), *command]


def check() -> None:
    if os.geteuid():
        print("left out: only root can run a program in another file system")
        return
    stages = built()
    simulator, gateway = stages["simulator"], stages["final"]
    for stage in [simulator, gateway]:
        assert stage.settings["USER"] == "65532:65532"
        programs = [path for path in stage.folder.rglob("*") if path.is_file()]
        assert [path.name for path in programs] == [Path(stage.settings["ENTRYPOINT"][0]).name], programs
        print(f"{programs[0].name}: {programs[0].stat().st_size / 2**20:.1f} MiB")
    with running(simulator, {}, "listens on http://") as port:
        etc = gateway.folder / "etc"
        (etc / "sluicegate").mkdir(parents=True)
        (etc / "hosts").write_text("127.0.0.1 models.test\n")
        (etc / "sluicegate/sluicegate.toml").write_text(CONFIG.format(port=port))
        with running(gateway, {"SLUICEGATE_TEXT_KEY": KEY}, "listens on http://", "admin: http://") as (port, admin):
            answer = chat(port)
            assert answer["choices"][0]["finish_reason"] == "stop", answer
            health = [*gateway.inside(gateway.settings["HEALTHCHECK"]), "--admin", f"127.0.0.1:{admin}"]
            subprocess.run(health, check=True)
        assert subprocess.run(health, stderr=subprocess.DEVNULL, check=False).returncode == 1, "nothing listens there now"


def chat(port: int) -> Any:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hello."}]}).encode()
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", body, headers)
    with urllib.request.urlopen(request) as response:
        return json.load(response)


@contextmanager
def running(stage: Stage, keys: dict[str, str], *marks: str) -> Iterator[Any]:
    """Runs the program of a stage, and gives the ports that it prints behind these marks."""
    process = subprocess.Popen(stage.command(), env=stage.env | keys, stdout=subprocess.PIPE, text=True)
    try:
        ports = []
        for line in process.stdout:
            if marks[len(ports)] in line:
                ports.append(int(re.search(r":(\d+)", line.split(marks[len(ports)])[1])[1]))
            if len(ports) == len(marks):
                break
        assert len(ports) == len(marks), f"{stage.folder} has not started"
        yield ports if len(ports) > 1 else ports[0]
    finally:
        process.kill()
        process.wait()


def built() -> dict[str, Stage]:
    """Runs the instructions of the Dockerfile. The last stage is `final`."""
    stages: dict[str, Stage] = {}
    stage = None
    for instruction, rest in instructions():
        if instruction == "FROM":
            words = rest.split()
            name = words[2] if len(words) > 2 else "final"
            stage = stages[name] = Stage(name, stages.get(words[0]))
            if words[0] == "scratch":
                shutil.rmtree(stage.folder, ignore_errors=True)
            stage.folder.mkdir(parents=True, exist_ok=True)
        elif instruction == "ARG":
            name, value = rest.split("=", 1)
            stage.env[name] = ARGUMENTS.get(name, value.strip('"'))
        elif instruction == "ENV":
            name, value = rest.split("=", 1)
            stage.env[name] = stage.expanded(value.strip('"'))
        elif instruction == "RUN":
            target = {"CARGO_TARGET_DIR": str(TARGET / "target")}
            subprocess.run(["sh", "-ec", rest], cwd=stage.folder, env=os.environ | target | stage.env, check=True)
        elif instruction == "COPY":
            copy(stage, stages, shlex.split(rest))
        elif instruction in ("CMD", "ENTRYPOINT", "HEALTHCHECK"):
            stage.settings[instruction] = json.loads(rest[rest.index("[") :])
        else:
            assert instruction in ("EXPOSE", "USER", "VOLUME", "WORKDIR"), instruction
            stage.settings[instruction] = rest
    return stages


def instructions() -> list[tuple[str, str]]:
    lines = [line for line in DOCKERFILE.read_text().splitlines() if line and not line.startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return [tuple(line.split(" ", 1)) for line in joined.split("\n")]


def copy(stage: Stage, stages: dict[str, Stage], words: list[str]) -> None:
    *options, source, destination = words
    settings = dict(option.removeprefix("--").split("=") for option in options)
    if "from" not in settings:
        sources(stage.folder)
        return
    of = stages[settings["from"]]
    source = of.folder / Path(source).relative_to("/build")
    to = stage.folder / destination.lstrip("/")
    if source.is_dir():
        shutil.copytree(source, to)
    else:
        to = to / source.name if destination.endswith("/") else to
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, to)
    if "chown" in settings:
        os.chown(to, *map(int, settings["chown"].split(":")))


def sources(folder: Path) -> None:
    """Copies the sources into a folder, but leaves the files that have not changed: cargo would build them again."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        source, to = ROOT / name, folder / name
        if not source.exists() or to.exists() and to.read_bytes() == source.read_bytes():
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, to)
