//! `wm inspect`: every layer made visible, for teaching and for cross-checks.

mod chain;
mod green_list;
mod tail;
mod tokens;

use anyhow::Result;

use crate::args::InspectCommand;
use crate::commands::engine;
use crate::exit::Exit;

pub(crate) fn run(command: InspectCommand) -> Result<Exit> {
    match command {
        InspectCommand::GreenList(args) => green_list::run(args),
        InspectCommand::Chain(args) => chain::run(&args),
        InspectCommand::Model(args) => engine::inspect_model(&args),
        InspectCommand::Tail(args) => tail::run(&args),
        InspectCommand::Tokens(args) => tokens::run(&args),
    }
}
