//! What a worker and a supervisor say to each other: frames of MessagePack over two pipes. Both are
//! the same program, so there is one version of it.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use tokio_util::codec::LengthDelimitedCodec;

use super::Captured;
use crate::worker::tree::Status;

/// Longest frame, bytes: parameters and recorded outputs of an attempt are the largest.
const MAX_FRAME_BYTES: usize = 64 << 20;

/// What the worker says.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToSupervisor {
    /// First of all: what to run.
    Start(Box<Start>),
    /// Until when the tree may live, ms on the boot clock.
    Until(u64),
    /// Asks the program to end (SIGTERM to its process group), and ends it so many ms later.
    Terminate(u64),
    /// Ends the tree at once.
    Kill,
    /// A line for the program's descriptor 4.
    Reply(Bytes),
}

/// What to run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Start {
    /// Program and arguments.
    pub command: Vec<Vec<u8>>,
    /// Its whole environment; the scratch folder's names are added.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    /// What it reads on stdin.
    pub stdin: Bytes,
    /// Content of the file with recorded steps.
    pub steps: Bytes,
    /// Until when the tree may live, ms on the boot clock; moved by [`ToSupervisor::Until`].
    pub until: u64,
    /// Until when it may live at most, ms on the boot clock.
    pub at_most_until: u64,
    /// Most memory of the whole tree, bytes.
    pub memory: Option<u64>,
}

/// What the supervisor says.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromSupervisor {
    /// A line that the program wrote to descriptor 3.
    Line {
        /// Its beginning, without the line's end.
        begin: Bytes,
        /// How long it is, bytes.
        bytes: u64,
    },
    /// Nothing of the tree is left; nothing more is said.
    Ended(Box<Ended>),
}

/// How it ended.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ended {
    /// The program itself.
    pub how: How,
    /// Why the supervisor ended it, if it did.
    pub cut: Option<Cut>,
    /// Beginning and end of stdout.
    pub stdout: Captured,
    /// Beginning and end of stderr.
    pub stderr: Captured,
    /// Last line of stdout that is not blank.
    pub last_line: Option<LastLine>,
}

/// How the program itself ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// It was never started.
    NotStarted(String),
    /// So.
    Ended(Status),
}

/// Why the supervisor ended the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cut {
    /// The worker said so.
    Told,
    /// Its time was up: the worker did not say that the lease goes on.
    TimeUp,
    /// The tree used so much memory, bytes.
    Memory(u64),
}

/// A line of stdout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastLine {
    /// Its beginning: all of it, unless it is longer than a result may be.
    pub begin: Bytes,
    /// How long it is, bytes.
    pub bytes: u64,
}

/// How frames are told apart.
pub fn codec() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder().max_frame_length(MAX_FRAME_BYTES).new_codec()
}

/// A message as the content of a frame.
pub fn to_frame(message: &impl Serialize) -> io::Result<Bytes> {
    rmp_serde::to_vec(message).map(Bytes::from).map_err(io::Error::other)
}

/// And back.
pub fn from_frame<T: DeserializeOwned>(frame: &[u8]) -> io::Result<T> {
    rmp_serde::from_slice(frame).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
}
