//! Why a keyspace cannot be used as a store.

use super::config::CassandraRefused;

/// Why there is no session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// A setting cannot be used: people must change it.
    #[error(transparent)]
    Refused(#[from] CassandraRefused),
    /// No node answers, or none lets this side in; it may pass.
    #[error("snapshot store is unavailable: {0}")]
    Unavailable(String),
    /// The tables are not those this program needs.
    #[error("keyspace {keyspace} {problem}")]
    Schema {
        /// The keyspace.
        keyspace: String,
        /// What is wrong with it, and what to do.
        problem: String,
    },
}

impl ConnectError {
    /// Whether trying again can help without anybody's doing.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable(_) => true,
            Self::Refused(_) | Self::Schema { .. } => false,
        }
    }
}
