"""Runs the steps of the Dockerfile without a container runtime, and the images in an empty file system: one without the
embedded engines, and one with them.

The image of Rust is replaced by the toolchain of this machine, and the folder of a build by one in the target folder. Each
stage `FROM scratch` becomes a folder, in which its program runs as the user of the image, and sees nothing else.
"""

from __future__ import annotations

import base64
import gzip
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
# By its path: the programs of images get no PATH.
CHROOT = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin")
# A release takes a quarter of an hour.
PROFILE = os.environ.get("SLUICEGATE_PACKAGING_PROFILE", "quick")
# The largest image without engines, in bytes.
LIMIT = 25_000_000
KEYS = {"SLUICEGATE_TEXT_KEY": "sg_test_packaging_key_00000000000000", "SLUICEGATE_IMAGE_KEY": "sg_test_packaging_key_11111111111111"}
STORE = """
[state]
accounting = "sqlite:/var/lib/sluicegate/accounting.db"
"""
# The program finds the model server by the hosts file, as in a container.
UPSTREAM = """
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

    def command(self) -> list[str]:
        """The program of the image, as it is called in a container, but on ports that the system chooses."""
        arguments = [re.sub(r"^0\.0\.0\.0:\d+$", "127.0.0.1:0", argument) for argument in self.settings["CMD"]]
        return self.inside(self.settings["ENTRYPOINT"] + arguments)

    def inside(self, command: list[str]) -> list[str]:
        return [CHROOT, f"--userspec={self.settings['USER']}", str(self.folder), *command]


def check() -> None:
    if os.geteuid():
        text = "only root can run a program in another file system"
        assert "CI" not in os.environ, text
        print(f"left out: {text}")
        return
    stages = built({"PROFILE": PROFILE})
    without_engines(stages["final"], stages["simulator"])
    features = stages["build"].env["FEATURES"] + ",image-engine,text-engine"
    with_engines(built({"PROFILE": PROFILE, "FEATURES": features})["final"])


def without_engines(gateway: Stage, simulator: Stage) -> None:
    """It relays a request to a model server, which is an image too."""
    holds_one_program(simulator, "of the simulator")
    size = holds_one_program(gateway, "without engines")
    assert PROFILE != "release" or size <= LIMIT, size
    (gateway.folder / "etc").mkdir()
    (gateway.folder / "etc/hosts").write_text("127.0.0.1 models.test\n")
    with running(simulator, "listens on http://") as (port,), serving(gateway, STORE + UPSTREAM.format(port=port)) as (port, admin):
        assert answer(port, "m")["finish_reason"] == "stop"
        health = [*gateway.inside(gateway.settings["HEALTHCHECK"]), "--admin", f"127.0.0.1:{admin}"]
        subprocess.run(health, check=True)
    assert (gateway.folder / "var/lib/sluicegate/accounting.db").exists()
    assert subprocess.run(health, stderr=subprocess.DEVNULL, check=False).returncode == 1, "nothing listens there now"


def with_engines(gateway: Stage) -> None:
    """It answers by itself. The weights of its text model are mounted."""
    holds_one_program(gateway, "with engines")
    shutil.copyfile(os.environ["SLUICEGATE_MODEL"], gateway.folder / "model.gguf")
    with serving(gateway, '[text_engine]\nmodel = "/model.gguf"') as (port, _):
        assert answer(port, "alt-flash")["message"]["content"]
        drawn = post(port, "images/generations", "IMAGE", {"model": "model-image-2.5-flare", "prompt": "A paper boat", "size": "1024x1024"})
        assert base64.b64decode(drawn["data"][0]["b64_json"]).startswith(b"\x89PNG\r\n")


def holds_one_program(stage: Stage, name: str) -> int:
    """Checks the files and the user of an image, and returns its size in bytes."""
    assert stage.settings["USER"] == "65532:65532"
    (program,) = (path for path in stage.folder.rglob("*") if path.is_file())
    assert program.name == Path(stage.settings["ENTRYPOINT"][0]).name
    size, packed = program.stat().st_size, len(gzip.compress(program.read_bytes()))
    print(f"image {name}: {size / 2**20:.1f} MiB, {packed / 2**20:.1f} MiB to download", flush=True)
    return size


@contextmanager
def serving(gateway: Stage, config: str) -> Iterator[list[int]]:
    """Runs a gateway, and gives the ports of clients and of the admin address."""
    file = gateway.folder / "etc/sluicegate/sluicegate.toml"
    file.parent.mkdir(parents=True)
    file.write_text(config)
    with running(gateway, "listens on http://", "admin: http://") as ports:
        yield ports


def answer(port: int, model: str) -> Any:
    """The choice that a model answers with."""
    messages = [{"role": "user", "content": "Hello."}]
    request = {"model": model, "reasoning_effort": "none", "max_tokens": 16, "messages": messages}
    return post(port, "chat/completions", "TEXT", request)["choices"][0]


def post(port: int, path: str, scope: str, body: dict[str, Any]) -> Any:
    headers = {"authorization": f"Bearer {KEYS[f'SLUICEGATE_{scope}_KEY']}", "content-type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as response:
        return json.load(response)


@contextmanager
def running(stage: Stage, *marks: str) -> Iterator[list[int]]:
    """Runs the program of a stage, and gives the ports that it prints behind these marks."""
    process = subprocess.Popen(stage.command(), env=stage.env | KEYS, stdout=subprocess.PIPE, text=True)
    try:
        ports = []
        for line in process.stdout:
            if marks[len(ports)] in line:
                ports.append(int(re.search(r":(\d+)", line.split(marks[len(ports)])[1])[1]))
            if len(ports) == len(marks):
                break
        assert len(ports) == len(marks), f"{stage.folder} has not started"
        yield ports
    finally:
        process.kill()
        process.wait()


def built(arguments: dict[str, str]) -> dict[str, Stage]:
    """Runs the instructions of the Dockerfile with these arguments. The last stage is `final`."""
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
            stage.env[name] = arguments.get(name, shlex.split(value)[0])
        elif instruction == "ENV":
            name, value = rest.split("=", 1)
            stage.env[name] = stage.expanded(shlex.split(value)[0])
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
