//! Counters and alarms as plain data, under names that are written in code. An exporter or a test
//! reads them; nobody decides anything by them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// The counters and alarms of one service. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    counters: Mutex<BTreeMap<&'static str, Counter>>,
    alarms: Mutex<BTreeMap<&'static str, Alarm>>,
}

/// A number under a name; clones share it. Counters only rise, gauges are [`Counter::set`].
#[derive(Clone, Debug, Default)]
pub struct Counter(Arc<AtomicU64>);

impl Counter {
    /// Adds to it.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Sets a gauge.
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    /// Its value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What is known of an alarm that went off at least once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alarm {
    /// How often it went off.
    pub count: u64,
    /// Whether it still stands.
    pub active: bool,
    /// What it said last.
    pub last: String,
}

impl Metrics {
    /// The number under `name`. Keep the handle: looking it up takes a lock.
    pub fn counter(&self, name: &'static str) -> Counter {
        self.inner.counters.lock().entry(name).or_default().clone()
    }

    /// Sets an alarm off, logs it, and lets it stand until [`Metrics::clear`].
    pub fn alarm(&self, name: &'static str, detail: impl Into<String>) {
        let detail = detail.into();
        tracing::error!(alarm = name, detail, "alarm");
        let mut alarms = self.inner.alarms.lock();
        let alarm = alarms.entry(name).or_default();
        *alarm = Alarm { count: alarm.count + 1, active: true, last: detail };
    }

    /// The cause of an alarm is gone; its count and text stay readable.
    pub fn clear(&self, name: &'static str) {
        if let Some(alarm) = self.inner.alarms.lock().get_mut(name) {
            alarm.active = false;
        }
    }

    /// All numbers by name.
    pub fn counters(&self) -> BTreeMap<&'static str, u64> {
        self.inner.counters.lock().iter().map(|(name, c)| (*name, c.get())).collect()
    }

    /// Every alarm that ever went off, by name.
    pub fn alarms(&self) -> BTreeMap<&'static str, Alarm> {
        self.inner.alarms.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_and_names_are_ordered() {
        let metrics = Metrics::default();
        let b = metrics.counter("b");
        metrics.clone().counter("a").set(7);
        b.add(2);
        metrics.counter("b").add(1);
        assert_eq!(metrics.counters().into_iter().collect::<Vec<_>>(), [("a", 7), ("b", 3)]);
        metrics.clear("x");
        metrics.alarm("x", "first");
        metrics.alarm("x", "second");
        metrics.clear("x");
        assert_eq!(metrics.alarms()["x"], Alarm { count: 2, active: false, last: "second".into() });
    }
}
