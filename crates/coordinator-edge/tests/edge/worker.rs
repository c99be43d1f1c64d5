//! Workers over REST: the SDK against the real edge, and the endpoints as people see them.

mod frozen;
mod kit;
mod raw;
mod sdk;
