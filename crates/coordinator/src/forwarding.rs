//! Commands and answers as bytes, so that an instance can pass a request on to the one that owns
//! the partition: MessagePack with named fields, so that instances of neighbouring releases
//! understand each other in what both know; what one does not know is a typed error, never a guess.
//!
//! No transport and no routing in here: see [`crate::surface`].

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use snapshot_store::SnapshotRow;
use task_core::{CoreState, Row};
use task_events::Offset;
use worker_protocol::{HeartbeatAnswer, PollAnswer};

use crate::owner::{Answer, Command, Why};
use crate::surface::{WorkerSeen, WorkersAsk};

/// Why a command or an answer cannot be passed on.
#[derive(Debug, thiserror::Error)]
pub enum ForwardingError {
    /// It cannot be written: a defect here.
    #[error("{what} cannot be encoded: {why}")]
    Encode {
        /// `command` or `answer`.
        what: &'static str,
        /// By the encoder.
        why: rmp_serde::encode::Error,
    },
    /// It is not what this release understands.
    #[error("{what} of {len} bytes cannot be decoded: {why}")]
    Decode {
        /// `command` or `answer`.
        what: &'static str,
        /// Length, bytes.
        len: usize,
        /// By the decoder.
        why: rmp_serde::decode::Error,
    },
    /// Something follows it.
    #[error("{what} of {len} bytes is followed by {rest} bytes")]
    Trailing {
        /// `command` or `answer`.
        what: &'static str,
        /// Length of it all, bytes.
        len: usize,
        /// How many of them are too many.
        rest: usize,
    },
}

/// The bytes of a command.
pub fn encode_command(command: &Command) -> Result<Vec<u8>, ForwardingError> {
    encode("command", command)
}

/// The command of these bytes; all of them.
pub fn decode_command(bytes: &[u8]) -> Result<Command, ForwardingError> {
    decode("command", bytes)
}

/// The bytes of an answer.
pub fn encode_answer(answer: &Answer) -> Result<Vec<u8>, ForwardingError> {
    encode("answer", answer)
}

/// The answer of these bytes; all of them.
pub fn decode_answer(bytes: &[u8]) -> Result<Answer, ForwardingError> {
    decode("answer", bytes)
}

/// The bytes of what is asked about workers.
pub fn encode_ask(ask: &WorkersAsk) -> Result<Vec<u8>, ForwardingError> {
    encode("command", ask)
}

/// What these bytes ask; all of them.
pub fn decode_ask(bytes: &[u8]) -> Result<WorkersAsk, ForwardingError> {
    decode("command", bytes)
}

/// The bytes of workers seen.
pub fn encode_seen(seen: &[WorkerSeen]) -> Result<Vec<u8>, ForwardingError> {
    encode("answer", &seen)
}

/// The workers of these bytes; all of them.
pub fn decode_seen(bytes: &[u8]) -> Result<Vec<WorkerSeen>, ForwardingError> {
    decode("answer", bytes)
}

fn encode<T: Serialize>(what: &'static str, value: &T) -> Result<Vec<u8>, ForwardingError> {
    rmp_serde::to_vec_named(value).map_err(|why| ForwardingError::Encode { what, why })
}

fn decode<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T, ForwardingError> {
    let len = bytes.len();
    let mut rest = bytes;
    let value = rmp_serde::from_read(&mut rest).map_err(|why| ForwardingError::Decode { what, len, why })?;
    if rest.is_empty() { Ok(value) } else { Err(ForwardingError::Trailing { what, len, rest: rest.len() }) }
}

/// What to tell whoever sent this command when it may have arrived and no answer came: of one that
/// writes nobody knows what became of it; one that reads can be asked again.
pub const fn unanswered(command: &Command) -> Answer {
    match command {
        Command::Create(_)
        | Command::Report(_)
        | Command::Cancel { .. }
        | Command::Replay { .. }
        | Command::Review { .. }
        | Command::Release { .. }
        | Command::Activate { .. }
        | Command::Queue { .. } => Answer::OutcomeUnknown { task_id: None },
        // What was handed out and did not arrive is not listed by the next poll and comes back.
        Command::Poll(_) => Answer::Poll(PollAnswer::Unavailable),
        Command::Heartbeat(_) => Answer::Heartbeat(HeartbeatAnswer::Unavailable),
        Command::Get { .. } | Command::Await { .. } | Command::Why { .. } | Command::Find { .. } | Command::Look(_) => {
            Answer::Unavailable(Why::NotOwner)
        }
    }
}

/// [`SnapshotRow`] as it is passed on.
#[derive(Serialize, Deserialize)]
#[serde(remote = "SnapshotRow")]
pub(crate) struct RowForm {
    core: CoreState,
    row: Arc<Row>,
    closed_at: Option<Offset>,
}
