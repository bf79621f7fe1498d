//! Compiles the device kernels for the CPU when the feature `emulator` asks for it, and tells the
//! program how those of candle were compiled.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_CUDA").is_some() {
        cuda();
    }
    #[cfg(feature = "emulator")]
    emulator();
}

/// What the program has to know of the way candle's kernels were compiled: the oldest device that
/// takes them, and whether those of quantised weights are among them (`tools/gpu-env`).
fn cuda() {
    for (name, default, told) in [
        ("CUDA_COMPUTE_CAP", "80", "GREENMARK_COMPUTE_CAPABILITY"),
        ("GREENMARK_QUANTISED_KERNELS", "present", "GREENMARK_QUANTISED_KERNELS"),
    ] {
        println!("cargo:rerun-if-env-changed={name}");
        let value = std::env::var(name).unwrap_or_else(|_| default.to_owned());
        println!("cargo:rustc-env={told}={value}");
    }
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
