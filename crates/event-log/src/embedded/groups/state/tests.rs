//! Histories of a group, step by step, on a clock that only the test moves.
#![expect(
    clippy::disallowed_methods,
    reason = "an Instant can't be made from nothing; only differences to this one count"
)]

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;

const DEADLINE: Duration = Duration::from_secs(3);
const SESSION: Duration = Duration::from_secs(6);

struct World {
    group: Group,
    now: Instant,
    events: BTreeMap<MemberId, UnboundedReceiver<MembershipEvent>>,
}

impl World {
    fn new(partitions: u16) -> Self {
        Self { group: Group::new(partitions), now: Instant::now(), events: BTreeMap::new() }
    }

    fn join(&mut self, id: MemberId) {
        let (tx, rx) = unbounded_channel();
        self.events.insert(id, rx);
        self.group.join(id, format!("m{id}"), tx, self.now, DEADLINE);
    }

    /// Moves the clock; these members show that they live.
    fn pass(&mut self, time: Duration, alive: &[MemberId]) {
        self.now += time;
        for &id in alive {
            self.group.heartbeat(id, self.now);
        }
        self.group.tick(self.now, SESSION, DEADLINE);
    }

    /// What a member was told since the last look, as `+` assigned, `-` revoked, `!` lost.
    fn told(&mut self, id: MemberId) -> String {
        let mut out = Vec::new();
        while let Ok(event) = self.events.get_mut(&id).expect("member").try_recv() {
            let (sign, partitions) = match event {
                MembershipEvent::Assigned(partitions) => ('+', partitions),
                MembershipEvent::Revoked { partitions, .. } => ('-', partitions),
                MembershipEvent::Lost(partitions) => ('!', partitions),
            };
            out.extend(partitions.iter().map(|p| format!("{sign}{p}")));
        }
        out.join(" ")
    }

    fn release(&mut self, id: MemberId, partition: u16) {
        self.group.release(id, PartitionId(partition), self.now, DEADLINE);
    }
}

#[test]
fn a_newcomer_gets_its_share_only_as_it_is_released() {
    let mut w = World::new(5);
    w.join(1);
    assert_eq!(w.told(1), "+0 +1 +2 +3 +4");
    w.join(2);
    assert_eq!((w.told(1), w.told(2)), ("-3 -4".into(), String::new()));
    w.release(1, 4);
    assert_eq!(w.told(2), "+4");
    w.release(1, 4);
    w.release(2, 4);
    assert_eq!((w.told(1), w.told(2)), (String::new(), String::new()), "released twice, or not revoked: nothing");
    w.release(1, 3);
    assert_eq!(w.told(2), "+3");
    w.join(3);
    assert_eq!((w.told(1), w.told(2), w.told(3)), ("-2".into(), String::new(), String::new()));
}

#[test]
fn a_deadline_that_passes_is_a_loss_and_then_an_assignment() {
    let mut w = World::new(2);
    w.join(1);
    w.join(2);
    assert_eq!(w.told(1), "+0 +1 -1");
    w.pass(DEADLINE - Duration::from_millis(1), &[1, 2]);
    assert_eq!((w.told(1), w.told(2)), (String::new(), String::new()));
    w.pass(Duration::from_millis(1), &[1, 2]);
    assert_eq!((w.told(1), w.told(2)), ("!1".into(), "+1".into()));
    w.release(1, 1);
    assert_eq!(w.group.describe("g").iter().map(|m| m.partitions.len()).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn silence_is_a_loss_also_in_the_middle_of_a_revocation() {
    let mut w = World::new(4);
    w.join(1);
    w.join(2);
    assert_eq!(w.told(1), "+0 +1 +2 +3 -2 -3");
    w.group.excuse(Duration::ZERO);
    w.now += SESSION;
    w.group.heartbeat(2, w.now);
    w.group.tick(w.now, SESSION, DEADLINE);
    assert_eq!((w.told(1), w.told(2)), ("!0 !1 !2 !3".into(), "+0 +1 +2 +3".into()));
    assert!(!w.group.heartbeat(1, w.now), "no longer a member");
}

#[test]
fn a_silence_that_was_everybodys_is_excused() {
    let mut w = World::new(2);
    w.join(1);
    w.join(2);
    w.told(1);
    // The whole process stood still for a minute: sessions and deadlines with it.
    let gap = Duration::from_secs(60);
    w.group.excuse(gap);
    w.pass(gap, &[]);
    assert_eq!((w.told(1), w.told(2)), (String::new(), String::new()));
    w.pass(DEADLINE, &[1, 2]);
    assert_eq!((w.told(1), w.told(2)), ("!1".into(), "+1".into()));
}

#[test]
fn more_members_than_partitions_leaves_some_without() {
    let mut w = World::new(1);
    w.join(1);
    w.join(2);
    assert_eq!((w.told(1), w.told(2)), ("+0".into(), String::new()));
    w.group.leave(1, w.now, DEADLINE);
    assert_eq!(w.told(2), "+0");
}
