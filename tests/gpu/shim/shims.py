#!/usr/bin/env python3
"""Import shims for CUDA's libraries: `shims.py FOLDER` leaves libcuda.a, libcublas.a ... there.

candle links against libcuda, libcublas, libcublasLt, libcurand and libnvrtc, so a program with its feature `cuda` does
not even start where they are missing. With FOLDER in LIBRARY_PATH the linker takes these archives instead. Each function
is a few instructions that jump to the real one; the first call looks the library up with dlopen, and where there is none
the function returns an error. So one program runs with and without CUDA, and LD_LIBRARY_PATH chooses the driver: the
machine's or the mock of tests/gpu/mock.

symbols.txt lists the functions, those that cudarc declares for CUDA 13. For Linux on x86-64; needs gcc and ar.

The CUDA runtime is asked for by name only (-lcudart) unless the real nvcc built candle's kernels: libcudart.a is empty
here, and tools/gpu-build puts the real one before it.
"""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


class Library:
    """One library: its functions, the file names to try, and what they answer when there is no such file."""

    def __init__(self, name, pattern, files, missing):
        self.name, self.pattern, self.files, self.missing = name, re.compile(pattern), files, missing


LIBRARIES = [
    # CUDA_ERROR_NO_DEVICE, CUBLAS_STATUS_NOT_INITIALIZED, CURAND_STATUS_INITIALIZATION_FAILED, NVRTC_ERROR_INTERNAL_ERROR
    Library("cuda", r"cu[A-Z]", ["libcuda.so.1", "libcuda.so"], 100),
    Library("cublas", r"cublas(?!Lt)", ["libcublas.so.13", "libcublas.so.12", "libcublas.so"], 1),
    Library("cublasLt", r"cublasLt", ["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"], 1),
    Library("curand", r"curand", ["libcurand.so.10", "libcurand.so"], 203),
    Library("nvrtc", r"nvrtc", ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"], 11),
]
# These do not return a status: the first return text, the second store it.
RETURN_TEXT = {
    "nvrtcGetErrorString",
    "cublasGetStatusName",
    "cublasGetStatusString",
    "cublasLtGetStatusName",
    "cublasLtGetStatusString",
}
STORE_TEXT = {"cuGetErrorName", "cuGetErrorString"}

RESOLVER = """\
/* Written by shims.py. Finds the real function behind a shim. */
#include <dlfcn.h>
#include <stddef.h>

enum {{ RETURNS_STATUS, RETURNS_TEXT, STORES_TEXT }};
static const char *const files[] = {{{files}}};
static const char *const names[] = {{{names}}};
static const unsigned char kinds[] = {{{kinds}}};

/* Where each shim jumps to; null before its first call. */
__attribute__((visibility("hidden"))) void *shim_{name}_targets[sizeof names / sizeof *names];

static int no_status(void) {{ return {missing}; }}
static const char *no_text(void) {{ return "{first} was not found"; }}
static int store_no_text(int status, const char **text) {{
  (void)status;
  *text = "{first} was not found, or it has no device";
  return 0;
}}

static void *library(void) {{
  /* Several threads may look at once: dlopen gives all of them the same. */
  static void *handle;
  for (size_t i = 0; !handle && i < sizeof files / sizeof *files; i++) handle = dlopen(files[i], RTLD_NOW | RTLD_GLOBAL);
  return handle;
}}

__attribute__((visibility("hidden"))) void *shim_{name}_find(size_t index) {{
  void *handle = library();
  void *target = handle ? dlsym(handle, names[index]) : NULL;
  if (!target && kinds[index] == RETURNS_TEXT) target = (void *)no_text;
  if (!target && kinds[index] == STORES_TEXT) target = (void *)store_no_text;
  if (!target) target = (void *)no_status;
  shim_{name}_targets[index] = target;
  return target;
}}
"""

# Keeps every register that can hold an argument while the real function is looked up.
FIRST_CALL = """\
.text
.hidden shim_{name}_find
.hidden shim_{name}_targets
shim_{name}_first_call:
  pushq %rdi
  pushq %rsi
  pushq %rdx
  pushq %rcx
  pushq %r8
  pushq %r9
  pushq %rax
  subq $128, %rsp
{save}
  movq %r10, %rdi
  call shim_{name}_find
  movq %rax, %r11
{restore}
  addq $128, %rsp
  popq %rax
  popq %r9
  popq %r8
  popq %rcx
  popq %rdx
  popq %rsi
  popq %rdi
  jmp *%r11
"""

SHIM = """\
.globl {symbol}
.type {symbol}, @function
{symbol}:
  movq shim_{name}_targets+{offset}(%rip), %r11
  testq %r11, %r11
  jz 1f
  jmp *%r11
1:
  movq ${index}, %r10
  jmp shim_{name}_first_call
.size {symbol}, .-{symbol}
"""


def kind(symbol):
    return "RETURNS_TEXT" if symbol in RETURN_TEXT else "STORES_TEXT" if symbol in STORE_TEXT else "RETURNS_STATUS"


def quoted(texts):
    return ", ".join(f'"{text}"' for text in texts)


def resolver(library, symbols):
    return RESOLVER.format(
        name=library.name,
        files=quoted(library.files),
        names=quoted(symbols),
        kinds=", ".join(map(kind, symbols)),
        missing=library.missing,
        first=library.files[0],
    )


def shims(library, symbols):
    name = library.name
    save = "\n".join(f"  movups %xmm{i}, {16 * i}(%rsp)" for i in range(8))
    restore = "\n".join(f"  movups {16 * i}(%rsp), %xmm{i}" for i in range(8))
    parts = [FIRST_CALL.format(name=name, save=save, restore=restore)]
    for index, symbol in enumerate(symbols):
        parts.append(SHIM.format(symbol=symbol, name=name, offset=8 * index, index=index))
    parts.append('.section .note.GNU-stack,"",@progbits\n')
    return "".join(parts)


def archive(folder, name, sources):
    """lib<name>.a of these sources: file name to text."""
    objects = []
    for file, text in sources.items():
        source = folder / file
        source.write_text(text)
        objects.append(source.with_suffix(".o"))
        subprocess.check_call(["gcc", "-O2", "-fPIC", "-Wall", "-c", source, "-o", objects[-1]])
    target = folder / f"lib{name}.a"
    target.unlink(missing_ok=True)
    subprocess.check_call(["ar", "rcs", target, *objects])


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: shims.py FOLDER")
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    symbols = sorted(set((HERE / "symbols.txt").read_text().split()))
    left = set(symbols)
    for library in LIBRARIES:
        own = [symbol for symbol in symbols if library.pattern.match(symbol)]
        left -= set(own)
        name = library.name
        archive(folder, name, {f"{name}.c": resolver(library, own), f"{name}_shims.S": shims(library, own)})
        print(f"lib{library.name}.a: {len(own)} functions")
    archive(folder, "cudart", {"cudart.c": "extern int cudart_is_not_here;\n"})
    if left:
        sys.exit(f"shims.py: of no library: {sorted(left)}")


if __name__ == "__main__":
    main()
