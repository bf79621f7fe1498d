//! The program as a user meets it: arguments, exit codes, standard output and standard error.

mod detect;
#[cfg(feature = "engine")]
mod generate;
mod inspect;
mod keys;
mod streams;
mod support;
