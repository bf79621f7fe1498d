//! The program `wm`: arguments to library calls to output to an exit code.
//!
//! No rule of the mark lives here. Arguments are parsed as given (`args`), resolved to the
//! library's own validated values (`resolve`), and only those go down to the commands.

mod args;
mod commands;
mod exit;
mod keep;
mod output;
mod plot;
mod resolve;

use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    match commands::run(cli.command) {
        Ok(exit) => exit.into(),
        Err(error) => exit::report(&error).into(),
    }
}
