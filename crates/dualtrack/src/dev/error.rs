//! Why `dualtrack dev` does not start, or ended.

use std::net::SocketAddr;

use service_host::SettingsError;

use super::instance::Ended;

/// Why it does not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum DevError {
    /// The settings cannot work.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Spans cannot be exported.
    #[error("settings: {0}")]
    Otlp(#[from] telemetry::OtlpError),
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
    /// What was asked for cannot be printed.
    #[error("{0}")]
    Output(String),
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
    /// Whether the settings are to blame, so that starting again changes nothing.
    pub const fn is_usage(&self) -> bool {
        match self {
            Self::Settings(_) | Self::Otlp(_) => true,
            Self::InUse { .. }
            | Self::Folder { .. }
            | Self::Log(_)
            | Self::Store(_)
            | Self::Listen { .. }
            | Self::Threads(_)
            | Self::Ended { .. }
            | Self::Output(_)
            | Self::Late(_) => false,
        }
    }
}

impl From<Ended> for DevError {
    fn from(Ended { service, why }: Ended) -> Self {
        Self::Ended { service, why }
    }
}
