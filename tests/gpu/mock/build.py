#!/usr/bin/env python3
"""Builds the mock driver: `build.py FOLDER` leaves libcuda.so.1 there, and the names of cuBLAS and cuRAND as links to it.

Needs g++ and the source of candle-kernels, which cargo has downloaded; no CUDA. What has not changed is not compiled
again. The kernels are candle's (.cu files of the version in Cargo.lock) and ours (src/engine/kernels).
"""

import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
import shims  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
EMULATOR = HERE.parent / "emulator"
SHIM = HERE.parent / "shim"
SYMBOLS = SHIM / "symbols.txt"
OUR_KERNELS = ROOT / "src" / "engine" / "kernels"

# Of candle's files the ones that a model in f32, f16 or bf16 needs.
CANDLE_FILES = ["affine", "binary", "cast", "fill", "indexing", "reduce", "sort", "ternary", "unary"]
OUR_FILES = ["sampler", "layers"]
LIBRARY = "libcuda.so.1"
LINKS = ["libcublas.so.13", "libcublasLt.so.13", "libcurand.so.10"]

# Compute capability 8.0: candle's kernels then have their bf16 forms.
DEVICE = ["-D__CUDA_ARCH__=800", "-D__CUDACC_VER_MAJOR__=13", "-D__CUDACC_VER_MINOR__=0"]
# One rounding per operation, as in the emulator. The library is built where it runs.
COMMON = ["-std=c++17", "-fPIC", "-g0", "-march=native", "-ffp-contract=off", "-fno-strict-aliasing", f"-I{HERE}", f"-I{EMULATOR}"]
EXTRA = os.environ.get("MOCK_CXXFLAGS", "").split()


def candle_sources():
    lock = (ROOT / "Cargo.lock").read_text()
    found = re.search(r'name = "candle-kernels"\nversion = "([^"]+)"', lock)
    if not found:
        sys.exit("build.py: Cargo.lock names no candle-kernels")
    home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
    folders = sorted(home.glob(f"registry/src/*/candle-kernels-{found[1]}/src"))
    if not folders:
        sys.exit(f"build.py: candle-kernels {found[1]} is not in {home}; run `cargo fetch --locked` first")
    return folders[0]


def digest(flags, files):
    total = hashlib.sha256(repr([flags, EXTRA]).encode())
    for file in sorted(files):
        total.update(file.read_bytes())
    return total.hexdigest()[:16]


def headers():
    return [*HERE.rglob("*.hpp"), *HERE.glob("include/**/*"), *EMULATOR.glob("*.hpp")]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit("build.py: " + " ".join(map(str, command)) + "\n" + done.stderr[-4000:])
    return done.stdout


class Unit:
    """One object file, named after what it is made of."""

    def __init__(self, name, flags, inputs, write_source):
        self.name, self.flags, self.write_source = name, flags, write_source
        self.key = digest(flags, [f for f in [*inputs, pathlib.Path(__file__)] if f.is_file()])

    def object(self, work):
        return work / f"{self.name}-{self.key}.o"

    def build(self, work):
        target = self.object(work)
        if target.exists():
            return f"{self.name}: unchanged"
        source, note = self.write_source(work, self.flags)
        partial = target.with_suffix(".partial")
        run(["g++", *COMMON, *EXTRA, *self.flags, "-c", "-x", "c++", source, "-o", partial])
        partial.rename(target)
        return f"{self.name}: {note}"


def existing(path):
    return lambda work, flags: (path, "compiled")


def kernels_of(text):
    """Names of the kernels in preprocessed text."""
    return sorted(set(re.findall(r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(', text)))


def with_registration(name, source, rewrite):
    """A source that includes `source` and gives the mock each of its kernels by name."""

    def write(work, flags):
        included = rewrite(work, source)
        # The emulator's headers leave these two words alone when they are defined, so they survive to be found.
        kept = ["-D__global__=__global__"]
        text = run(["g++", "-E", "-P", *COMMON, *flags, *kept, "-x", "c++", included])
        names = kernels_of(text)
        if not names:
            sys.exit(f"build.py: no kernel found in {source}")
        lines = [f'#include "{included}"', '#include "registry.hpp"', "static const bool added[] = {"]
        lines += [f'    mock::add_kernel("{kernel}", &{kernel}),' for kernel in names]
        lines += ["};", ""]
        registration = work / f"{name}.registration.cpp"
        registration.write_text("\n".join(lines))
        return registration, f"{len(names)} kernels"

    return write


def pointer_to_dynamic_shared(work, source):
    """A copy in which a dynamic shared array is a pointer to the emulator's: C++ has no array of unknown size."""
    text = re.sub(
        r"extern\s+__shared__\s+(?:__align__\([^)]*\)\s+)?([\w ]+?)\s+(\w+)\[\];",
        r"\1 *\2 = reinterpret_cast<\1 *>(emulator::running.dynamic_shared);",
        source.read_text(),
    )
    copy = work / source.name
    copy.write_text(text)
    return copy


def not_implemented(work, _flags):
    """Every function that a program may link against and the mock does not have answers an error, weakly.

    Not so the few that answer with text: the shims have that text when they find no function.
    """
    answers = [("cublas", 15), ("curand", 999), ("cu", 801)]
    lines = ["#include <cstdio>", 'extern "C" {']
    for symbol in SYMBOLS.read_text().split():
        answer = next((code for prefix, code in answers if symbol.startswith(prefix)), None)
        if answer is not None and shims.kind(symbol) == "RETURNS_STATUS":
            lines.append(
                f"__attribute__((weak)) int {symbol}() "
                f'{{ fputs("mock CUDA: {symbol} is not implemented\\n", stderr); return {answer}; }}'
            )
    source = work / "not_implemented.cpp"
    source.write_text("\n".join([*lines, "}", ""]))
    return source, "compiled"


def units():
    candle = candle_sources()
    foreign = ["-O2", "-w", "-fpermissive", "-DEMULATOR_FOREIGN_KERNELS", *DEVICE, f"-I{HERE}/include", f"-I{candle}", "-include", "device_types.hpp"]
    ours = ["-O2", "-Wno-unknown-pragmas", "-DGREENMARK_EMULATOR", f"-I{OUR_KERNELS}"]
    shared = headers()
    for name in ["driver", "memory", "settings"]:
        yield Unit(name, ["-O2", "-Wall", "-Wextra"], [HERE / f"{name}.cpp", *shared], existing(HERE / f"{name}.cpp"))
    yield Unit("blas", ["-O3", "-Wall", "-Wextra"], [HERE / "blas.cpp", *shared], existing(HERE / "blas.cpp"))
    yield Unit("emulator", ["-O2"], [EMULATOR / "emulator.cpp", *shared], existing(EMULATOR / "emulator.cpp"))
    yield Unit("not_implemented", ["-O0", "-w"], [SYMBOLS], not_implemented)
    for name in OUR_FILES:
        source = OUR_KERNELS / f"{name}.cuh"
        if source.is_file():
            write = with_registration(name, source, lambda work, file: file)
            yield Unit(name, ours, [*OUR_KERNELS.glob("*.cuh"), *shared], write)
    for name in CANDLE_FILES:
        write = with_registration(f"candle-{name}", candle / f"{name}.cu", pointer_to_dynamic_shared)
        yield Unit(f"candle-{name}", foreign, [candle / f"{name}.cu", *candle.glob("*.cuh"), *shared], write)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: build.py FOLDER")
    folder = pathlib.Path(sys.argv[1]).resolve()
    work = folder / "objects"
    work.mkdir(parents=True, exist_ok=True)
    parts = list(units())
    # A compiler a core, and no more than two: the largest takes half a gigabyte.
    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for note in pool.map(lambda part: part.build(work), parts):
            print(note)
    objects = [part.object(work) for part in parts]
    library = folder / LIBRARY
    partial = folder / f"{LIBRARY}.partial"
    # Helpers that every file of candle has for itself are not static: the first copy is taken.
    run(["g++", "-shared", "-Wl,-z,muldefs", *EXTRA, *objects, "-o", partial, f"-Wl,-soname,{LIBRARY}", "-lpthread", "-ldl"])
    partial.rename(library)
    for link in LINKS:
        place = folder / link
        place.unlink(missing_ok=True)
        place.symlink_to(LIBRARY)
    kept = set(objects)
    for old in work.glob("*.o"):
        if old not in kept:
            old.unlink()
    print(f"{library}")


if __name__ == "__main__":
    main()
