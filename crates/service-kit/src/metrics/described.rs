//! What a metric is: its row of docs/metrics.md.

use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::{Labels, Registered, latencies};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Events since the process began; its name ends in `_total`.
    Counter,
    /// A whole number that rises and falls.
    Gauge,
    /// A duration as a gauge.
    Seconds,
    /// Durations in buckets.
    Histogram,
}

impl Measure {
    /// As Prometheus calls it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge | Self::Seconds => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric. Made by [`crate::metrics!`] only, so that whatever is counted is documented.
#[derive(Debug, PartialEq, Eq)]
pub struct Described {
    /// Name without [`super::PREFIX`].
    pub name: &'static str,
    /// What is measured.
    pub measure: Measure,
    /// Names of its labels; each has few values.
    pub labels: &'static [&'static str],
    /// What it says, without a full stop.
    pub help: &'static str,
}

impl Described {
    pub(super) fn labels(&self, values: &[&str]) -> Labels {
        debug_assert_eq!(self.labels.len(), values.len(), "labels of {}", self.name);
        self.labels.iter().copied().zip(values.iter().map(|value| (*value).to_owned())).collect()
    }

    pub(super) fn register(&self, registry: &mut Registry) -> Registered {
        match self.measure {
            Measure::Counter => {
                let family = Family::default();
                // The registry adds the ending by itself.
                registry.register(self.name.trim_end_matches("_total"), self.help, family.clone());
                Registered::Counter(family)
            }
            Measure::Gauge => {
                let family = Family::default();
                registry.register(self.name, self.help, family.clone());
                Registered::Gauge(family)
            }
            Measure::Seconds => {
                let family = Family::default();
                registry.register(self.name, self.help, family.clone());
                Registered::Seconds(family)
            }
            Measure::Histogram => {
                let family = Family::new_with_constructor(latencies as fn() -> _);
                registry.register(self.name, self.help, family.clone());
                Registered::Histogram(family)
            }
        }
    }
}

/// Describes the metrics of a crate, one a line, and names them all in `ALL`:
/// `NAME = Counter "name_total" ["label"] "what it says";`.
#[macro_export]
macro_rules! metrics {
    ($($ident:ident = $measure:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(
            #[doc = $help]
            pub static $ident: $crate::Described = $crate::Described {
                name: $name,
                measure: $crate::Measure::$measure,
                labels: &[$($label),*],
                help: $help,
            };
        )*
        /// Every metric of this crate, for the document.
        pub static ALL: &[&$crate::Described] = &[$(&$ident),*];
    };
}
