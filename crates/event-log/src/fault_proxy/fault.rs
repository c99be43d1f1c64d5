//! What can be done to connections.

use std::time::Duration;

/// What the proxy does to all its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Forwards.
    None,
    /// Requests arrive, responses are swallowed: the half that answers is gone.
    DropResponses,
    /// Requests are swallowed; what is on its way back still arrives.
    DropRequests,
    /// Nothing arrives anywhere; connections stay open.
    Blackhole,
    /// Nothing arrives until the fault is over, and then all of it does, also of an end that is gone by then.
    Hold,
    /// Everything arrives later, in its order: by `by` and evenly up to `jitter` more, per direction.
    /// What is sent meanwhile is under way at the same time, as on a long line.
    Delay {
        /// Least delay.
        by: Duration,
        /// Most that is added.
        jitter: Duration,
    },
    /// A narrow line: so many bytes a second pass, per connection and direction; at least 1.
    Rate {
        /// Bytes a second.
        bytes_per_s: u64,
    },
    /// After this many further bytes of requests, over all connections, the connection that
    /// carries the next one is closed in the middle of it; then the proxy forwards again.
    CutRequestsAfter(u64),
    /// As [`Fault::CutRequestsAfter`], for responses.
    CutResponsesAfter(u64),
    /// New connections are closed at once, and so are the open ones.
    Refuse,
    /// As [`Fault::Refuse`], by a reset (RST) to both ends instead of an orderly close.
    Reset,
}

impl Fault {
    /// Whether no connection lives on.
    pub(super) const fn closes(self) -> bool {
        match self {
            Self::Refuse | Self::Reset => true,
            Self::None
            | Self::DropResponses
            | Self::DropRequests
            | Self::Blackhole
            | Self::Hold
            | Self::Delay { .. }
            | Self::Rate { .. }
            | Self::CutRequestsAfter(_)
            | Self::CutResponsesAfter(_) => false,
        }
    }
}
