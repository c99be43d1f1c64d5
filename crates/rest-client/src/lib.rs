//! A typed client of the REST contract: one method per endpoint, problems as values.
//!
//! It sends nothing twice by itself. Whether a failed call may be repeated is [`ClientError::retry`];
//! a create with an idempotency key is repeated by [`Client::create_persistently`], whose pauses are
//! the caller's, so that nothing in here reads a clock. Plain HTTP only: TLS is a later wave.

mod client;
mod error;
mod lists;
mod operate;
mod persistence;
mod stream;
mod transport;

pub use client::{Client, Health};
pub use error::ClientError;
pub use persistence::Pause;
pub use rest_contract as contract;
pub use transport::Timeouts;
