//! What can go wrong with a call, and what may be done next.

use rest_contract::{Problem, Retry};

/// Longest piece of an unreadable answer that is shown, characters.
const SHOWN_CHARS: usize = 200;

/// Why a call has no answer, or not the one that was hoped for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// The server says what is wrong.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// Nothing was sent, or what was sent only reads: no server there, or it did not answer in time.
    #[error("{url} cannot be reached: {why}")]
    Unreachable {
        /// Where a server was expected.
        url: String,
        /// By the network.
        why: String,
    },
    /// It was sent, it may write, and no answer came: whether it was done is not known.
    #[error("{url} gave no answer to {what}, so its outcome is not known: {why}")]
    UnknownOutcome {
        /// Where it was sent.
        url: String,
        /// Method and path.
        what: String,
        /// By the network.
        why: String,
    },
    /// An answer that this client cannot read: no Dualtrack server, a proxy, or a newer version.
    #[error("{url} answered {what} with status {status} and a body that cannot be read ({why}): {body:?}")]
    Unreadable {
        /// Where it was sent.
        url: String,
        /// Method and path.
        what: String,
        /// HTTP status.
        status: u16,
        /// By the decoder.
        why: String,
        /// Beginning of the body.
        body: String,
        /// The call only reads.
        reads: bool,
    },
    /// It cannot be sent at all: a URL or a header value that HTTP does not allow.
    #[error("{what} {value:?} cannot be used: {why}")]
    Unsendable {
        /// What is wrong.
        what: &'static str,
        /// It.
        value: String,
        /// Why.
        why: String,
    },
}

impl ClientError {
    /// What a caller may do next.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Problem(problem) => problem.code.retry(),
            Self::Unreachable { .. } => Retry::Later,
            Self::UnknownOutcome { .. } => Retry::AskFirst,
            Self::Unreadable { reads: true, .. } => Retry::Later,
            Self::Unreadable { reads: false, .. } => Retry::AskFirst,
            Self::Unsendable { .. } => Retry::Never,
        }
    }

    /// Whether a create that carried an idempotency key may be sent again as it is: the key makes a
    /// second task impossible, so an unknown outcome is asked for by sending it again.
    pub fn retry_with_key(&self) -> bool {
        match self.retry() {
            Retry::Later | Retry::AskFirst => true,
            Retry::Never => false,
        }
    }

    /// The server's problem, if it is one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) => Some(problem),
            Self::Unreachable { .. }
            | Self::UnknownOutcome { .. }
            | Self::Unreadable { .. }
            | Self::Unsendable { .. } => None,
        }
    }

    pub(crate) fn unreadable(url: &str, what: &str, status: u16, why: String, body: &[u8], reads: bool) -> Self {
        let body = String::from_utf8_lossy(body).chars().take(SHOWN_CHARS).collect();
        Self::Unreadable { url: url.to_owned(), what: what.to_owned(), status, why, body, reads }
    }
}

impl From<Problem> for ClientError {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}
