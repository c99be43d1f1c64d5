//! The session with the nodes: what is sent goes through here, in a place of the gate, prepared and
//! within its time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{self, TryStreamExt as _};
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::cluster::ClusterState;
use scylla::deserialize::row::DeserializeRow;
use scylla::frame::types::{Consistency, SerialConsistency};
use scylla::policies::load_balancing::DefaultPolicy;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use secrecy::ExposeSecret as _;
use uuid::Uuid;

use super::AT_ONCE;
use super::config::{CassandraConfig, CassandraConsistency};
use super::error::ConnectError;
use super::gate::Gate;
use super::mutation::{Mutation, Row, together};
use super::tls::client_config;
use crate::StoreError;

/// Rows of one page.
pub(super) const PAGE: i32 = 1_000;

/// A connection that says nothing for this long is asked, and given up when it stays silent as long.
const KEEPALIVE: Duration = Duration::from_secs(5);

/// Opens a session; no keyspace is used yet.
pub(super) async fn open(config: &CassandraConfig) -> Result<Session, ConnectError> {
    config.validate().map_err(ConnectError::Refused)?;
    let nodes = DefaultPolicy::builder()
        .prefer_datacenter(config.local_dc.clone())
        .permit_dc_failover(false)
        .token_aware(true)
        .build();
    let profile = ExecutionProfile::builder()
        .consistency(match config.consistency {
            CassandraConsistency::LocalQuorum => Consistency::LocalQuorum,
            CassandraConsistency::Quorum => Consistency::Quorum,
        })
        .serial_consistency(Some(match config.consistency {
            CassandraConsistency::LocalQuorum => SerialConsistency::LocalSerial,
            CassandraConsistency::Quorum => SerialConsistency::Serial,
        }))
        .request_timeout(Some(config.request_timeout))
        .load_balancing_policy(nodes)
        .build();
    let mut builder = SessionBuilder::new()
        .known_nodes(&config.contact_points)
        .default_execution_profile_handle(profile.into_handle())
        .connection_timeout(config.connect_timeout)
        .tls_context(client_config(config.tls.as_ref()).map_err(ConnectError::Refused)?)
        .keepalive_interval(KEEPALIVE)
        .keepalive_timeout(KEEPALIVE)
        .keyspaces_to_fetch([config.keyspace.as_str()])
        .schema_agreement_interval(Duration::from_millis(20));
    if let (Some(user), Some(password)) = (&config.user, &config.password) {
        builder = builder.user(user, password.expose_secret());
    }
    let session = builder.build().await.map_err(|why| ConnectError::Unavailable(why.to_string()))?;
    let state = session.get_cluster_state();
    let mut centres: Vec<_> = state.get_nodes_info().iter().filter_map(|node| node.datacenter.as_deref()).collect();
    centres.sort_unstable();
    centres.dedup();
    if !centres.contains(&config.local_dc.as_str()) {
        let rule = format!("there is no such data centre; the nodes name {}", centres.join(", "));
        return Err(ConnectError::Refused(super::config::refused("local_dc", &config.local_dc, rule)));
    }
    Ok(session)
}

/// Prepares a statement. All of ours may be sent twice: rows carry their timestamps.
pub(super) async fn prepare(session: &Session, cql: &str) -> Result<PreparedStatement, ConnectError> {
    let prepared = session.prepare(cql).await;
    let mut prepared = prepared.map_err(|why| ConnectError::Unavailable(format!("cannot prepare {cql:?}: {why}")))?;
    prepared.set_is_idempotent(true);
    prepared.set_page_size(PAGE);
    Ok(prepared)
}

/// A session with a keyspace in use.
pub(super) struct Connection {
    session: Session,
    gate: Gate,
    mutations: AtomicU64,
}

impl Connection {
    pub fn new(session: Session, config: &CassandraConfig) -> Self {
        let gate = Gate::new(config.max_in_flight, config.request_timeout);
        Self { session, gate, mutations: AtomicU64::new(0) }
    }

    /// Mutations that were sent: writes of one partition.
    pub fn mutations(&self) -> u64 {
        self.mutations.load(Ordering::Relaxed)
    }

    /// Sends a statement that writes.
    pub async fn write(&self, statement: &PreparedStatement, values: impl SerializeRow) -> Result<(), StoreError> {
        let place = self.gate.enter().await?;
        self.mutations.fetch_add(1, Ordering::Relaxed);
        self.session.execute_unpaged(statement, values).await.map_err(away)?;
        place.answered();
        Ok(())
    }

    /// Sends mutations, those that go to the same nodes together. With a second gate each request waits for a
    /// place there first.
    pub async fn write_all(&self, mutations: Vec<Mutation>, behind: Option<&Gate>) -> Result<(), StoreError> {
        let state = self.session.get_cluster_state();
        let requests = together(mutations, |mutation| home(&state, mutation));
        let sent = requests.into_iter().map(|request| async move {
            match behind {
                Some(gate) => {
                    let place = gate.enter().await?;
                    self.send(request).await?;
                    place.answered();
                }
                None => self.send(request).await?,
            }
            Ok(())
        });
        stream::iter(sent).buffer_unordered(AT_ONCE).try_collect().await
    }

    async fn send(&self, request: Vec<Mutation>) -> Result<(), StoreError> {
        let place = self.gate.enter().await?;
        self.mutations.fetch_add(request.len() as u64, Ordering::Relaxed);
        let rows: Vec<Row> = request.into_iter().flat_map(|mutation| mutation.rows).collect();
        if let [row] = &rows[..] {
            self.session.execute_unpaged(&row.statement, &row.values).await.map_err(away)?;
        } else {
            let (statements, values): (Vec<_>, Vec<_>) =
                rows.into_iter().map(|row| (row.statement, row.values)).unzip();
            let mut batch = Batch::new(BatchType::Unlogged);
            statements.into_iter().for_each(|statement| batch.append_statement(statement));
            batch.set_is_idempotent(true);
            self.session.batch(&batch, values).await.map_err(away)?;
        }
        place.answered();
        Ok(())
    }

    /// Reads one page; the state leads to the next one, `None`: there is none.
    pub async fn page<R>(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow,
        from: PagingState,
    ) -> Result<(Vec<R>, Option<PagingState>), StoreError>
    where
        R: for<'frame, 'metadata> DeserializeRow<'frame, 'metadata>,
    {
        let place = self.gate.enter().await?;
        let (found, next) = self.session.execute_single_page(statement, values, from).await.map_err(away)?;
        place.answered();
        let undecodable = |why: &dyn std::fmt::Display| {
            StoreError::Damaged(format!("answer to {:?} cannot be decoded: {why}", statement.get_statement()))
        };
        let found = found.into_rows_result().map_err(|why| undecodable(&why))?;
        let rows = found.rows::<R>().map_err(|why| undecodable(&why))?;
        let rows: Vec<R> = rows.collect::<Result<_, _>>().map_err(|why| undecodable(&why))?;
        let next = match next {
            PagingStateResponse::HasMorePages { state } => Some(state),
            PagingStateResponse::NoMorePages => None,
        };
        Ok((rows, next))
    }

    /// Reads page by page until all is there.
    pub async fn all<R>(&self, statement: &PreparedStatement, values: &impl SerializeRow) -> Result<Vec<R>, StoreError>
    where
        R: for<'frame, 'metadata> DeserializeRow<'frame, 'metadata>,
    {
        let (mut rows, mut next) = self.page(statement, values, PagingState::start()).await?;
        while let Some(from) = next {
            let (more, after) = self.page(statement, values, from).await?;
            rows.extend(more);
            next = after;
        }
        Ok(rows)
    }

    /// Reads the row of a whole key.
    pub async fn one<R>(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow,
    ) -> Result<Option<R>, StoreError>
    where
        R: for<'frame, 'metadata> DeserializeRow<'frame, 'metadata>,
    {
        Ok(self.page(statement, values, PagingState::start()).await?.0.pop())
    }
}

// Whatever the nodes or the way to them say: the same call may be repeated.
fn away(why: impl std::fmt::Display) -> StoreError {
    StoreError::Unavailable(why.to_string())
}

// The nodes that have a mutation's partition. Where there is one node, or they do not tell, all share it.
fn home(state: &ClusterState, mutation: &Mutation) -> BTreeSet<Uuid> {
    let row = mutation.rows.first().filter(|_| state.get_nodes_info().len() > 1);
    let token = row.and_then(|row| row.statement.calculate_token(&row.values).ok().flatten());
    match (row.and_then(|row| row.statement.get_table_spec()), token) {
        (Some(table), Some(token)) => {
            let replicas = state.get_token_endpoints(table.ks_name(), table.table_name(), token);
            replicas.into_iter().map(|(node, _)| node.host_id).collect()
        }
        (Some(_) | None, _) => BTreeSet::new(),
    }
}
