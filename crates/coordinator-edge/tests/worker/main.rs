//! Workers over REST: the SDK against the real edge, and the endpoints as people see them.

#[path = "../shared/checked.rs"]
mod checked;
mod frozen;
mod kit;
mod raw;
mod sdk;
