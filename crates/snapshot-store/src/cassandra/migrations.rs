//! The tables, made by numbered files that only add. `schema_migrations` says which were applied, and
//! from which text.
//!
//! Several programs may migrate at once: one at a time holds `schema_lock` (a lightweight transaction
//! that expires by itself), every statement says IF NOT EXISTS, and the next one is sent when all nodes
//! agree on the schema.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use scylla::client::session::Session;
use scylla::frame::types::Consistency;
use scylla::serialize::row::SerializeRow;
use scylla::statement::Statement;
use scylla::value::CqlTimestamp;
use task_events::Sha256Hash;

use super::config::CassandraConfig;
use super::connection::open;
use super::error::ConnectError;

/// Number, name and text of each, ascending.
const MIGRATIONS: &[(u32, &str, &str)] = &[(1, "tables", include_str!("migrations/0001_tables.cql"))];

/// What the migrations need themselves.
const OWN_TABLES: &str = "
CREATE TABLE IF NOT EXISTS schema_migrations (version int PRIMARY KEY, name text, sha256 text, applied_at timestamp);
CREATE TABLE IF NOT EXISTS schema_lock (name text PRIMARY KEY, holder text);
";

/// A statement that changes the schema takes its time.
const PATIENCE: Duration = Duration::from_secs(30);

/// The lock of a migrator that died goes after this, seconds.
const LOCK_S: i32 = 120;

/// Pause before the lock is asked for again, and how often that is done.
const PAUSE: Duration = Duration::from_millis(200);
const TRIES: u32 = 900;

/// What a keyspace is at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Highest migration that was applied; 0: none.
    pub version: u32,
    /// Highest one this program knows, and needs.
    pub needed: u32,
    /// Those of this call, ascending; of [`check`]: those that are missing.
    pub migrations: Vec<u32>,
}

/// Makes the keyspace and the tables that are missing. Safe to repeat, and while programs run.
///
/// # Errors
/// A setting that cannot be used, nodes that do not answer, a keyspace that was made by other texts.
pub fn migrate(config: &CassandraConfig) -> BoxFuture<'_, Result<Schema, ConnectError>> {
    async move {
        let session = open(config).await?;
        let (keyspace, dc, copies) = (&config.keyspace, &config.local_dc, config.replication);
        let replication = format!("{{'class': 'NetworkTopologyStrategy', '{dc}': {copies}}}");
        change(&session, &format!("CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {replication}")).await?;
        session.use_keyspace(keyspace, false).await.map_err(away)?;
        for statement in statements(OWN_TABLES) {
            change(&session, &statement).await?;
        }
        let holder = lock(&session, config).await?;
        let done = apply(&session, config).await;
        // Not held any longer than needed; else it expires.
        let freed = ask(&session, "DELETE FROM schema_lock WHERE name = 'migrate' IF holder = ?", (&holder,)).await;
        if let Err(why) = freed {
            tracing::warn!(%why, "the lock of migrations was not given back; it expires within {LOCK_S} s");
        }
        done
    }
    .boxed()
}

/// Says what a keyspace is at; changes nothing.
///
/// # Errors
/// As [`migrate`]; also when the keyspace is not there.
pub fn check(config: &CassandraConfig) -> BoxFuture<'_, Result<Schema, ConnectError>> {
    async move {
        let session = open(config).await?;
        used(&session, config).await
    }
    .boxed()
}

/// Uses the keyspace, and says what it is at.
pub(super) async fn used(session: &Session, config: &CassandraConfig) -> Result<Schema, ConnectError> {
    let state = session.get_cluster_state();
    let problem =
        |problem: &str| ConnectError::Schema { keyspace: config.keyspace.clone(), problem: problem.to_owned() };
    let Some(keyspace) = state.get_keyspace(&config.keyspace) else {
        return Err(problem("is not there: run `dualtrack store migrate` once"));
    };
    if !keyspace.tables.contains_key("schema_migrations") {
        return Err(problem("has no tables of this program: run `dualtrack store migrate` once"));
    }
    session.use_keyspace(&config.keyspace, false).await.map_err(away)?;
    let applied = applied(session, config).await?;
    let migrations =
        MIGRATIONS.iter().map(|(version, ..)| *version).filter(|version| !applied.contains(version)).collect();
    Ok(Schema { version: applied.last().copied().unwrap_or(0), needed: needed(), migrations })
}

impl Schema {
    /// Whether the program can work with it.
    ///
    /// # Errors
    /// Names what is missing and what to do.
    pub(super) fn complete(&self, config: &CassandraConfig) -> Result<(), ConnectError> {
        if self.migrations.is_empty() {
            return Ok(());
        }
        let (version, needed) = (self.version, self.needed);
        let problem =
            format!("is at schema version {version}, this program needs {needed}: run `dualtrack store migrate`");
        Err(ConnectError::Schema { keyspace: config.keyspace.clone(), problem })
    }
}

fn needed() -> u32 {
    MIGRATIONS.last().map_or(0, |(version, ..)| *version)
}

// Numbers that were applied, ascending. One that was applied from another text is an error: what the
// tables are is not known then.
async fn applied(session: &Session, config: &CassandraConfig) -> Result<Vec<u32>, ConnectError> {
    let found = ask(session, "SELECT version, name, sha256 FROM schema_migrations", ()).await?;
    let found = found.into_rows_result().map_err(away)?;
    let mut versions = Vec::new();
    for row in found.rows::<(i32, Option<String>, Option<String>)>().map_err(away)? {
        let (version, name, sha256) = row.map_err(away)?;
        let version = u32::try_from(version).unwrap_or(0);
        if let Some((_, ours, text)) = MIGRATIONS.iter().find(|(number, ..)| *number == version)
            && sha256.as_deref() != Some(&sha256_of(text))
        {
            let name = name.unwrap_or_default();
            let problem =
                format!("had migration {version} ({name}) applied from another text than this program's ({ours})");
            return Err(ConnectError::Schema { keyspace: config.keyspace.clone(), problem });
        }
        versions.push(version);
    }
    versions.sort_unstable();
    Ok(versions)
}

async fn apply(session: &Session, config: &CassandraConfig) -> Result<Schema, ConnectError> {
    let before = applied(session, config).await?;
    let mut migrations = Vec::new();
    for (version, name, text) in MIGRATIONS.iter().filter(|(version, ..)| !before.contains(version)) {
        for statement in statements(text) {
            change(session, &statement).await?;
        }
        let values = (i32::try_from(*version).unwrap_or(0), *name, sha256_of(text), CqlTimestamp((config.clock)()));
        ask(session, "INSERT INTO schema_migrations (version, name, sha256, applied_at) VALUES (?, ?, ?, ?)", values)
            .await?;
        tracing::info!(version, name, keyspace = %config.keyspace, "migration applied");
        migrations.push(*version);
    }
    let version = applied(session, config).await?.last().copied().unwrap_or(0);
    Ok(Schema { version, needed: needed(), migrations })
}

fn sha256_of(text: &str) -> String {
    Sha256Hash::of(text.as_bytes()).to_string()
}

// Takes the lock, and says under which name.
#[expect(clippy::disallowed_methods, reason = "waits for another program, of whose end nothing tells")]
async fn lock(session: &Session, config: &CassandraConfig) -> Result<String, ConnectError> {
    static NUMBERS: AtomicU32 = AtomicU32::new(0);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let holder = format!("{}-{}-{number}", std::process::id(), (config.clock)());
    let take = format!("INSERT INTO schema_lock (name, holder) VALUES ('migrate', ?) IF NOT EXISTS USING TTL {LOCK_S}");
    let mut there = Statement::new("SELECT holder FROM schema_lock WHERE name = 'migrate'");
    there.set_consistency(Consistency::LocalSerial);
    let mut other = String::new();
    for _ in 0..TRIES {
        ask(session, take.as_str(), (&holder,)).await?;
        let found = ask(session, there.clone(), ()).await?.into_rows_result().map_err(away)?;
        let found: Option<(Option<String>,)> = found.maybe_first_row().map_err(away)?;
        match found.and_then(|(holder,)| holder) {
            Some(now) if now == holder => return Ok(holder),
            Some(now) => other = now,
            None => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(ConnectError::Unavailable(format!("another migration ({other}) holds the lock of {}", config.keyspace)))
}

// The driver waits until all nodes agree.
async fn change(session: &Session, statement: &str) -> Result<(), ConnectError> {
    ask(session, statement, ()).await.map(drop)
}

async fn ask(
    session: &Session,
    statement: impl Into<Statement>,
    values: impl SerializeRow,
) -> Result<scylla::response::query_result::QueryResult, ConnectError> {
    let mut statement = statement.into();
    statement.set_request_timeout(Some(PATIENCE));
    let text = statement.contents.clone();
    session.query_unpaged(statement, values).await.map_err(|why| ConnectError::Unavailable(format!("{text:?}: {why}")))
}

fn away(why: impl std::fmt::Display) -> ConnectError {
    ConnectError::Unavailable(why.to_string())
}

// Statements of a text: without comments, apart at semicolons.
fn statements(text: &str) -> Vec<String> {
    let bare: String =
        text.lines().filter(|line| !line.trim_start().starts_with("--")).flat_map(|line| [line, "\n"]).collect();
    bare.split(';').map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_numbered_in_order_and_only_add() {
        for (at, (version, name, text)) in (1..).zip(MIGRATIONS) {
            assert_eq!(*version, at, "{name}");
            for statement in statements(text) {
                let adds = ["CREATE TABLE IF NOT EXISTS ", "ALTER TABLE ", "CREATE INDEX IF NOT EXISTS "];
                assert!(adds.iter().any(|start| statement.starts_with(start)), "{statement}");
                assert!(!statement.contains(" DROP ") && !statement.contains(" RENAME "), "{statement}");
            }
        }
        assert_eq!(statements(OWN_TABLES).len(), 2);
        assert!(statements(MIGRATIONS[0].2).iter().all(|statement| statement.ends_with([')', '}'])));
    }
}
