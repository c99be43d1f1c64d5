//! Executions whose RejectedReport is in the log: each gets one (design.md §5).

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashSet;
use task_events::ExecutionId;

/// How many are remembered per partition, the newest ones: 1 MiB of ids. An execution whose report
/// is rejected again after so many others gets a second record, which does no harm.
pub const MAX_NOTED: usize = 65_536;

/// The newest executions of which a RejectedReport was accepted, in the order of their records.
#[derive(Clone, Debug, Default)]
pub struct NotedReports {
    known: HashSet<ExecutionId, FixedState>,
    order: VecDeque<ExecutionId>,
}

impl NotedReports {
    /// Whether a RejectedReport of it is in the log.
    pub fn contains(&self, execution: ExecutionId) -> bool {
        self.known.contains(&execution)
    }

    /// In the order of their records.
    pub fn iter(&self) -> impl Iterator<Item = ExecutionId> + '_ {
        self.order.iter().copied()
    }

    /// Notes one; the oldest is forgotten beyond [`MAX_NOTED`].
    pub(crate) fn insert(&mut self, execution: ExecutionId) {
        if self.known.insert(execution) {
            self.order.push_back(execution);
        }
        if self.order.len() > MAX_NOTED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution(n: usize) -> ExecutionId {
        ExecutionId((n as u128).to_be_bytes())
    }

    #[test]
    fn the_newest_are_remembered_once_each() {
        let mut noted = NotedReports::default();
        (0..=MAX_NOTED).for_each(|n| noted.insert(execution(n)));
        noted.insert(execution(2));
        assert!(!noted.contains(execution(0)) && noted.contains(execution(1)) && noted.contains(execution(MAX_NOTED)));
        assert_eq!((noted.iter().count(), noted.iter().next()), (MAX_NOTED, Some(execution(1))));
    }
}
