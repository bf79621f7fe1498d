//! One file per command: library calls in, rendered data and an exit out.

mod apikey;
mod calibrate;
mod detect;
mod doctor;
mod extract;
mod inspect;
mod keygen;
mod models;
mod power;
mod profile;
mod serve;
mod verify;

#[cfg(feature = "engine")]
mod engine;
#[cfg(not(feature = "engine"))]
#[path = "engine_absent.rs"]
mod engine;

use anyhow::Result;

use crate::args::Command;
use crate::exit::Exit;

pub(crate) fn run(command: Command) -> Result<Exit> {
    match command {
        Command::Demo(args) => engine::demo(&args),
        Command::Generate(args) => engine::generate(&args),
        Command::Detect(args) => detect::run(&args),
        Command::Extract(args) => extract::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Keygen(args) => keygen::run(&args),
        Command::Power(args) => power::run(&args),
        Command::Profile(args) => profile::run(args.command),
        Command::Models(args) => models::run(args),
        Command::Serve(args) => serve::run(&args),
        Command::ApiKey(args) => apikey::run(&args.command),
        Command::Inspect(args) => inspect::run(args.command),
        Command::Eval(args) => engine::eval(&args.command),
        Command::Doctor(args) => doctor::run(&args),
    }
}
