//! What is read when somebody asks, and the text that answers.

use std::sync::atomic::Ordering;

use prometheus_client::encoding::prometheus_text::encode;

use super::{ALARM_ACTIVE, Described, Metrics, Registered};

/// What is set when somebody asks, since it is read off something else: gauges, and counters that
/// somebody else keeps.
pub struct Scrape<'a>(&'a Metrics);

impl Scrape<'_> {
    /// Forgets what earlier scrapes set: partitions and queues come and go.
    pub fn clear(&mut self, all: &[&'static Described]) {
        for what in all {
            match self.0.registered(what) {
                Registered::Gauge(family) => family.clear(),
                Registered::Seconds(family) => family.clear(),
                Registered::Counter(family) => family.clear(),
                Registered::Histogram(_) => {}
            }
        }
    }

    /// Sets a counter, or a gauge; beyond 2^63 − 1 a gauge stays there.
    pub fn set(&mut self, what: &'static Described, labels: &[&str], value: u64) {
        let labels = what.labels(labels);
        match self.0.registered(what) {
            Registered::Counter(family) => family.get_or_create(&labels).inner().store(value, Ordering::Relaxed),
            Registered::Gauge(family) => {
                family.get_or_create(&labels).set(i64::try_from(value).unwrap_or(i64::MAX));
            }
            Registered::Seconds(_) | Registered::Histogram(_) => {}
        }
    }

    /// Sets a duration, ms.
    pub fn set_ms(&mut self, what: &'static Described, labels: &[&str], ms: u64) {
        if let Registered::Seconds(family) = self.0.registered(what) {
            family.get_or_create(&what.labels(labels)).set(ms as f64 / 1e3);
        }
    }
}

impl Metrics {
    /// Everything there is to tell, in Prometheus' text format 0.0.4, after `fill` has set what is read
    /// off something else.
    pub fn scrape(&self, fill: impl FnOnce(&mut Scrape<'_>)) -> String {
        let _one = self.inner.scraping.lock();
        let mut scrape = Scrape(self);
        scrape.clear(&[&ALARM_ACTIVE]);
        for (name, alarm) in self.alarms() {
            scrape.set(&ALARM_ACTIVE, &[name], u64::from(alarm.active));
        }
        fill(&mut scrape);
        let mut text = String::new();
        // Writing to a text cannot fail.
        let _ = encode(&mut text, &self.inner.known.lock().registry);
        text
    }
}
