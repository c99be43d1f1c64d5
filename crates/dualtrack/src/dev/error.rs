//! Why `dualtrack dev` does not start, or ended.

use std::net::SocketAddr;

use coordinator::owner::ConfigConflict;

use super::instance::Ended;

/// Why it does not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum DevError {
    /// Two settings contradict each other.
    #[error("settings: {0}")]
    Conflict(#[from] ConfigConflict),
    /// A setting is beyond its range.
    #[error("settings: {key} = {value} is not allowed: {rule}")]
    Setting {
        /// Its key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What must hold.
        rule: &'static str,
    },
    /// Two settings of different sections contradict each other.
    #[error("settings: {key} = {value} contradicts {other} = {other_value}: {rule}")]
    Between {
        /// Its key.
        key: &'static str,
        /// Its value.
        value: String,
        /// The other key.
        other: &'static str,
        /// Its value.
        other_value: String,
        /// What must hold.
        rule: &'static str,
    },
    /// A layer of settings cannot be read, or sets what is not known.
    #[error("settings: {0}")]
    Layer(String),
    /// The folder is another process's.
    #[error("{dir} is used by another dualtrack (pid {pid}): stop it, or give this one another folder with --data")]
    InUse {
        /// The folder.
        dir: String,
        /// Who says that it holds it.
        pid: String,
    },
    /// The folder cannot be made or locked.
    #[error("{what} {path}: {why}")]
    Folder {
        /// What was tried.
        what: &'static str,
        /// Where.
        path: String,
        /// By the system.
        why: String,
    },
    /// The log cannot be opened.
    #[error("the log cannot be opened: {0}")]
    Log(#[from] event_log::LogError),
    /// The store cannot be opened.
    #[error("the store cannot be opened: {0}")]
    Store(#[from] snapshot_store::OpenError),
    /// The port is not to be had.
    #[error("cannot listen on {address}: {why}; give another one with --listen (port 0 takes a free one)")]
    Listen {
        /// Address and port.
        address: SocketAddr,
        /// By the system.
        why: String,
    },
    /// The system gives no threads.
    #[error("cannot start threads: {0}")]
    Threads(String),
    /// A service ended although nobody asked it to.
    #[error("{service} ended: {why}")]
    Ended {
        /// Which.
        service: String,
        /// Why.
        why: String,
    },
    /// Not everything ended in time.
    #[error("did not end in time: {}; nothing is lost, the next start reads it from the log", .0.join(", "))]
    Late(Vec<&'static str>),
}

impl DevError {
    /// The rule with its keys and values, whether it is broken or not; for what is no rule, the error.
    pub fn rule(&self) -> String {
        match self {
            Self::Conflict(conflict) => {
                let ConfigConflict { first, first_value, second, second_value, rule } = conflict;
                format!("`coordinator.{first}` = {first_value}, `coordinator.{second}` = {second_value}: {rule}")
            }
            Self::Setting { key, value, rule } => format!("`{key}` = {value}: {rule}"),
            Self::Between { key, value, other, other_value, rule } => {
                format!("`{key}` = {value}, `{other}` = {other_value}: {rule}")
            }
            Self::Layer(_)
            | Self::InUse { .. }
            | Self::Folder { .. }
            | Self::Log(_)
            | Self::Store(_)
            | Self::Listen { .. }
            | Self::Threads(_)
            | Self::Ended { .. }
            | Self::Late(_) => self.to_string(),
        }
    }

    /// Whether the settings are to blame, so that starting again changes nothing.
    pub const fn is_usage(&self) -> bool {
        match self {
            Self::Conflict(_) | Self::Setting { .. } | Self::Between { .. } | Self::Layer(_) => true,
            Self::InUse { .. }
            | Self::Folder { .. }
            | Self::Log(_)
            | Self::Store(_)
            | Self::Listen { .. }
            | Self::Threads(_)
            | Self::Ended { .. }
            | Self::Late(_) => false,
        }
    }
}

impl From<Ended> for DevError {
    fn from(Ended { service, why }: Ended) -> Self {
        Self::Ended { service, why }
    }
}
