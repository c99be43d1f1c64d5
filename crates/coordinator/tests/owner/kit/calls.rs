//! Store, lock and everything else an owner asks for.

use assignment_lock::{LockUnavailable, ServerState};
use coordinator::owner::{Effect, Input};
use futures::FutureExt as _;
use snapshot_store::{RowKind, SnapshotStore, StoreError};
use task_events::Offset;

use super::{P, Sent, World};

fn is_lock(effect: &Effect) -> bool {
    matches!(effect, Effect::TakeLocks(..) | Effect::RenewLocks(_) | Effect::AskLockServer)
}

impl World {
    pub fn acked(&self) -> Offset {
        self.store.acked(P).now_or_never().expect("ready").expect("never away")
    }

    /// Takes note of an effect: nothing is carried out here.
    pub(super) fn effect(&mut self, name: &'static str, effect: Effect) {
        let member = self.members.get_mut(name).expect("a member");
        match effect {
            Effect::Append(ticket, records) => {
                assert!(!records.is_empty(), "an empty append");
                member.sent.push_back(Sent { ticket, records });
            }
            Effect::Reply(token, answer) => {
                let before = self.replies.insert(token, answer);
                assert!(before.is_none(), "{token:?} was answered before: {before:?}");
            }
            Effect::Alarm(alarm) => member.alarms.push(alarm),
            Effect::Publish(checkpoint) => member.published.push(*checkpoint),
            Effect::PutAcked(offset) => {
                member.put_acked.push(offset);
                let put = self.store.put_acked(P, offset).now_or_never();
                put.expect("ready").expect("never away");
            }
            Effect::Drained => member.drained = true,
            Effect::Stop(stop) => member.stopped = Some(stop),
            Effect::ReleaseLocks(locks) => {
                member.released.extend(locks.iter().map(|(_, holder)| holder.to_string()));
            }
            Effect::RenewLocks(locks) => {
                member.locks.1 += locks.len();
                if self.lock_unusable || self.lock_away {
                    member.calls.push_back(Effect::RenewLocks(locks));
                }
            }
            Effect::TakeLocks(ticket, locks) => {
                member.locks.0 += locks.len();
                member.calls.push_back(Effect::TakeLocks(ticket, locks));
            }
            Effect::ReadBack(_) => {}
            Effect::Span(span) => self.spans.push(*span),
            effect @ (Effect::AskLockServer
            | Effect::WriteRows(..)
            | Effect::ReadRow(..)
            | Effect::ReadKey(..)
            | Effect::StorePayloads(..)) => member.calls.push_back(effect),
        }
    }

    /// Answers the member's calls that are not held.
    pub(super) fn answer_calls(&mut self, name: &'static str) -> bool {
        let held = |effect: &Effect| if is_lock(effect) { self.hold_lock } else { self.hold_store };
        let calls = &mut self.members.get_mut(name).expect("a member").calls;
        let Some(at) = calls.iter().position(|effect| !held(effect)) else { return false };
        let Some(effect) = calls.remove(at) else { return false };
        self.perform(name, effect);
        true
    }

    /// Answers the oldest held call of the member at hand for which this is true.
    pub fn release_call(&mut self, which: impl Fn(&Effect) -> bool) {
        let on = self.on;
        let calls = &mut self.me().calls;
        let at = calls.iter().position(which).expect("such a call is under way");
        let effect = calls.remove(at).expect("it is there");
        self.perform(on, effect);
        self.settle();
    }

    fn perform(&mut self, name: &'static str, effect: Effect) {
        let store = self.store.clone();
        let away = self.store_away;
        let gone = || StoreError::Unavailable("away".to_owned());
        let input = match effect {
            Effect::TakeLocks(ticket, _) => Input::LocksTaken(
                ticket,
                if self.lock_away { Err(LockUnavailable::Away("away".into())) } else { Ok(()) },
            ),
            Effect::RenewLocks(_) if self.lock_unusable => {
                Input::LockServer(Err(LockUnavailable::Key("a list".into())))
            }
            Effect::RenewLocks(_) => Input::LockServer(Err(LockUnavailable::Away("away".into()))),
            Effect::AskLockServer => Input::LockServer(if self.lock_away {
                Err(LockUnavailable::Away("away".into()))
            } else {
                Ok(ServerState { run_id: self.run_id.clone(), sentinel: true })
            }),
            Effect::WriteRows(ticket, rows) => {
                for write in &rows {
                    self.writes.push(match &write.row {
                        RowKind::Snapshot(row) => format!("row {} {}", self.name(row.core.id), row.core.state.as_str()),
                        RowKind::Key(row) => format!("key {}", self.name(row.task_id)),
                        RowKind::HistoryOverflow { task_id, .. } => format!("overflow {}", self.name(*task_id)),
                    });
                }
                if !away {
                    store.write_now(rows);
                }
                Input::RowsWritten(ticket, if away { Err(gone()) } else { Ok(()) })
            }
            Effect::ReadRow(ticket, id) => {
                let rows = store.snapshots(vec![id]).now_or_never().expect("ready").expect("never away");
                Input::RowRead(ticket, if away { Err(gone()) } else { Ok(rows.into_iter().next().flatten()) })
            }
            Effect::ReadKey(ticket, key) => {
                let row = store.key(key).now_or_never().expect("ready").expect("never away");
                Input::KeyRead(ticket, if away { Err(gone()) } else { Ok(row) })
            }
            Effect::StorePayloads(ticket, items) => {
                if !away {
                    store.put_payloads(items).now_or_never().expect("ready").expect("never away");
                }
                Input::PayloadsStored(ticket, if away { Err(gone()) } else { Ok(()) })
            }
            other @ (Effect::Append(..)
            | Effect::ReleaseLocks(_)
            | Effect::PutAcked(_)
            | Effect::Publish(_)
            | Effect::Reply(..)
            | Effect::Alarm(_)
            | Effect::ReadBack(_)
            | Effect::Span(_)
            | Effect::Drained
            | Effect::Stop(_)) => panic!("{other:?} is not a call"),
        };
        self.feed(name, input);
    }
}
