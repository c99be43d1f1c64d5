//! The REST contract of design.md §8: bodies of requests and answers, the closed list of problem
//! codes, limits. The edge, the clients and the worker SDK speak these shapes; nothing in here knows
//! a server or a socket.
//!
//! Ids, incarnations and execution ids are strings (JavaScript rounds integers above 2^53), times
//! are Unix ms, durations end in `_ms`, hashes are 64 hexadecimal digits, bytes are Base64 (RFC 4648,
//! with padding). Requests refuse fields they do not know; whoever reads answers ignores them, so
//! that a newer server may say more.
//!
//! Every body says its JSON schema too (`schemars`), with the limits of [`MAX_PAYLOAD_BYTES`] and its
//! neighbours: the edge makes the OpenAPI document of it.

mod conversions;
mod create;
pub mod forms;
mod limits;
mod lists;
mod operate;
mod problem;
mod report;
mod stream;
mod upstream;
mod worker;

pub use create::*;
pub use forms::{BadHash, parse_hash};
pub use limits::*;
pub use lists::*;
pub use operate::*;
pub use problem::{Code, Problem, Retry};
pub use report::*;
pub use stream::*;
pub use upstream::*;
pub use worker::*;
