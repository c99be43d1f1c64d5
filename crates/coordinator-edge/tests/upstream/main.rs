//! The endpoints of those who create and read tasks, over real sockets: one instance, and two that
//! pass requests on to each other.

mod bad_input;
mod kit;
mod life;
mod limits;
mod numbers;
mod slow;
mod two;
