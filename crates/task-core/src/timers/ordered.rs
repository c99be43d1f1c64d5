//! Timers in an ordered map.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use super::Timers;

/// An ordered map of timers: exact, fair among equals in the order they were armed.
#[derive(Clone, Debug)]
pub struct OrderedTimers<K> {
    by_time: BTreeMap<(u64, u64), K>,
    by_key: HashMap<K, (u64, u64), foldhash::fast::FixedState>,
    armed: u64,
}

impl<K> Default for OrderedTimers<K> {
    fn default() -> Self {
        Self { by_time: BTreeMap::new(), by_key: HashMap::default(), armed: 0 }
    }
}

impl<K: Clone + Eq + Hash> Timers<K> for OrderedTimers<K> {
    fn arm(&mut self, key: K, due_ms: u64) {
        self.cancel(&key);
        let at = (due_ms, self.armed);
        self.armed += 1;
        self.by_time.insert(at, key.clone());
        self.by_key.insert(key, at);
    }

    fn cancel(&mut self, key: &K) {
        if let Some(at) = self.by_key.remove(key) {
            self.by_time.remove(&at);
        }
    }

    fn clear(&mut self) {
        self.by_time.clear();
        self.by_key.clear();
    }

    fn due(&self, key: &K) -> Option<u64> {
        self.by_key.get(key).map(|at| at.0)
    }

    fn len(&self) -> usize {
        self.by_time.len()
    }

    fn advance(&mut self, _: u64) {}

    fn pop_due(&mut self, now_ms: u64) -> Option<K> {
        let (&(due, _), _) = self.by_time.first_key_value()?;
        if due > now_ms {
            return None;
        }
        let (_, key) = self.by_time.pop_first()?;
        self.by_key.remove(&key);
        Some(key)
    }

    fn next_due(&self) -> Option<u64> {
        self.by_time.first_key_value().map(|(&(due, _), _)| due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fires_once_in_order_never_early() {
        let mut t = OrderedTimers::default();
        t.arm("b", 20);
        t.arm("a", 10);
        t.arm("c", 20);
        t.arm("a", 30);
        t.cancel(&"c");
        assert_eq!((t.next_due(), t.len()), (Some(20), 2));
        assert_eq!(t.pop_due(19), None);
        assert_eq!(t.pop_due(40), Some("b"));
        assert_eq!(t.pop_due(40), Some("a"));
        assert_eq!(t.pop_due(40), None);
        assert!(t.is_empty());
    }
}
