//! The endpoints of those who create and read tasks, over real sockets: one instance, and two that
//! pass requests on to each other.

mod bad_input;
mod board;
mod document;
mod gone;
mod history;
mod kit;
mod life;
mod limits;
mod lists;
mod numbers;
mod operate;
mod ownerless;
mod registry;
mod rules;
mod slow;
mod stream;
mod two;
