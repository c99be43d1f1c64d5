//! Connections to the engines. An engine that is away at the start is waited for: programs and engines
//! start in any order.

use std::future::Future;
use std::time::Duration;

use assignment_lock::RedisLock;
use event_log::{KafkaConfig, KafkaLog, LogError, TopicSpec};
use futures::future::{Either, select};
use service_kit::{Clock as _, Shutdown, SystemClock};
use snapshot_store::{CassandraStore, ConnectError};

use crate::prover::Finding;
use crate::sections::{LockSection, LogSection, StoreSection};
use crate::settings::SettingsError;

/// Longest an engine is waited for at the start, ms.
const START_MS: u64 = 60_000;

/// What the log's client gets to end once its service has, see [`KafkaLog::close`].
pub const CLOSE: Duration = Duration::from_secs(2);

/// Pause between two lines about an engine that is waited for, ms.
const TELL_MS: u64 = 5_000;

/// Pause between two tries, ms.
const AGAIN_MS: u64 = 500;

/// What gathers for one that reads without hurry: so long, or so many bytes.
const GATHERS_FOR: Duration = Duration::from_millis(50);
const GATHERED_BYTES: u32 = 64 << 10;

/// Why an engine cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// It does not answer, or not yet.
    #[error("{engine} cannot be reached: {why}; `{section}` of the settings says where it is")]
    Unavailable {
        /// Which.
        engine: &'static str,
        /// Section of the settings.
        section: &'static str,
        /// By its client.
        why: String,
    },
    /// It is there and refuses, or must not be used.
    #[error("{engine}: {why}")]
    Refused {
        /// Which.
        engine: &'static str,
        /// By its client.
        why: String,
    },
    /// It is not as it must be.
    #[error("{}", told(.0))]
    NotAsItMustBe(Vec<Finding>),
    /// The program was asked to end while it waited.
    #[error("asked to end before it had started")]
    Stopped,
    /// The settings cannot work.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

fn told(findings: &[Finding]) -> String {
    let all: Vec<_> = findings.iter().map(ToString::to_string).collect();
    format!("refuses to start:\n  {}", all.join("\n  "))
}

impl EngineError {
    /// Whether starting again changes nothing.
    pub const fn is_final(&self) -> bool {
        match self {
            Self::Refused { .. } | Self::NotAsItMustBe(_) | Self::Settings(_) => true,
            Self::Unavailable { .. } | Self::Stopped => false,
        }
    }

    /// What the event log's adapter said.
    pub fn of_log(error: LogError) -> Self {
        let why = error.to_string();
        match error {
            LogError::Unavailable(_) | LogError::NotMember(_) => {
                Self::Unavailable { engine: "Kafka", section: "[log]", why }
            }
            LogError::Refused(_) | LogError::OutOfRange { .. } | LogError::Damaged { .. } => {
                Self::Refused { engine: "Kafka", why }
            }
        }
    }
}

impl EngineError {
    /// What the store's adapter said.
    pub fn of_store(error: ConnectError) -> Self {
        let why = error.to_string();
        if error.is_retryable() {
            return Self::Unavailable { engine: "Cassandra", section: "[store]", why };
        }
        Self::Refused { engine: "Cassandra", why }
    }
}

/// Tries again while an engine is away, for a minute at most, or until `shutdown` is requested.
///
/// # Errors
/// Those of the last try.
pub async fn connected<T, F>(shutdown: &Shutdown, mut connect: impl FnMut() -> F) -> Result<T, EngineError>
where
    F: Future<Output = Result<T, EngineError>>,
{
    let until = SystemClock.boot_ms() + START_MS;
    let mut tell_at = 0;
    loop {
        let tried = match select(Box::pin(connect()), shutdown.requested()).await {
            Either::Left((tried, _)) => tried,
            Either::Right(_) => return Err(EngineError::Stopped),
        };
        match tried {
            Err(EngineError::Unavailable { engine, why, .. }) if SystemClock.boot_ms() < until => {
                if SystemClock.boot_ms() >= tell_at {
                    tracing::warn!(engine, why, "waiting for an engine");
                    tell_at = SystemClock.boot_ms() + TELL_MS;
                }
                SystemClock.sleep_until(SystemClock.boot_ms() + AGAIN_MS).await;
            }
            ended => return ended,
        }
    }
}

impl LogSection {
    /// Opens the topic, which must be there and as it must be.
    ///
    /// # Errors
    /// [`EngineError`].
    pub async fn connect(&self, client_id: &str) -> Result<KafkaLog, EngineError> {
        let (config, spec) = self.kafka(client_id)?;
        KafkaLog::open(config, &spec).await.map_err(EngineError::of_log)
    }

    /// [`LogSection::connect`] for a service whose decisions nobody waits for in that very moment: what it reads
    /// gathers for 50 ms, which spares the broker most of its answers.
    ///
    /// # Errors
    /// [`EngineError`].
    pub async fn connect_unhurried(&self, client_id: &str) -> Result<KafkaLog, EngineError> {
        let (config, spec) = self.kafka(client_id)?;
        let config = KafkaConfig { fetch_min_bytes: GATHERED_BYTES, fetch_wait: GATHERS_FOR, ..config };
        KafkaLog::open(config, &spec).await.map_err(EngineError::of_log)
    }

    /// What the topic must be like.
    ///
    /// # Errors
    /// The password's file cannot be used.
    pub fn spec(&self) -> Result<TopicSpec, SettingsError> {
        Ok(self.kafka("dualtrack")?.1)
    }
}

impl StoreSection {
    /// Opens the keyspace, whose tables must be there.
    ///
    /// # Errors
    /// [`EngineError`].
    pub async fn connect(&self) -> Result<CassandraStore, EngineError> {
        CassandraStore::connect(self.cassandra()?).await.map_err(EngineError::of_store)
    }
}

impl LockSection {
    /// Locks on the server, which is met with the first request: without it tasks flow all the same.
    ///
    /// # Errors
    /// [`EngineError::Refused`]: a setting cannot be used.
    pub fn connect(&self) -> Result<RedisLock, EngineError> {
        let refused =
            |why: assignment_lock::RedisRefused| EngineError::Refused { engine: "Redis", why: why.to_string() };
        RedisLock::connect(&self.redis()?).map_err(refused)
    }
}
