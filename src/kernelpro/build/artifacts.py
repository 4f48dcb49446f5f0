"""Finds what a candidate's build left in its directory.

The directory was written by the candidate's process, so everything in it is a claim: records that
do not validate, name files elsewhere, or name files that are gone are left out.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

from kernelpro.schema.build import Artifact, Language
from kernelpro.schema.codec import loads
from kernelpro.text import content_hash, short_hash

MANIFEST = "manifest.jsonl"
MANIFEST_LIMIT_BYTES = 4 << 20
"""Chosen: thousands of builds; a longer manifest is a fault or an attack."""
FOREIGN_LIMIT = 200
"""At most this many objects of other build lanes are looked at."""
OBJECT_LIMIT_BYTES = 256 << 20
"""Chosen: CUTLASS objects stay below 20 MB; larger files of other lanes are not read."""
FOREIGN_FOLDERS: dict[str, str] = {"TVM_FFI_CACHE_DIR": "tvm_ffi",
                                   "TORCH_EXTENSIONS_DIR": "torch_extensions",
                                   "TRITON_CACHE_DIR": "triton"}  # fmt: skip
"""Environment variable of each other lane -> folder it is pointed at inside the build directory."""


def build_environment(build_dir: Path, cuda_architecture: str | None = None) -> dict[str, str]:
    """Variables that make every build lane write inside ``build_dir`` and nowhere else.

    ``cuda_architecture`` (``sm_90a``) also limits torch extensions to that one target, which
    otherwise compile for every visible GPU and then some.
    """
    environment = {"KERNELPRO_BUILD_DIR": str(build_dir)}
    environment |= {name: str(build_dir / folder) for name, folder in FOREIGN_FOLDERS.items()}
    beside_python = Path(sys.executable).parent
    if shutil.which("ninja") is None and (beside_python / "ninja").exists():
        # torch's and tvm_ffi's builds look for ninja on PATH; pip puts it beside the interpreter.
        environment["PATH"] = f"{beside_python}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    if cuda_architecture:
        digits = cuda_architecture.removeprefix("sm_")
        number, suffix = digits.rstrip("af"), digits[len(digits.rstrip("af")) :]
        environment["TORCH_CUDA_ARCH_LIST"] = f"{number[:-1]}.{number[-1]}{suffix}"
    return environment


def read_manifest(build_dir: Path) -> tuple[Artifact, ...]:
    """Artifacts under ``build_dir``: those of ``inline``, oldest first, then other lanes'."""
    known = {artifact.object_path: artifact for artifact in _manifest(build_dir)}
    for artifact in _foreign(build_dir):
        known.setdefault(artifact.object_path, artifact)
    return tuple(known.values())


def _manifest(build_dir: Path) -> list[Artifact]:
    try:
        # The folder is a candidate's: what has this name may be a pipe, which would never open.
        if not stat.S_ISREG((build_dir / MANIFEST).lstat().st_mode):
            return []
        with (build_dir / MANIFEST).open("rb") as file:
            lines = file.read(MANIFEST_LIMIT_BYTES).splitlines()
    except OSError:
        return []
    artifacts = []
    for line in lines:
        try:
            artifact = loads(Artifact, line)
        except ValueError:  # cut short by a kill, or not ours
            continue
        if all(_inside(Path(p), build_dir) for p in (artifact.object_path, artifact.source_path)):
            artifacts.append(artifact)
    return artifacts


def _foreign(build_dir: Path) -> list[Artifact]:
    """Objects that tvm_ffi, torch extensions or Triton built under this directory."""
    artifacts = []
    for folder in FOREIGN_FOLDERS.values():
        found = [path for pattern in ("*.so", "*.cubin")
                 for path in (build_dir / folder).rglob(pattern)]  # fmt: skip
        for path in sorted(found, key=_modified)[:FOREIGN_LIMIT]:
            if _inside(path, build_dir) and path.stat().st_size <= OBJECT_LIMIT_BYTES:
                artifacts.append(_foreign_artifact(path, folder))
    return artifacts


def _foreign_artifact(path: Path, lane: str) -> Artifact:
    sources = [
        p for suffix in (".cu", ".cpp", ".ttir") for p in sorted(path.parent.glob("*" + suffix))
    ]
    device = path.suffix == ".cubin" or any(p.suffix == ".cu" for p in sources)
    language: Language = "triton" if lane == "triton" else "cuda" if device else "cpp"
    log = path.parent / ".ninja_log"
    return Artifact(
        key=short_hash(content_hash(path.read_bytes()), 24),
        language=language,
        object_path=str(path),
        source_path=str(sources[0]) if sources else "",
        log_path=str(log) if log.exists() else "",
        command=(),
        compiler="",
        seconds=0.0,
        extra={"lane": lane},
    )


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _inside(path: Path, folder: Path) -> bool:
    """True if ``path`` exists and lies in ``folder`` after following links."""
    real = path.resolve()
    return real.is_file() and real.is_relative_to(folder.resolve())
