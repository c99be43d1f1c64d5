//! `[telemetry]`: what the process tells of itself: log lines on standard error, spans to a collector.

use std::io::IsTerminal as _;

use serde::{Deserialize, Serialize};
use service_kit::Metrics;
use spans::Spans;
use telemetry::{Exporting, LogFormat, OtlpError, Who};
use tracing_subscriber::EnvFilter;

use crate::settings::Rule;

/// Where OpenTelemetry's own SDKs find their collector.
const STANDARD_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// What says much that nobody asked for, unless somebody does.
const QUIET: &str = "fjall=warn,lsm_tree=warn";

/// `[telemetry]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TelemetrySection {
    /// What is said: a level, or a list such as `info,coordinator=debug`.
    pub log: String,
    /// How.
    pub log_format: LogFormat,
    /// Where spans go, `http://HOST:PORT`; empty: where the standard variable says, or nowhere.
    pub otlp_endpoint: String,
}

impl TelemetrySection {
    /// Its rules.
    pub fn rules(&self) -> Vec<Rule> {
        let known = EnvFilter::try_new(&self.log).is_ok();
        let endpoint = self.otlp_endpoint.is_empty() || telemetry::check(&self.otlp_endpoint).is_ok();
        vec![
            Rule::one(
                known,
                "telemetry.log",
                format!("{:?}", self.log),
                "a level, or a list such as info,coordinator=debug",
            ),
            Rule::one(
                endpoint,
                "telemetry.otlp_endpoint",
                format!("{:?}", self.otlp_endpoint),
                "http://HOST:PORT of a collector's OTLP receiver (HTTP, usually port 4318), or empty",
            ),
        ]
    }

    /// Says everything from now on, by `filter` if there is one. Once per process.
    pub fn start(&self, filter: Option<EnvFilter>) {
        let own = || EnvFilter::try_new(format!("{QUIET},{}", self.log)).unwrap_or_else(|_| EnvFilter::new("info"));
        telemetry::log::start(self.log_format, filter.unwrap_or_else(own), std::io::stderr().is_terminal());
    }

    /// Where spans of this process go, and what to end last. Outside of a runtime's own threads it must
    /// be ended, since that blocks.
    ///
    /// # Errors
    /// What is no endpoint; the exporter's.
    pub fn export(
        &self,
        service: &str,
        instance: &str,
        metrics: &Metrics,
    ) -> Result<(Spans, Option<Exporting>), OtlpError> {
        #[expect(clippy::disallowed_methods, reason = "the standard's own variable, below every setting of ours")]
        let standard = || std::env::var(STANDARD_ENDPOINT).unwrap_or_default();
        let endpoint = if self.otlp_endpoint.is_empty() { standard() } else { self.otlp_endpoint.clone() };
        if endpoint.is_empty() {
            return Ok((Spans::default(), None));
        }
        let (service, instance) = (service.to_owned(), instance.to_owned());
        let who = Who { service, instance, version: env!("CARGO_PKG_VERSION").to_owned() };
        let (spans, exporting) = Exporting::start(&endpoint, &who, metrics)?;
        Ok((spans, Some(exporting)))
    }
}
