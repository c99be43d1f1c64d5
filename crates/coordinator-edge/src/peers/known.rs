//! Which other instances there are, and which of them owns a partition: what the board says, else what
//! the group of the coordinators says of its members (client id = `service|instance|rules=1-N|url`).

use std::collections::BTreeMap;

use assignment_lock::Entry;
use coordinator::service::GROUP;
use event_log::{ClientId, MemberInfo};
use task_events::{PartitionId, Text};

/// What was read from the board counts for so long, ms: as long as an entry stands there.
const BOARD_MS: u64 = 3_000;

/// An owner that did not answer as one is asked for that partition again after this, ms, unless
/// somebody else is known to own it.
const DOUBT_MS: u64 = 1_000;

/// Another instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instance {
    pub(super) name: Text,
    pub(super) url: String,
}

/// What is known of the others.
#[derive(Debug, Default)]
pub(super) struct Known {
    board: Vec<Entry>,
    /// Boot ms of the last answer of the board.
    board_at: u64,
    group: Vec<(Instance, Vec<PartitionId>)>,
    /// Who did not answer as the partition's owner, and when, boot ms.
    doubted: BTreeMap<PartitionId, (Text, u64)>,
}

impl Known {
    /// The board answered.
    pub(super) fn board_says(&mut self, entries: Vec<Entry>, own: &Text, now: u64) {
        self.board = entries;
        self.board.retain(|entry| entry.instance != *own && entry.url.starts_with("http://"));
        self.board_at = now;
    }

    /// The group was described.
    pub(super) fn group_says(&mut self, members: &[MemberInfo], own: &Text) {
        self.group = members.iter().filter(|member| member.group == GROUP).filter_map(read).collect();
        self.group.retain(|(instance, _)| instance.name != *own);
        self.group.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    }

    /// An instance did not answer as the owner of a partition.
    pub(super) fn doubt(&mut self, partition: PartitionId, instance: Text, now: u64) {
        self.doubted.insert(partition, (instance, now));
    }

    /// Whether the board says anything of others.
    pub(super) fn has_board(&self, now: u64) -> bool {
        !self.entries(now).is_empty()
    }

    /// Who owns a partition. Of several that say so on the board, the one with the newest ownership: an
    /// instance that stood still does not know yet that it is not the owner any more.
    pub(super) fn owner_of(&self, partition: PartitionId, now: u64) -> Option<Instance> {
        let says = |entry: &&Entry| entry.owns.contains_key(&partition);
        let newest = self.entries(now).iter().filter(says).max_by_key(|entry| entry.owns.get(&partition).copied());
        let doubted = |entry: &&Entry| {
            let doubt = self.doubted.get(&partition).filter(|(_, at)| now < at.saturating_add(DOUBT_MS));
            doubt.is_some_and(|(name, _)| *name == entry.instance)
        };
        let of_group = || self.group.iter().find(|(_, owned)| owned.contains(&partition)).map(|(i, _)| i.clone());
        newest.filter(|entry| !doubted(entry)).map(of_entry).or_else(of_group)
    }

    /// Partitions that others own.
    pub(super) fn owned(&self, now: u64) -> Vec<PartitionId> {
        let board = self.entries(now).iter().flat_map(|entry| entry.owns.keys().copied());
        let mut owned: Vec<_> = board.chain(self.group.iter().flat_map(|(_, owned)| owned.iter().copied())).collect();
        owned.sort_unstable();
        owned.dedup();
        owned
    }

    /// Other instances, by name. What the board does not know is kept from the group.
    pub(super) fn instances(&self, now: u64) -> Vec<Instance> {
        let mut all: BTreeMap<Text, Instance> = self.group.iter().map(|(i, _)| (i.name.clone(), i.clone())).collect();
        all.extend(self.entries(now).iter().map(|entry| (entry.instance.clone(), of_entry(entry))));
        all.into_values().collect()
    }

    /// Tasks of these queues that an instance says it could hand out.
    pub(super) fn ready(&self, instance: &Text, queues: &[Text], now: u64) -> Option<u64> {
        let entry = self.entries(now).iter().find(|entry| entry.instance == *instance)?;
        Some(queues.iter().filter_map(|queue| entry.ready.get(queue)).sum())
    }

    fn entries(&self, now: u64) -> &[Entry] {
        if now < self.board_at.saturating_add(BOARD_MS) { &self.board } else { &[] }
    }
}

fn of_entry(entry: &Entry) -> Instance {
    Instance { name: entry.instance.clone(), url: entry.url.to_string() }
}

fn read(member: &MemberInfo) -> Option<(Instance, Vec<PartitionId>)> {
    let ClientId { service, instance, url, .. } = member.client_id.parse().ok()?;
    let known = service == GROUP && url.starts_with("http://");
    known.then(|| (Instance { name: instance.into(), url }, member.partitions.clone()))
}

#[cfg(test)]
mod tests {
    use task_events::PartitionEpoch;

    use super::*;

    const P: PartitionId = PartitionId(0);

    fn member(group: &str, client_id: &str, partition: u16) -> MemberInfo {
        let partitions = vec![PartitionId(partition)];
        MemberInfo { group: group.to_owned(), client_id: client_id.to_owned(), partitions }
    }

    fn entry(instance: &str, epoch: u32, ready: u64) -> Entry {
        Entry {
            instance: instance.into(),
            url: format!("http://{instance}").into(),
            owns: [(P, PartitionEpoch(epoch))].into(),
            ready: [("q".into(), ready)].into(),
        }
    }

    fn owner(known: &Known, now: u64) -> String {
        known.owner_of(P, now).map_or_else(|| "nobody".to_owned(), |owner| owner.name.to_string())
    }

    #[test]
    fn members_are_read_from_their_client_ids() {
        let members = [
            member(GROUP, "coordinator|b|rules=1-1|http://127.0.0.1:2", 1),
            member(GROUP, "coordinator|a|rules=1-1|http://127.0.0.1:1", 0),
            member(GROUP, "coordinator|own|rules=1-1|http://127.0.0.1:3", 2),
            member("task-engine", "task-engine|e|rules=1-1|http://127.0.0.1:4", 0),
            member(GROUP, "somebody", 3),
            member(GROUP, "coordinator|c|rules=1-1|", 3),
        ];
        let mut known = Known::default();
        known.group_says(&members, &"own".into());
        let found: Vec<_> = known.instances(0).into_iter().map(|i| (i.name.to_string(), i.url)).collect();
        let expected = [("a", "http://127.0.0.1:1"), ("b", "http://127.0.0.1:2")];
        assert_eq!(found, expected.map(|(name, url)| (name.to_owned(), url.to_owned())));
        assert_eq!(known.owned(0), [PartitionId(0), PartitionId(1)]);
    }

    #[test]
    fn the_newest_ownership_on_the_board_counts_then_the_group() {
        let mut known = Known::default();
        known.group_says(&[member(GROUP, "coordinator|g|rules=1-1|http://g", 0)], &"own".into());
        assert_eq!(owner(&known, 1_000), "g");
        let entries = vec![entry("stood-still", 4, 1), entry("newer", 5, 0), entry("own", 9, 0)];
        known.board_says(entries, &"own".into(), 1_000);
        assert_eq!(owner(&known, 1_000), "newer");
        let names: Vec<_> = known.instances(1_000).into_iter().map(|i| i.name).collect();
        assert_eq!(names, ["g", "newer", "stood-still"]);
        // It did not answer as the owner: the group is asked, until the board names another one.
        known.doubt(P, "newer".into(), 1_500);
        assert_eq!(owner(&known, 1_500), "g");
        known.board_says(vec![entry("next", 6, 0), entry("newer", 5, 0)], &"own".into(), 1_600);
        assert_eq!(owner(&known, 1_600), "next");
        known.board_says(vec![entry("newer", 5, 0)], &"own".into(), 2_400);
        assert_eq!((owner(&known, 2_499).as_str(), owner(&known, 2_500).as_str()), ("g", "newer"), "for a second");
        // A board that answers no more is not believed for longer than its entries stand.
        assert!(known.has_board(5_399) && !known.has_board(5_400));
        assert_eq!(owner(&known, 5_400), "g");
    }

    #[test]
    fn work_is_known_by_queue_or_not_at_all() {
        let mut known = Known::default();
        let ready = |known: &Known, queues: &[&str]| {
            let queues: Vec<Text> = queues.iter().map(|queue| (*queue).into()).collect();
            known.ready(&"a".into(), &queues, 10)
        };
        assert_eq!(ready(&known, &["q"]), None);
        known.board_says(vec![entry("a", 1, 7)], &"own".into(), 10);
        assert_eq!((ready(&known, &["q", "r"]), ready(&known, &["r"])), (Some(7), Some(0)));
    }
}
