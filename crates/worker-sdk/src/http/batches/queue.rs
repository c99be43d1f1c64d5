//! Items that wait, and the batch that is taken from them.

use std::collections::{BTreeSet, VecDeque};

use bytes::{BufMut as _, Bytes, BytesMut};
use rest_contract::{MAX_BATCH_BYTES, MAX_BATCH_ITEMS, ReportsResponse};
use tokio::sync::oneshot;

use super::Answers;
use super::item::{Item, Lane, Sort};

/// What stands around the items, bytes.
const FRAME_BYTES: usize = 128;

#[derive(Debug)]
struct Waiting {
    item: Item,
    reply: oneshot::Sender<Answers>,
}

/// Items that wait, and the lanes that are under way.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    under_way: BTreeSet<Lane>,
}

/// Items that go together.
#[derive(Debug)]
pub(super) struct Batch(Vec<Waiting>);

impl Queue {
    pub(super) fn push(&mut self, item: Item, reply: oneshot::Sender<Answers>) {
        self.waiting.push_back(Waiting { item, reply });
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The next batch: what has waited longest, and whose lane is not under way. `None` if there is
    /// nothing such.
    pub(super) fn take(&mut self) -> Option<Batch> {
        let (mut taken, mut bytes, mut passed) = (Vec::new(), FRAME_BYTES, BTreeSet::new());
        let mut rest = VecDeque::new();
        while let Some(next) = self.waiting.pop_front() {
            let lane = next.item.lane;
            let size = next.item.json.len() + 1;
            let is_full = taken.len() == MAX_BATCH_ITEMS || (bytes + size > MAX_BATCH_BYTES && !taken.is_empty());
            if is_full {
                rest.push_back(next);
                break;
            }
            if self.under_way.contains(&lane) || passed.contains(&lane) {
                passed.insert(lane);
                rest.push_back(next);
                continue;
            }
            bytes += size;
            taken.push(next);
        }
        rest.append(&mut self.waiting);
        self.waiting = rest;
        self.under_way.extend(taken.iter().map(|w: &Waiting| w.item.lane));
        (!taken.is_empty()).then_some(Batch(taken))
    }

    /// These lanes are no longer under way.
    pub(super) fn release(&mut self, lanes: &BTreeSet<Lane>) {
        lanes.iter().for_each(|lane| {
            self.under_way.remove(lane);
        });
    }
}

impl Batch {
    pub(super) fn lanes(&self) -> BTreeSet<Lane> {
        self.0.iter().map(|w| w.item.lane).collect()
    }

    /// A `ReportsRequest`, put together from what is written already.
    pub(super) fn to_json(&self) -> Bytes {
        let items: usize = self.0.iter().map(|w| w.item.json.len() + 1).sum();
        let mut out = BytesMut::with_capacity(FRAME_BYTES + items);
        for (begin, sort) in [
            ("{\"payloads\":[", Sort::Payload),
            ("],\"reports\":[", Sort::Report),
            ("],\"heartbeats\":[", Sort::Heartbeat),
        ] {
            out.put_slice(begin.as_bytes());
            for (n, waiting) in self.0.iter().filter(|w| w.item.sort == sort).enumerate() {
                if n > 0 {
                    out.put_u8(b',');
                }
                out.put_slice(&waiting.item.json);
            }
        }
        out.put_slice(b"]}");
        out.freeze()
    }

    /// Whether these are as many answers as there are items.
    pub(super) fn fits(&self, answers: &ReportsResponse) -> bool {
        let count = |sort| self.0.iter().filter(|w| w.item.sort == sort).count();
        answers.payloads_stored.len() == count(Sort::Payload)
            && answers.reports.len() == count(Sort::Report)
            && answers.heartbeats.len() == count(Sort::Heartbeat)
    }

    /// Answers every item, in order.
    pub(super) fn answer_all(self, mut answer: impl FnMut(Sort) -> Answers) {
        for Waiting { item, reply } in self.0 {
            // A handler that is gone does not wait any more.
            let _ = reply.send(answer(item.sort));
        }
    }

    /// Both halves, or itself if it is one item.
    pub(super) fn halves(mut self) -> Result<(Self, Self), Self> {
        if self.0.len() < 2 {
            return Err(self);
        }
        let second = self.0.split_off(self.0.len() / 2);
        Ok((self, Self(second)))
    }
}

#[cfg(test)]
mod tests {
    use rest_contract::ReportsRequest;
    use task_events::TaskId;

    use super::*;
    use crate::PayloadKey;

    fn put(task: i64, bytes: usize) -> (Item, oneshot::Sender<Answers>) {
        let task = TaskId::from_raw(task << 22).unwrap();
        (Item::payload(task, &PayloadKey::Result, vec![b'a'; bytes].into()), oneshot::channel().0)
    }

    fn push(queue: &mut Queue, task: i64, bytes: usize) {
        let (item, reply) = put(task, bytes);
        queue.push(item, reply);
    }

    #[test]
    fn a_lane_is_in_one_batch_at_a_time_and_keeps_its_order() {
        let mut queue = Queue::default();
        push(&mut queue, 1, 1);
        push(&mut queue, 1, 2);
        let first = queue.take().expect("a batch");
        assert_eq!(first.0.len(), 2);
        push(&mut queue, 1, 3);
        push(&mut queue, 2, 4);
        push(&mut queue, 1, 5);
        let second = queue.take().expect("another task's");
        assert_eq!(second.0.len(), 1);
        assert!(queue.take().is_none(), "the rest waits for the first batch");
        queue.release(&first.lanes());
        let third = queue.take().expect("what waited");
        let sizes: Vec<_> = third.0.iter().map(|w| w.item.json.len()).collect();
        assert!(sizes.len() == 2 && sizes[0] <= sizes[1]);
    }

    #[test]
    fn batches_stay_below_their_limits_and_read_as_the_contract_says() {
        let mut queue = Queue::default();
        for task in 1..=20 {
            push(&mut queue, task, 256 * 1024);
        }
        let batch = queue.take().expect("a batch");
        let json = batch.to_json();
        assert!(json.len() <= MAX_BATCH_BYTES && json.len() > MAX_BATCH_BYTES / 2, "{}", json.len());
        let read: ReportsRequest = serde_json::from_slice(&json).expect("the contract");
        assert_eq!(read.payloads.len(), batch.0.len());
        (30..1_200).for_each(|task| push(&mut queue, task, 1));
        let sizes: Vec<_> = std::iter::from_fn(|| queue.take()).map(|b| b.0.len()).collect();
        assert_eq!(sizes.iter().sum::<usize>() + batch.0.len(), 20 + 1_170);
        assert!(sizes.iter().all(|n| *n <= MAX_BATCH_ITEMS));
    }
}
