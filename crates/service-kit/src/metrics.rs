//! Numbers and alarms of a process, each described once: what is counted is registered under its
//! description, exposed under it, and documented by it (docs/metrics.md). Nobody decides anything by them.

mod described;
mod kit;
mod scrape;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter as PromCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge as PromGauge;
use prometheus_client::metrics::histogram::Histogram as PromHistogram;
use prometheus_client::registry::Registry;

pub use described::{Described, Measure};
pub use kit::*;
pub use scrape::Scrape;

/// Prefix of every name.
pub const PREFIX: &str = "dualtrack";

/// Upper bounds of latency buckets, s: a fast append is below 1 ms, a request ends after 10 s, a poll
/// waits for 30 s.
const BUCKETS: [f64; 15] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

type Labels = Vec<(&'static str, String)>;

/// The numbers and alarms of one service. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    known: Mutex<Known>,
    alarms: Mutex<BTreeMap<&'static str, Alarm>>,
    /// One scrape at a time: gauges of a scrape are set anew by each.
    scraping: Mutex<()>,
}

#[derive(Debug)]
struct Known {
    registry: Registry,
    families: BTreeMap<&'static str, Registered>,
    /// Counters by name and values of labels; the families do not tell what they have.
    counters: BTreeMap<(&'static str, Labels), PromCounter>,
}

impl Default for Inner {
    fn default() -> Self {
        let known =
            Known { registry: Registry::with_prefix(PREFIX), families: BTreeMap::new(), counters: BTreeMap::new() };
        Self { known: Mutex::new(known), alarms: Mutex::default(), scraping: Mutex::default() }
    }
}

#[derive(Clone, Debug)]
enum Registered {
    Counter(Family<Labels, PromCounter>),
    Gauge(Family<Labels, PromGauge>),
    Seconds(Family<Labels, PromGauge<f64, std::sync::atomic::AtomicU64>>),
    Histogram(Family<Labels, PromHistogram, fn() -> PromHistogram>),
}

/// A number that only rises; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Counter(PromCounter);

impl Counter {
    /// Adds to it.
    pub fn add(&self, n: u64) {
        self.0.inc_by(n);
    }

    /// Its value.
    pub fn get(&self) -> u64 {
        self.0.get()
    }
}

/// A number that rises and falls; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Gauge(PromGauge);

impl Gauge {
    /// Sets it; beyond 2^63 − 1 it stays there.
    pub fn set(&self, n: u64) {
        self.0.set(i64::try_from(n).unwrap_or(i64::MAX));
    }

    /// Its value.
    pub fn get(&self) -> u64 {
        u64::try_from(self.0.get()).unwrap_or(0)
    }
}

/// How long something took, in buckets; clones share it.
#[derive(Clone, Debug)]
pub struct Histogram(PromHistogram);

impl Histogram {
    /// Notes a duration, µs.
    pub fn observe_us(&self, us: u64) {
        self.0.observe(us as f64 / 1e6);
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
    /// The counter of this description. Keep the handle: looking it up takes a lock.
    pub fn counter(&self, what: &'static Described) -> Counter {
        self.counter_of(what, &[])
    }

    /// The same with the values of its labels, in the order of their names.
    pub fn counter_of(&self, what: &'static Described, labels: &[&str]) -> Counter {
        match self.registered(what) {
            Registered::Counter(family) => {
                let labels = what.labels(labels);
                let counter = family.get_or_create_owned(&labels);
                self.inner.known.lock().counters.insert((what.name, labels), counter.clone());
                Counter(counter)
            }
            Registered::Gauge(_) | Registered::Seconds(_) | Registered::Histogram(_) => Counter::default(),
        }
    }

    /// The gauge of this description.
    pub fn gauge(&self, what: &'static Described) -> Gauge {
        match self.registered(what) {
            Registered::Gauge(family) => Gauge(family.get_or_create_owned(&what.labels(&[]))),
            Registered::Counter(_) | Registered::Seconds(_) | Registered::Histogram(_) => Gauge::default(),
        }
    }

    /// The histogram of this description and these values of its labels.
    pub fn histogram_of(&self, what: &'static Described, labels: &[&str]) -> Histogram {
        match self.registered(what) {
            Registered::Histogram(family) => Histogram(family.get_or_create_owned(&what.labels(labels))),
            Registered::Counter(_) | Registered::Gauge(_) | Registered::Seconds(_) => Histogram(latencies()),
        }
    }

    /// Sets an alarm off, logs it, and lets it stand until [`Metrics::clear`].
    pub fn alarm(&self, name: &'static str, detail: impl Into<String>) {
        let detail = detail.into();
        tracing::error!(alarm = name, detail, "alarm");
        self.counter_of(&ALARMS, &[name]).add(1);
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

    /// Every counter by name, over all values of its labels.
    pub fn counters(&self) -> BTreeMap<&'static str, u64> {
        let mut sums = BTreeMap::new();
        for ((name, _), counter) in &self.inner.known.lock().counters {
            *sums.entry(*name).or_default() += counter.get();
        }
        sums
    }

    /// Every alarm that ever went off, by name.
    pub fn alarms(&self) -> BTreeMap<&'static str, Alarm> {
        self.inner.alarms.lock().clone()
    }

    fn registered(&self, what: &'static Described) -> Registered {
        let Known { registry, families, .. } = &mut *self.inner.known.lock();
        let found = families.entry(what.name).or_insert_with(|| what.register(registry)).clone();
        debug_assert!(found.is(what.measure), "{} is two things", what.name);
        found
    }
}

impl Registered {
    const fn is(&self, measure: Measure) -> bool {
        matches!(
            (self, measure),
            (Self::Counter(_), Measure::Counter)
                | (Self::Gauge(_), Measure::Gauge)
                | (Self::Seconds(_), Measure::Seconds)
                | (Self::Histogram(_), Measure::Histogram)
        )
    }
}

fn latencies() -> PromHistogram {
    PromHistogram::new(BUCKETS)
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::metrics! {
        EATEN = Counter "apples_eaten_total" ["by"] "apples that are gone";
        HUNGER = Gauge "hunger" [] "how many are hungry";
        MEAL = Histogram "meal_seconds" [] "how long a meal took";
    }

    #[test]
    fn clones_share_and_the_text_is_what_prometheus_reads() {
        let metrics = Metrics::default();
        metrics.counter_of(&EATEN, &["a \"b\"\n"]).add(2);
        metrics.clone().counter_of(&EATEN, &["a \"b\"\n"]).add(1);
        metrics.gauge(&HUNGER).set(7);
        assert_eq!((metrics.gauge(&HUNGER).get(), ALL.len()), (7, 3));
        metrics.histogram_of(&MEAL, &[]).observe_us(1_500);
        metrics.clear("x");
        metrics.alarm("x", "first");
        metrics.alarm("x", "second");
        metrics.clear("x");
        assert_eq!(metrics.alarms()["x"], Alarm { count: 2, active: false, last: "second".into() });
        let text = metrics.scrape(|_| {});
        for wanted in [
            "# TYPE dualtrack_apples_eaten_total counter\ndualtrack_apples_eaten_total{by=\"a \\\"b\\\"\\n\"} 3\n",
            "dualtrack_hunger 7\n",
            "dualtrack_meal_seconds_bucket{le=\"0.0025\"} 1\n",
            "dualtrack_alarms_total{alarm=\"x\"} 2\n",
            "dualtrack_alarm_active{alarm=\"x\"} 0\n",
        ] {
            assert!(text.contains(wanted), "{wanted} is not in\n{text}");
        }
    }

    #[test]
    fn what_a_scrape_does_not_set_again_is_gone() {
        let metrics = Metrics::default();
        let at = |partitions: &[&str]| {
            metrics.scrape(|scrape| {
                scrape.clear(&[&PARTITION_APPLIED_OFFSET]);
                for partition in partitions {
                    scrape.set(&PARTITION_APPLIED_OFFSET, &["task-engine", partition], 5);
                }
            })
        };
        let line = |partition: u8| {
            format!("dualtrack_partition_applied_offset{{service=\"task-engine\",partition=\"{partition}\"}} 5\n")
        };
        assert!(at(&["1", "2"]).contains(&line(1)));
        let again = at(&["2"]);
        assert!(again.contains(&line(2)) && !again.contains(&line(1)), "{again}");
    }
}
