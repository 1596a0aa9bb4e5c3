"""Everything a fresh checkout needs, with nothing but Python: ``python3 run.py demo`` or ``test``.

Makes the virtual environment ``.venv`` beside this file and installs the package into it (again
only when pyproject.toml changed), then runs the job. ``python3 run.py quick`` runs some
of the tests, on any system: those that need neither a browser nor a screen.
"""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOME = HERE / ".venv"
BIN = HOME / ("Scripts" if os.name == "nt" else "bin")

DEMO = [["eutely", "demo", "-o", "demo"]]
TEST = [
    ["ruff", "check", "."],
    ["ruff", "format", "--check", "."],
    ["mypy"],
    ["lint-imports"],
    ["pytest", "-n", "auto"],
]
QUIETLY = (
    "cli/test_build.py", "cli/test_contract.py", "config", "io", "pose", "report/test_page.py",
    "solver", "tasks", "test_atlas.py", "test_elsewhere.py", "test_kernel.py", "test_package.py",
    "test_specimen.py", "test_surface.py",
)  # fmt: skip
QUICK = [["pytest", "-n", "auto", *(f"tests/{name}" for name in QUIETLY)]]
JOBS = {"demo": ("", DEMO), "test": ("[test]", TEST), "quick": ("[test]", QUICK)}


def install(extras: str) -> None:
    """Install the package, editable, with ``extras``, unless that was done for this pyproject."""
    stamp = HOME / f"installed{extras.strip('[]')}"
    wanted = hashlib.sha256((HERE / "pyproject.toml").read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    if not (BIN / "python").exists() and not (BIN / "python.exe").exists():
        venv.create(HOME, with_pip=True)
    pip = [str(BIN / "python"), "-m", "pip", "install", "--quiet", "--editable", f"{HERE}{extras}"]
    subprocess.run(pip, check=True)
    stamp.write_text(wanted)


def main() -> int:
    """Install, then run each command of the job until one fails."""
    if len(sys.argv) < 2 or sys.argv[1] not in JOBS:
        print(f"usage: python3 run.py {'|'.join(JOBS)}", file=sys.stderr)
        return 2
    extras, commands = JOBS[sys.argv[1]]
    install(extras)
    for number, command in enumerate(commands):
        more = sys.argv[2:] if number == len(commands) - 1 else []
        print("$", *command, *more, flush=True)
        done = subprocess.run([str(BIN / command[0]), *command[1:], *more], cwd=HERE)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
