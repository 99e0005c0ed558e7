"""Packs a release with `pack.sh`, and checks the archive, the Debian package, the list of crates and the checksums.

The program in it comes from the image, if the image was built.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(sys.argv[1]) / "packaging"
FOLDER = TARGET / "packages"
NAME = "sluicegate-test"
# The modes and owners of what the package installs, apart from manual pages, completions and documentation.
INSTALLED = {
    "./etc/sluicegate/": "drwxr-x--- root/root",
    "./etc/sluicegate/credentials/": "drwx------ root/root",
    "./etc/sluicegate/sluicegate.toml": "-rw-r----- root/root",
    "./lib/systemd/system/sluicegate.service": "-rw-r--r-- root/root",
    "./usr/bin/sluicegate": "-rwxr-xr-x root/root",
    "./usr/lib/sysusers.d/sluicegate.conf": "-rw-r--r-- root/root",
}


def check() -> None:
    program = TARGET / "final/sluicegate"
    program = program if program.exists() else Path(os.environ["SLUICEGATE_BIN"])
    for name in ["sluicegate", "sluicegate-lean"]:
        (TARGET / "dist").mkdir(exist_ok=True)
        shutil.copyfile(program, TARGET / "dist" / name)
        (TARGET / "dist" / name).chmod(0o755)
    sums = packed()
    assert packed() == sums, "the same programs give other packages"
    archive()
    debian()
    crates()


def packed() -> dict[str, str]:
    """Packs the programs, and returns the checksum of each package."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    bills = cyclonedx()
    env = os.environ | {"CARGO_TARGET_DIR": str(TARGET), "PATH": f"{bills}:{os.environ['PATH']}"}
    subprocess.run(["crates/server/packaging/pack.sh", NAME, FOLDER], cwd=ROOT, env=env, check=True)
    assert not list(ROOT.glob(f"*/*/{NAME}*")), "files are left beside the sources"
    listed = (FOLDER / f"{NAME}.sha256").read_text().splitlines()
    sums = {Path(line.split("  ")[1]).name: line.split("  ")[0] for line in listed}
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in FOLDER.iterdir() if path.suffix != ".sha256"}
    assert sums == found
    return sums


def cyclonedx() -> Path:
    """The folder of the program that lists crates, in the version of a release; it is compiled once."""
    workflow = (ROOT / ".github/workflows/release.yml").read_text()
    package = re.search(r"cargo-cyclonedx@[\d.]+", workflow)[0]
    tools = TARGET / "tools"
    subprocess.run(["cargo", "install", "--quiet", "--locked", "--root", tools, package], check=True)
    return tools / "bin"


def archive() -> None:
    with tarfile.open(FOLDER / f"{NAME}.tar.gz") as tar:
        members = {member.name.removeprefix(NAME).lstrip("/"): member for member in tar}
        assert {(member.uid, member.gid) for member in members.values()} == {(0, 0)}
        assert members["sluicegate"].mode == 0o755
        assert tar.extractfile(members["sluicegate.toml"]).read().startswith(b"#")
    wanted = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "sluicegate", "sluicegate-lean", "sluicegate.toml"]
    wanted += [f"completions/{shell}" for shell in ["bash", "fish", "zsh"]]
    pages = {name for name in members if name.startswith("man/")}
    assert {"man/sluicegate.1.gz", "man/sluicegate-serve.1.gz"} <= pages
    assert set(wanted) == {name for name, member in members.items() if member.isfile()} - pages


def debian() -> None:
    """The installed files and their modes; the scripts and completions are read by their shells."""
    if not shutil.which("dpkg-deb"):
        assert "CI" not in os.environ, "dpkg-deb is not installed"
        print("left out: dpkg-deb is not installed")
        return
    (package,) = FOLDER.glob("*.deb")
    printed = output("dpkg-deb", "--contents", package)
    # -rwxr-xr-x root/root  1024 2026-01-31 10:30 ./usr/bin/sluicegate
    entries = {words[5]: " ".join(words[:2]) for words in map(str.split, printed.splitlines())}
    assert entries.items() >= INSTALLED.items(), entries
    version = output("cargo", "pkgid", "--package", "sluicegate-server").rsplit("@")[-1].strip()
    assert output("dpkg-deb", "--field", package, "Version").strip() == version
    extracted = TARGET / "extracted"
    shutil.rmtree(extracted, ignore_errors=True)
    subprocess.run(["dpkg-deb", "--raw-extract", package, extracted], check=True)
    conffiles = (extracted / "DEBIAN/conffiles").read_text().split()
    assert conffiles == ["/etc/sluicegate/sluicegate.toml"]
    for script in ["postinst", "prerm"]:
        subprocess.run(["sh", "-n", extracted / "DEBIAN" / script], check=True)
    subprocess.run(["bash", "-n", extracted / "usr/share/bash-completion/completions/sluicegate"], check=True)


def crates() -> None:
    """The list has every crate in the program. It may have more: cargo-cyclonedx counts the features of all the workspace."""
    bill = json.loads((FOLDER / f"{NAME}.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX" and bill["specVersion"] == "1.5"
    assert bill["metadata"]["component"]["name"] == "sluicegate-server"
    components = bill["components"]
    assert all(component["purl"] and component["licenses"] for component in components)
    # Crates of the workspace have no checksum.
    assert len([component for component in components if component.get("hashes")]) > 200
    line = "tree --locked --package sluicegate-server --edges normal --prefix none --format {p}"
    built = {tuple(entry.split()[:2]) for entry in output("cargo", *line.split()).splitlines() if entry}
    missing = built - {(component["name"], f"v{component['version']}") for component in components}
    assert missing == {("sluicegate-server", f"v{bill['metadata']['component']['version']}")}, missing


def output(*command: str | Path) -> str:
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout
