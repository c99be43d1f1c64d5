//! Parameters that came with a poll, until their handler asks for them. Bounded: what does not fit is
//! read by GET.

use std::collections::BTreeMap;

use bytes::Bytes;
use task_events::TaskId;

/// Bytes kept at most (64 MiB).
const MAX_BYTES: usize = 64 << 20;

#[derive(Default)]
pub(super) struct Inline {
    by_task: BTreeMap<TaskId, (Bytes, u64)>,
    bytes: usize,
}

impl Inline {
    /// Keeps bytes until `until_ms` on the boot clock: no handler is entered after its lease.
    pub(super) fn keep(&mut self, task: TaskId, bytes: Bytes, until_ms: u64) {
        self.take(task);
        if self.bytes + bytes.len() <= MAX_BYTES {
            self.bytes += bytes.len();
            self.by_task.insert(task, (bytes, until_ms));
        }
    }

    /// Gives them away; a handler is entered once.
    pub(super) fn take(&mut self, task: TaskId) -> Option<Bytes> {
        let (bytes, _) = self.by_task.remove(&task)?;
        self.bytes -= bytes.len();
        Some(bytes)
    }

    /// Drops what no handler will ask for any more.
    pub(super) fn purge(&mut self, now_ms: u64) {
        let dropped = self.by_task.extract_if(.., |_, (_, until_ms)| *until_ms <= now_ms);
        self.bytes -= dropped.map(|(_, (bytes, _))| bytes.len()).sum::<usize>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(n: i64) -> TaskId {
        TaskId::from_raw(n << 22).unwrap()
    }

    #[test]
    fn it_gives_once_until_the_lease_is_over_and_keeps_no_more_than_fits() {
        let mut inline = Inline::default();
        inline.keep(task(1), Bytes::from("one"), 10);
        inline.keep(task(2), Bytes::from("two"), 20);
        assert_eq!(inline.take(task(1)), Some("one".into()));
        assert_eq!(inline.take(task(1)), None);
        inline.purge(19);
        assert_eq!(inline.bytes, 3);
        inline.purge(20);
        assert_eq!((inline.bytes, inline.take(task(2))), (0, None));
        inline.keep(task(3), vec![0; MAX_BYTES].into(), 10);
        inline.keep(task(4), Bytes::from("more"), 10);
        assert!(inline.take(task(4)).is_none() && inline.take(task(3)).is_some());
    }
}
