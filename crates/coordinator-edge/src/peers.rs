//! The way to other instances, over HTTP. Who they are and what they own is on the board, if there is
//! one; else the group of the coordinators says it, which takes a broker's time and knows a new owner
//! only once the group has settled.

mod known;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use assignment_lock::{Board, Entry};
use coordinator::forwarding::{decode_answer, decode_seen, encode_ask, encode_command, unanswered};
use coordinator::owner::{Answer, Command};
use coordinator::surface::{Peers, WorkerSeen, WorkersAsk, WorkersTold};
use event_log::EventLog;
use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use parking_lot::RwLock;
use service_kit::{Clock, Metrics, within};
use task_events::{PartitionId, Text};
use tokio::sync::Mutex;
use worker_protocol::{Poll, PollAnswer};

use self::known::{Instance, Known};
use crate::internal::{ASK, MSGPACK, POLL, WORKERS};
use crate::metrics::{BOARD_READ, GROUP_DESCRIBED};

/// Pause between two looks at the group, ms: at most four times a second.
const GROUP_MS: u64 = 250;

/// Pause between two looks at the board, ms.
const BOARD_MS: u64 = 20;

/// Longest the board is waited for, ms: the group can be asked instead.
const BOARD_ANSWER_MS: u64 = 300;

/// What is older than this is looked at again when it is used without waiting, ms: of the group …
const OLD_MS: u64 = 1_000;

/// … and of the board, which polls find work by.
const OLD_BOARD_MS: u64 = 200;

/// Somebody may be missing on the board, so the group is looked at once in a while too, ms.
const MISSING_MS: u64 = 5_000;

/// An idle connection is given up before the other side, which closes it after 5 s, can do so while
/// a command is on its way.
const IDLE: Duration = Duration::from_secs(2);

/// Longest until a connection stands.
const CONNECT: Duration = Duration::from_secs(1);

/// What an owner may need beside the patience of a command, and the way, ms (design.md §4.5: 10 s).
const ANSWER_MS: u64 = 11_000;

/// Longest a poll is waited for, ms: the lease of what it brings runs already.
const POLL_MS: u64 = 2_000;

/// Longest an instance is waited for that is asked about workers, ms: it asks nobody.
const WORKERS_MS: u64 = 2_000;

/// The client cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("no HTTP client for other instances: {0}")]
pub struct NoClient(#[from] reqwest::Error);

type ReadBoard = Box<dyn Fn() -> BoxFuture<'static, Option<Vec<Entry>>> + Send + Sync>;

struct Inner<L, C> {
    own: Text,
    log: L,
    board: OnceLock<ReadBoard>,
    clock: C,
    metrics: Metrics,
    http: reqwest::Client,
    known: RwLock<Known>,
    /// Boot ms of the last look at the group and at the board, 0 = never.
    looked: AtomicU64,
    looked_at_board: AtomicU64,
    looking: Mutex<()>,
    asked_to_look: AtomicBool,
}

/// What a look is for.
#[derive(Clone, Copy)]
enum Need {
    /// To know by and by.
    Hint,
    /// To find the owner of a partition.
    Owner(PartitionId),
    /// To miss nobody.
    Everybody,
}

/// Other instances, reached over HTTP. Clones share what is known.
pub struct HttpPeers<L, C>(Arc<Inner<L, C>>);

impl<L, C> Clone for HttpPeers<L, C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<L: EventLog, C: Clock> HttpPeers<L, C> {
    /// The way from the instance `own` to the others, known by the group alone. Lives on a tokio runtime.
    ///
    /// # Errors
    /// [`NoClient`].
    pub fn new(own: Text, log: L, clock: C, metrics: Metrics) -> Result<Self, NoClient> {
        // No proxy, no redirects: these are our own instances, on an internal network.
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .pool_idle_timeout(IDLE)
            .tcp_nodelay(true)
            .build()?;
        let (board, known, looked, looked_at_board, looking, asked_to_look) = Default::default();
        Ok(Self(Arc::new(Inner {
            own,
            log,
            board,
            clock,
            metrics,
            http,
            known,
            looked,
            looked_at_board,
            looking,
            asked_to_look,
        })))
    }

    /// The same, known by this board first.
    #[must_use]
    pub fn with_board(self, board: impl Board) -> Self {
        let read: ReadBoard = Box::new(move || board.entries().map(Result::ok).boxed());
        // The first board stays.
        let _ = self.0.board.set(read);
        self
    }

    fn owner_of(&self, partition: PartitionId) -> Option<Instance> {
        self.0.known.read().owner_of(partition, self.0.clock.boot_ms())
    }

    // Looks at the board, and at the group if that does not do. Whoever comes meanwhile waits for it.
    async fn look(&self, need: Need) {
        let _one_at_a_time = self.0.looking.lock().await;
        let told = self.look_at_board().await;
        let enough = match need {
            Need::Hint => {
                let looked = self.0.looked.load(Ordering::Relaxed);
                self.0.clock.boot_ms() < looked.saturating_add(if told { MISSING_MS } else { OLD_MS })
            }
            Need::Owner(partition) => told && self.owner_of(partition).is_some(),
            Need::Everybody => false,
        };
        if !enough {
            self.look_at_group().await;
        }
    }

    // Whether it says anything of others.
    async fn look_at_board(&self) -> bool {
        let inner = &self.0;
        let Some(board) = inner.board.get() else { return false };
        let (looked, now) = (inner.looked_at_board.load(Ordering::Relaxed), inner.clock.boot_ms());
        if looked == 0 || now >= looked.saturating_add(BOARD_MS) {
            let entries = within(&inner.clock, BOARD_ANSWER_MS, board()).await.flatten();
            if let Some(entries) = entries {
                inner.metrics.counter(&BOARD_READ).add(1);
                inner.known.write().board_says(entries, &inner.own, now);
            }
            inner.looked_at_board.store(inner.clock.boot_ms().max(1), Ordering::Relaxed);
        }
        inner.known.read().has_board(inner.clock.boot_ms())
    }

    async fn look_at_group(&self) {
        let inner = &self.0;
        let looked = inner.looked.load(Ordering::Relaxed);
        if looked != 0 && inner.clock.boot_ms() < looked.saturating_add(GROUP_MS) {
            return;
        }
        match inner.log.members().await {
            Ok(members) => {
                inner.metrics.counter(&GROUP_DESCRIBED).add(1);
                inner.known.write().group_says(&members, &inner.own);
            }
            Err(why) => tracing::warn!(%why, "the group's members cannot be read; the last known ones stay"),
        }
        inner.looked.store(inner.clock.boot_ms().max(1), Ordering::Relaxed);
    }

    // For those who must not wait: what is known, looked at again behind their back.
    fn look_soon(&self) {
        let inner = &self.0;
        let now = inner.clock.boot_ms();
        let old = match inner.board.get() {
            Some(_) => now >= inner.looked_at_board.load(Ordering::Relaxed).saturating_add(OLD_BOARD_MS),
            None => now >= inner.looked.load(Ordering::Relaxed).saturating_add(OLD_MS),
        };
        if !old || inner.asked_to_look.swap(true, Ordering::Relaxed) {
            return;
        }
        let peers = self.clone();
        let look = async move {
            peers.look(Need::Hint).await;
            peers.0.asked_to_look.store(false, Ordering::Relaxed);
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(look)),
            Err(_) => inner.asked_to_look.store(false, Ordering::Relaxed),
        }
    }

    async fn send(&self, to: &Instance, path: String, command: &Command, limit_ms: u64) -> Sent {
        let bytes = match encode_command(command) {
            Ok(bytes) => bytes,
            Err(why) => {
                self.0.metrics.alarm("forwarding", why.to_string());
                return Sent::No;
            }
        };
        let request = self.0.http.post(format!("{}{path}", to.url.trim_end_matches('/')));
        let request = request.header(reqwest::header::CONTENT_TYPE, MSGPACK).body(bytes);
        let response = match request.timeout(Duration::from_millis(limit_ms)).send().await {
            Ok(response) => response,
            // No connection, no bytes.
            Err(why) if why.is_connect() || why.is_builder() => return Sent::No,
            Err(_) => return Sent::Unknown,
        };
        let status = response.status();
        if status.is_client_error() {
            self.0.metrics.alarm("forwarding", format!("instance {} refuses a command: {status}", to.name));
            return Sent::No;
        }
        let Ok(body) = response.bytes().await else { return Sent::Unknown };
        match decode_answer(&body) {
            Ok(answer) if status.is_success() => Sent::Answered(Box::new(answer)),
            Ok(_) | Err(_) => Sent::Unknown,
        }
    }

    async fn told(&self, instance: &Instance, ask: &WorkersAsk) -> Option<Vec<WorkerSeen>> {
        let request = self.0.http.post(format!("{}{WORKERS}", instance.url.trim_end_matches('/')));
        let request = request.header(reqwest::header::CONTENT_TYPE, MSGPACK).body(encode_ask(ask).ok()?);
        let response = request.timeout(Duration::from_millis(WORKERS_MS)).send().await.ok()?;
        decode_seen(&response.error_for_status().ok()?.bytes().await.ok()?).ok()
    }

    // Perhaps it is not the owner any more; the surface asks again.
    async fn doubt(&self, partition: PartitionId, owner: Instance) {
        self.0.known.write().doubt(partition, owner.name, self.0.clock.boot_ms());
        self.look(Need::Owner(partition)).await;
    }
}

// What became of a command.
enum Sent {
    Answered(Box<Answer>),
    /// It certainly was not carried out.
    No,
    Unknown,
}

impl<L: EventLog, C: Clock> Peers for HttpPeers<L, C> {
    async fn ask(&self, partition: PartitionId, command: &Command) -> Option<Answer> {
        if self.owner_of(partition).is_none() {
            self.look(Need::Owner(partition)).await;
        }
        let owner = self.owner_of(partition)?;
        let limit_ms = command.patience_ms().saturating_add(ANSWER_MS);
        match self.send(&owner, format!("{ASK}?partition={partition}"), command, limit_ms).await {
            Sent::Answered(answer) => {
                if answer.is_away() {
                    self.doubt(partition, owner).await;
                }
                Some(*answer)
            }
            Sent::No => {
                self.doubt(partition, owner).await;
                None
            }
            Sent::Unknown => Some(unanswered(command)),
        }
    }

    fn owned(&self) -> Vec<PartitionId> {
        self.look_soon();
        self.0.known.read().owned(self.0.clock.boot_ms())
    }

    fn instances(&self) -> Vec<Text> {
        self.look_soon();
        let instances = self.0.known.read().instances(self.0.clock.boot_ms());
        instances.into_iter().map(|instance| instance.name).collect()
    }

    fn ready(&self, instance: &Text, queues: &[Text]) -> Option<u64> {
        self.0.known.read().ready(instance, queues, self.0.clock.boot_ms())
    }

    async fn workers(&self, ask: &WorkersAsk) -> WorkersTold {
        self.look(Need::Everybody).await;
        let known = self.0.known.read().instances(self.0.clock.boot_ms());
        join_all(known.into_iter().map(|instance| async move {
            let told = self.told(&instance, ask).await;
            (instance.name, told)
        }))
        .await
    }

    async fn poll(&self, instance: &Text, poll: &Poll) -> Option<PollAnswer> {
        let known = self.0.known.read().instances(self.0.clock.boot_ms());
        let found = known.into_iter().find(|known| known.name == *instance)?;
        match self.send(&found, POLL.to_owned(), &Command::Poll(poll.clone()), POLL_MS).await {
            Sent::Answered(answer) => {
                if let Answer::Poll(answer) = *answer {
                    Some(answer)
                } else {
                    None
                }
            }
            Sent::No | Sent::Unknown => None,
        }
    }
}
