//! The way to other instances, over HTTP: who they are and what they own is what the group of the
//! coordinators says of its members (client id = `service|instance|rules=1-N|url`, design.md §3).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use coordinator::forwarding::{decode_answer, decode_seen, encode_ask, encode_command, unanswered};
use coordinator::owner::{Answer, Command};
use coordinator::service::GROUP;
use coordinator::surface::{Peers, WorkerSeen, WorkersAsk, WorkersTold};
use event_log::{EventLog, MemberInfo};
use futures::future::join_all;
use parking_lot::RwLock;
use service_kit::{Clock, Metrics};
use task_events::{PartitionId, Text};
use tokio::sync::Mutex;
use worker_protocol::{Poll, PollAnswer};

use crate::internal::{ASK, MSGPACK, POLL, WORKERS};

/// Pause between two looks at the group, ms: at most four times a second.
const LOOK_MS: u64 = 250;

/// What is older than this is looked at again when it is used without waiting, ms.
const OLD_MS: u64 = 1_000;

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

#[derive(Clone, Debug, PartialEq, Eq)]
struct Instance {
    name: Text,
    url: String,
    partitions: Vec<PartitionId>,
}

struct Inner<L, C> {
    own: Text,
    log: L,
    clock: C,
    metrics: Metrics,
    http: reqwest::Client,
    known: RwLock<Vec<Instance>>,
    /// Boot ms of the last look, 0 = never.
    looked: AtomicU64,
    looking: Mutex<()>,
    asked_to_look: AtomicBool,
}

/// Other instances, reached over HTTP. Clones share what is known.
pub struct HttpPeers<L, C>(Arc<Inner<L, C>>);

impl<L, C> Clone for HttpPeers<L, C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<L: EventLog, C: Clock> HttpPeers<L, C> {
    /// The way from the instance `own` to the others. Lives on a tokio runtime.
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
        let (known, looked, looking, asked_to_look) = Default::default();
        Ok(Self(Arc::new(Inner { own, log, clock, metrics, http, known, looked, looking, asked_to_look })))
    }

    fn owner_of(&self, partition: PartitionId) -> Option<Instance> {
        self.0.known.read().iter().find(|instance| instance.partitions.contains(&partition)).cloned()
    }

    // Looks at the group, unless that was done just now. Whoever comes while it is looked at waits for that.
    async fn look(&self) {
        let inner = &self.0;
        let _one_at_a_time = inner.looking.lock().await;
        let looked = inner.looked.load(Ordering::Relaxed);
        if looked != 0 && inner.clock.boot_ms() < looked.saturating_add(LOOK_MS) {
            return;
        }
        match inner.log.members().await {
            Ok(members) => *inner.known.write() = others(&members, &inner.own),
            Err(why) => tracing::warn!(%why, "the group's members cannot be read; the last known ones stay"),
        }
        inner.looked.store(inner.clock.boot_ms().max(1), Ordering::Relaxed);
    }

    // For those who must not wait: what is known, looked at again behind their back.
    fn look_soon(&self) {
        let inner = &self.0;
        let old = inner.clock.boot_ms() >= inner.looked.load(Ordering::Relaxed).saturating_add(OLD_MS);
        if !old || inner.asked_to_look.swap(true, Ordering::Relaxed) {
            return;
        }
        let peers = self.clone();
        let look = async move {
            peers.look().await;
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
}

impl<L: EventLog, C: Clock> HttpPeers<L, C> {
    async fn told(&self, instance: &Instance, ask: &WorkersAsk) -> Option<Vec<WorkerSeen>> {
        let request = self.0.http.post(format!("{}{WORKERS}", instance.url.trim_end_matches('/')));
        let request = request.header(reqwest::header::CONTENT_TYPE, MSGPACK).body(encode_ask(ask).ok()?);
        let response = request.timeout(Duration::from_millis(WORKERS_MS)).send().await.ok()?;
        decode_seen(&response.error_for_status().ok()?.bytes().await.ok()?).ok()
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
            self.look().await;
        }
        let owner = self.owner_of(partition)?;
        let limit_ms = command.patience_ms().saturating_add(ANSWER_MS);
        let sent = self.send(&owner, format!("{ASK}?partition={partition}"), command, limit_ms).await;
        match sent {
            Sent::Answered(answer) => {
                if answer.is_away() {
                    // Perhaps it is not the owner any more; the surface asks again.
                    self.look().await;
                }
                Some(*answer)
            }
            Sent::No => {
                self.look().await;
                None
            }
            Sent::Unknown => Some(unanswered(command)),
        }
    }

    fn owned(&self) -> Vec<PartitionId> {
        self.look_soon();
        self.0.known.read().iter().flat_map(|instance| instance.partitions.iter().copied()).collect()
    }

    fn instances(&self) -> Vec<Text> {
        self.look_soon();
        self.0.known.read().iter().map(|instance| instance.name.clone()).collect()
    }

    async fn workers(&self, ask: &WorkersAsk) -> WorkersTold {
        self.look().await;
        let known = self.0.known.read().clone();
        join_all(known.into_iter().map(|instance| async move {
            let told = self.told(&instance, ask).await;
            (instance.name, told)
        }))
        .await
    }

    async fn poll(&self, instance: &Text, poll: &Poll) -> Option<PollAnswer> {
        let found = self.0.known.read().iter().find(|known| known.name == *instance).cloned()?;
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

// The other coordinators of the group, in the order of their names.
fn others(members: &[MemberInfo], own: &Text) -> Vec<Instance> {
    let mut found: Vec<Instance> = members.iter().filter(|member| member.group == GROUP).filter_map(read).collect();
    found.retain(|instance| instance.name != *own);
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn read(member: &MemberInfo) -> Option<Instance> {
    let mut parts = member.client_id.splitn(4, '|');
    let (service, name, _rules, url) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let known = service == GROUP && !name.is_empty() && url.starts_with("http://");
    known.then(|| Instance { name: name.into(), url: url.to_owned(), partitions: member.partitions.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_from_their_client_ids() {
        let member = |group: &str, client_id: &str, partition| MemberInfo {
            group: group.to_owned(),
            client_id: client_id.to_owned(),
            partitions: vec![PartitionId(partition)],
        };
        let members = [
            member(GROUP, "coordinator|b|rules=1-1|http://127.0.0.1:2", 1),
            member(GROUP, "coordinator|a|rules=1-1|http://127.0.0.1:1", 0),
            member(GROUP, "coordinator|own|rules=1-1|http://127.0.0.1:3", 2),
            member("task-engine", "task-engine|e|rules=1-1|http://127.0.0.1:4", 0),
            member(GROUP, "somebody", 3),
            member(GROUP, "coordinator|c|rules=1-1|", 3),
        ];
        let found = others(&members, &"own".into());
        let found: Vec<_> = found.iter().map(|i| (i.name.as_str(), i.url.as_str(), i.partitions[0].0)).collect();
        assert_eq!(found, [("a", "http://127.0.0.1:1", 0), ("b", "http://127.0.0.1:2", 1)]);
    }
}
