//! From a request to library calls to a reply, shared by every route that judges texts.
//!
//! The role of the caller decides what a request may ask and how much a reply says. No statistics
//! and no verdict is made here.

mod capped;
mod input;
mod lines;
mod plan;
mod reading;
mod reply;
mod request;
mod work;

pub(super) use input::Input;
pub(super) use lines::{Line, Lines};
pub(super) use plan::{Entrance, Form, Inputs, Plan};
pub(super) use reading::{notes, read};
pub(super) use reply::{Outcome, in_pieces, json, list};
pub(super) use request::DetectRequest;
pub(super) use work::Asker;
