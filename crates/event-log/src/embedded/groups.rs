//! The group coordinator of the embedded log: shares partitions among members of one process,
//! with the same events, deadlines and session timeouts that Kafka's has.

mod member;
mod state;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use task_events::{Offset, PartitionId};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

pub use self::member::EmbeddedMember;
use self::state::{Group, MemberId};
use crate::{LogError, MemberInfo, MemberSpec};

/// All groups of one log.
pub(super) struct Groups {
    state: Mutex<State>,
    changed: Condvar,
    partitions: u16,
    session_timeout: Duration,
    revoke_deadline: Duration,
}

#[derive(Default)]
struct State {
    groups: BTreeMap<String, Group>,
    last_member: MemberId,
    closed: bool,
}

#[expect(clippy::disallowed_methods, reason = "sessions run on the monotonic clock of the machine")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "a sign of life is one only if the runtime's own timer brings it")]
async fn pause(interval: Duration) {
    tokio::time::sleep(interval).await;
}

impl Groups {
    /// Starts the coordinator's thread; it ends with [`Groups::close`].
    pub fn start(partitions: u16, session_timeout: Duration, revoke_deadline: Duration) -> Result<Arc<Self>, LogError> {
        let groups = Arc::new(Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            partitions,
            session_timeout,
            revoke_deadline,
        });
        let run = groups.clone();
        let thread = std::thread::Builder::new().name("log-groups".into()).spawn(move || run.run());
        thread.map_err(|e| LogError::Unavailable(format!("cannot start the group thread: {e}")))?;
        Ok(groups)
    }

    /// Ends every membership.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.groups.clear();
        drop(state);
        self.changed.notify_all();
    }

    pub fn join(self: &Arc<Self>, spec: MemberSpec) -> Result<EmbeddedMember, LogError> {
        let Ok(runtime) = Handle::try_current() else {
            return Err(LogError::Refused("joining a group needs a tokio runtime for the signs of life".into()));
        };
        let (tx, events) = mpsc::unbounded_channel();
        let mut state = self.state.lock();
        if state.closed {
            return Err(LogError::Unavailable("the log is closed".into()));
        }
        state.last_member += 1;
        let id = state.last_member;
        let group = state.groups.entry(spec.group.clone()).or_insert_with(|| Group::new(self.partitions));
        group.join(id, spec.client_id, tx, now(), self.revoke_deadline);
        drop(state);
        self.changed.notify_all();
        let (groups, name, interval) =
            (self.clone(), spec.group.clone(), super::heartbeat_interval(self.session_timeout));
        let heartbeats = runtime.spawn(async move {
            while groups.with(&name, |group| group.heartbeat(id, now())).unwrap_or(false) {
                pause(interval).await;
            }
        });
        Ok(EmbeddedMember { groups: self.clone(), group: spec.group, id, events, heartbeats })
    }

    pub fn members(&self) -> Vec<MemberInfo> {
        self.state.lock().groups.iter().flat_map(|(name, group)| group.describe(name)).collect()
    }

    pub fn applied(&self, group: &str, partition: PartitionId) -> Option<Offset> {
        self.with(group, |group| group.applied(partition)).flatten()
    }

    pub fn force_revoke(&self, group: &str, client_id: &str, partitions: &[PartitionId]) -> usize {
        let revoke = |group: &mut Group| {
            let ids = group.ids_of(client_id);
            ids.into_iter().map(|id| group.revoke(id, partitions, now(), self.revoke_deadline)).sum()
        };
        self.with(group, revoke).unwrap_or(0)
    }

    pub fn expel(&self, group: &str, client_id: &str) -> usize {
        let expel = |group: &mut Group| {
            let ids = group.ids_of(client_id);
            ids.iter().for_each(|&id| group.expel(id, now(), self.revoke_deadline));
            ids.len()
        };
        self.with(group, expel).unwrap_or(0)
    }

    fn release(&self, group: &str, id: MemberId, partition: PartitionId, applied: Offset) {
        self.with(group, |group| {
            group.record(partition, applied);
            group.release(id, partition, now(), self.revoke_deadline);
        });
    }

    fn record(&self, group: &str, partition: PartitionId, applied: Offset) {
        self.with(group, |group| group.record(partition, applied));
    }

    fn leave(&self, group: &str, id: MemberId) {
        self.with(group, |group| group.leave(id, now(), self.revoke_deadline));
    }

    fn with<T>(&self, group: &str, act: impl FnOnce(&mut Group) -> T) -> Option<T> {
        self.state.lock().groups.get_mut(group).map(act)
    }

    /// Looks at the clock often enough to see that the process itself stood still: then nobody
    /// is dropped for a silence that was everybody's.
    fn run(&self) {
        let period = super::heartbeat_interval(self.session_timeout);
        let mut state = self.state.lock();
        let mut last = now();
        while !state.closed {
            if state.groups.values().all(Group::is_empty) {
                self.changed.wait(&mut state);
                last = now();
                continue;
            }
            let _ = self.changed.wait_until(&mut state, last + period);
            let (woke, before) = (now(), last);
            let gap = woke.saturating_duration_since(before);
            if gap < period {
                continue;
            }
            last = woke;
            for group in state.groups.values_mut() {
                if gap > period * 4 {
                    group.excuse(gap);
                }
                group.tick(woke, self.session_timeout, self.revoke_deadline);
            }
        }
    }
}
