//! Compiles the device kernels for the CPU when the feature `emulator` asks for it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "emulator")]
    emulator();
}

/// One static library: the emulator of `tests/gpu/emulator` and the kernels it runs.
#[cfg(feature = "emulator")]
fn emulator() {
    for folder in ["src/engine/kernels", "tests/gpu/emulator"] {
        println!("cargo:rerun-if-changed={folder}");
    }
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        // Whatever the profile: an emulator without optimisation takes minutes.
        .opt_level(2)
        // Every float operation rounds once, as on the device (`nvcc -fmad=false`).
        .flag("-ffp-contract=off")
        .flag("-fno-strict-aliasing")
        // `#pragma unroll` is for the device compiler.
        .flag("-Wno-unknown-pragmas")
        .include("src/engine/kernels")
        .include("tests/gpu/emulator")
        .file("tests/gpu/emulator/emulator.cpp")
        .file("tests/gpu/emulator/entry.cpp")
        .compile("greenmark_emulator");
}
