//! Real adapter: Cassandra 4.1/5 or ScyllaDB, by CQL that both take.
//!
//! Every write has a timestamp of ours (the row clock where there is one) and so may be repeated, also
//! by another instance, and come in any order; a life is a TTL computed from what is written. All
//! statements are prepared once, idempotent, bound in full, answered at LOCAL_QUORUM within a time
//! limit, and only so many are on their way. Nothing is scanned, counted or filtered.
//!
//! What leaves this module is boxed: else each crate that calls it would compile the driver's request
//! machinery anew, which took minutes of every build. An allocation is nothing beside a round trip.

mod checkpoints;
mod coded;
mod config;
mod connection;
mod ended;
mod error;
mod gate;
mod life;
mod listings;
mod migrations;
mod mutation;
mod names;
mod payloads;
mod recent;
mod small;
mod snapshots;
mod spans;
mod tls;
mod writing;

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, TryStreamExt as _};
use futures::{FutureExt as _, StreamExt as _};
use task_core::HistoryEntry;
use task_events::{Offset, PartitionId, Sha256Hash, TaskId, Text};

pub use self::config::{CassandraClient, CassandraConfig, CassandraConsistency, CassandraRefused, CassandraTls};
pub use self::error::ConnectError;
pub use self::migrations::{Schema, check, migrate};

use self::checkpoints::Checkpoints;
use self::connection::Connection;
use self::ended::Ended;
use self::gate::Gate;
use self::listings::Listings;
use self::payloads::{Payloads, Stamps};
use self::recent::Recent;
use self::small::{Acked, Beside, Keys, Secrets};
use self::snapshots::Snapshots;
use self::spans::Spans;
use crate::lifetimes::{KEY_TTL_MS, SNAPSHOT_TTL_MS, after_the_end};
use crate::listing::Listing;
use crate::{
    CheckpointName, Clock, EndedPage, EndedSpan, KeyRow, PayloadItem, RowWrite, SnapshotRow, SnapshotStore, StoreError,
    TaskSummary,
};

/// Requests of one call that are made at once, at most: it shares the session with others.
const AT_ONCE: usize = 64;

/// Part of all requests on their way that may be writes of rows: see [`writing`].
const PART_OF_ROWS: usize = 4;

/// The store in a keyspace. Clones share one session, which ends with the last of them.
#[derive(Clone)]
pub struct CassandraStore {
    inner: Arc<Inner>,
}

struct Inner {
    nodes: Connection,
    rows_at_once: Gate,
    clock: Clock,
    stamps: Stamps,
    snapshots: Snapshots,
    keys: Keys,
    beside: Beside,
    listings: Listings,
    ended: Ended,
    spans: Spans,
    payloads: Payloads,
    recent: Recent,
    checkpoints: Checkpoints,
    acked: Acked,
    secrets: Secrets,
}

impl Inner {
    fn now_ms(&self) -> i64 {
        (self.clock)()
    }

    fn stamp(&self) -> i64 {
        self.stamps.next(self.now_ms())
    }
}

type Answer<T> = Result<T, StoreError>;

impl CassandraStore {
    /// Connects to a keyspace whose tables are there ([`migrate`]).
    ///
    /// # Errors
    /// A setting that cannot be used, nodes that do not answer, tables that are not there.
    pub fn connect(config: CassandraConfig) -> BoxFuture<'static, Result<Self, ConnectError>> {
        async move {
            let session = connection::open(&config).await?;
            migrations::used(&session, &config).await?.complete(&config)?;
            let inner = Inner {
                snapshots: Snapshots::prepare(&session).await?,
                keys: Keys::prepare(&session).await?,
                beside: Beside::prepare(&session).await?,
                listings: Listings::prepare(&session).await?,
                ended: Ended::prepare(&session).await?,
                spans: Spans::prepare(&session).await?,
                payloads: Payloads::prepare(&session).await?,
                recent: Recent::new(),
                checkpoints: Checkpoints::prepare(&session).await?,
                acked: Acked::prepare(&session).await?,
                secrets: Secrets::prepare(&session, config.consistency).await?,
                stamps: Stamps::default(),
                clock: config.clock.clone(),
                rows_at_once: Gate::new((config.max_in_flight / PART_OF_ROWS).max(1), config.request_timeout),
                nodes: Connection::new(session, &config),
            };
            Ok(Self { inner: Arc::new(inner) })
        }
        .boxed()
    }

    /// Mutations that this session has sent: rows of one partition that were written at once. Several may share a
    /// request.
    pub fn mutations(&self) -> u64 {
        self.inner.nodes.mutations()
    }

    /// Removes checkpoints of a partition that the start of its log has passed, the two highest
    /// excepted, and the chunks that only they name; says how many. For whoever knows how far retention is.
    pub fn forget_checkpoints(
        &self,
        partition: PartitionId,
        log_start: Offset,
    ) -> impl Future<Output = Answer<usize>> + Send + 'static {
        let store = self.inner.clone();
        async move { store.checkpoints.forget(&store.nodes, partition, log_start, store.stamp()).await }.boxed()
    }

    fn listed(&self, listing: Listing, limit: usize) -> impl Future<Output = Answer<Vec<TaskId>>> + Send + 'static {
        let store = self.inner.clone();
        async move { store.listings.read(&store.nodes, &listing, store.now_ms(), limit).await }.boxed()
    }
}

impl SnapshotStore for CassandraStore {
    fn write(&self, _: PartitionId, rows: Vec<RowWrite>) -> impl Future<Output = Answer<()>> + Send + 'static {
        let store = self.inner.clone();
        async move { writing::write(&store, rows).await }.boxed()
    }

    fn snapshots(&self, ids: Vec<TaskId>) -> impl Future<Output = Answer<Vec<Option<SnapshotRow>>>> + Send + 'static {
        let store = self.inner.clone();
        async move {
            let now_ms = store.now_ms();
            let read = ids.into_iter().map(|id| store.snapshots.read(&store.nodes, id));
            let rows: Vec<Option<SnapshotRow>> = stream::iter(read).buffered(AT_ONCE).try_collect().await?;
            let alive = |row: &SnapshotRow| now_ms < after_the_end(row, SNAPSHOT_TTL_MS);
            Ok(rows.into_iter().map(|row| row.filter(alive)).collect())
        }
        .boxed()
    }

    fn key(&self, key_hash: Sha256Hash) -> impl Future<Output = Answer<Option<KeyRow>>> + Send + 'static {
        let store = self.inner.clone();
        async move {
            let found = store.keys.read(&store.nodes, key_hash).await?;
            Ok(found.filter(|row| store.now_ms() < row.created_at.saturating_add(KEY_TTL_MS)))
        }
        .boxed()
    }

    fn history_overflow(&self, task: TaskId) -> impl Future<Output = Answer<Vec<HistoryEntry>>> + Send + 'static {
        let store = self.inner.clone();
        async move { store.beside.read(&store.nodes, task, store.now_ms()).await }.boxed()
    }

    fn tasks_by_trace(
        &self,
        trace_id: Text,
        limit: usize,
    ) -> impl Future<Output = Answer<Vec<TaskId>>> + Send + 'static {
        self.listed(Listing::Trace(trace_id), limit)
    }

    fn tasks_by_business_key(
        &self,
        creator: Text,
        business_key: Text,
        limit: usize,
    ) -> impl Future<Output = Answer<Vec<TaskId>>> + Send + 'static {
        self.listed(Listing::BusinessKey { creator, key: business_key }, limit)
    }

    fn ended(&self, span: EndedSpan, limit: usize) -> impl Future<Output = Answer<EndedPage>> + Send + 'static {
        let store = self.inner.clone();
        async move { store.ended.page(&store.nodes, &store.spans, &span, store.now_ms(), limit).await }.boxed()
    }

    fn ended_task(&self, task: TaskId) -> impl Future<Output = Answer<Option<TaskSummary>>> + Send + 'static {
        let store = self.inner.clone();
        async move { store.ended.summary(&store.nodes, task, store.now_ms()).await }.boxed()
    }

    fn secret(
        &self,
        name: &'static str,
        proposed: [u8; 32],
    ) -> impl Future<Output = Answer<[u8; 32]>> + Send + 'static {
        let store = self.inner.clone();
        async move { store.secrets.agree(&store.nodes, name, proposed).await }.boxed()
    }

    fn put_payloads(
        &self,
        items: Vec<(TaskId, PayloadItem, Bytes)>,
    ) -> impl Future<Output = Answer<()>> + Send + 'static {
        let store = self.inner.clone();
        let stamp = store.stamp();
        async move {
            let (now_ms, parameters) = (store.now_ms(), Recent::worth_keeping(&items));
            let expires_ms = store.payloads.write(&store.nodes, items, (now_ms, stamp)).await?;
            store.recent.keep(parameters, expires_ms);
            Ok(())
        }
        .boxed()
    }

    fn payloads(
        &self,
        wanted: Vec<(TaskId, PayloadItem)>,
    ) -> impl Future<Output = Answer<Vec<Option<Bytes>>>> + Send + 'static {
        let store = self.inner.clone();
        async move {
            let now_ms = store.now_ms();
            let mut found: Vec<Option<Bytes>> =
                wanted.iter().map(|(task, item)| store.recent.get(*task, item, now_ms)).collect();
            let missing = wanted.into_iter().zip(&found).filter(|(_, here)| here.is_none()).map(|(one, _)| one);
            let mut read = store.payloads.read(&store.nodes, missing.collect(), now_ms).await?.into_iter();
            found.iter_mut().filter(|here| here.is_none()).for_each(|here| *here = read.next().flatten());
            Ok(found)
        }
        .boxed()
    }

    fn put_acked(&self, partition: PartitionId, offset: Offset) -> impl Future<Output = Answer<()>> + Send + 'static {
        let store = self.inner.clone();
        async move { store.acked.write(&store.nodes, partition, offset).await }.boxed()
    }

    fn acked(&self, partition: PartitionId) -> impl Future<Output = Answer<Offset>> + Send + 'static {
        let store = self.inner.clone();
        async move { store.acked.read(&store.nodes, partition).await }.boxed()
    }

    fn put_chunk(&self, hash: Sha256Hash, bytes: Bytes) -> impl Future<Output = Answer<()>> + Send + 'static {
        let store = self.inner.clone();
        let stamp = store.stamp();
        async move { store.checkpoints.put_chunk(&store.nodes, hash, bytes, stamp).await }.boxed()
    }

    fn chunk(&self, hash: Sha256Hash) -> impl Future<Output = Answer<Option<Bytes>>> + Send + 'static {
        let store = self.inner.clone();
        async move { store.checkpoints.chunk(&store.nodes, hash).await }.boxed()
    }

    fn publish(&self, name: CheckpointName, manifest: Bytes) -> impl Future<Output = Answer<()>> + Send + 'static {
        let store = self.inner.clone();
        let at = (store.now_ms(), store.stamp());
        async move { store.checkpoints.publish(&store.nodes, name, manifest, at).await }.boxed()
    }

    fn checkpoints(
        &self,
        partition: PartitionId,
    ) -> impl Future<Output = Answer<Vec<(CheckpointName, Bytes)>>> + Send + 'static {
        let store = self.inner.clone();
        async move { store.checkpoints.list(&store.nodes, partition).await }.boxed()
    }
}
