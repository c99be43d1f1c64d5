//! The endpoints of those who create and read tasks, over real sockets: one instance, and two that
//! pass requests on to each other.

mod bad_input;
#[path = "../shared/checked.rs"]
mod checked;
mod document;
mod gone;
mod kit;
mod life;
mod limits;
mod lists;
mod numbers;
mod operate;
mod registry;
mod slow;
mod stream;
mod two;
