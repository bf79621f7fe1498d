//! From a request to library calls to a reply, shared by every route that judges texts.
//!
//! The role of the caller decides what a request may ask and how much a reply says. No statistics
//! and no verdict is made here.

mod input;
mod plan;
mod reply;
mod request;
mod work;

pub(super) use input::Input;
pub(super) use plan::{Form, Inputs, Origin, Plan};
pub(super) use reply::{Outcome, json};
pub(super) use request::DetectRequest;
pub(super) use work::Asker;
