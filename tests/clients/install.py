#!/usr/bin/env python3
"""Installs what runs Model Library Format archives, for the tests alone, into a folder.

    install.py FOLDER

* `libdlr.so` of the DLR runtime, which holds TVM's graph executor. Nothing else of that wheel is
  taken: its Python package reports home when it is imported.
* `tvm`, without its compiler: the Python files and `libtvm_runtime.so`. The whole is 300 MB, this 20.
* the packages of requirements.txt, of which tvm needs all.

Wheels are downloaded with pip, by hash (wheels.txt), and not kept. FOLDER is replaced when all of it
is there; it holds a copy of both lists, by which `is_current` knows it. Exit code 1, with what pip
says, where there is no package index or no such wheel for this machine.
"""
import hashlib
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
LISTS = ("requirements.txt", "wheels.txt")
DLR_MEMBER = "dlr-1.6.0.data/data/dlr/libdlr.so"
DLR_SHA256 = "570d8e462cd1f4f6d997e150d6d0eea0026010098194bef62d1ad4f8e1196ca7"
# tvm-ffi is built for one version of Python.
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--retries", "1",
       "--timeout", "30"]


def is_current(folder):
    """Whether all of this is in the folder already."""
    lists = [(HERE / name, folder / name) for name in LISTS]
    same = all(own.exists() and own.read_bytes() == wanted.read_bytes() for wanted, own in lists)
    return same and (folder / PYTHON).exists()


def install(folder):
    print(f"== installing parts of apache-tvm and dlr into {folder}", file=sys.stderr)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        wheels, made = pathlib.Path(scratch, "wheels"), pathlib.Path(scratch, "clients")
        pip("download", "--no-deps", "--require-hashes", "-d", wheels, "-r", HERE / "wheels.txt")
        pip("install", "--no-deps", "--target", made, "-r", HERE / "requirements.txt")
        take_tvm(next(wheels.glob("apache_tvm-*.whl")), made)
        take_dlr(next(wheels.glob("dlr-*.whl")), made)
        for name in LISTS:
            shutil.copy(HERE / name, made / name)
        (made / PYTHON).touch()
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)


def pip(*arguments):
    done = subprocess.run([*PIP, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"pip {arguments[0]} failed:\n{done.stderr.strip()}")


def take_tvm(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith("tvm/") and name.endswith((".py", "/libtvm_runtime.so")):
                archive.extract(name, folder)


def take_dlr(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        library = archive.read(DLR_MEMBER)
    if hashlib.sha256(library).hexdigest() != DLR_SHA256:
        sys.exit(f"{DLR_MEMBER} is not the library that was looked at")
    (folder / "libdlr.so").write_bytes(library)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = pathlib.Path(sys.argv[1])
    if not is_current(target):
        install(target)
