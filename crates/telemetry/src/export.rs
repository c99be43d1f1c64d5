//! Spans to a collector: OTLP over HTTP, protobuf, in batches, on a thread of its own. At most
//! [`MAX_WAITING`] spans wait; one more is dropped and counted. A collector that is away costs spans and
//! nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use opentelemetry_otlp::{Protocol, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanExporter as Export, SpanProcessor as _,
};
use service_kit::{Counter, Metrics};
use spans::{Span, SpanSink, Spans};

use crate::metrics::{SPANS_DROPPED, SPANS_EXPORTED, SPANS_FAILED};
use crate::span_data::{Scope, span_data};

/// Spans that may wait for the collector, those of the batch under way included.
pub const MAX_WAITING: usize = 4_096;

/// Most spans of a batch.
const BATCH: usize = 512;

/// A batch that is not full leaves after this.
const EVERY: Duration = Duration::from_secs(1);

/// Longest a batch may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Longest the last batches may take when the process ends.
const LAST: Duration = Duration::from_secs(2);

/// Path of traces below an endpoint (OTLP specification).
const TRACES: &str = "/v1/traces";

/// Whose spans they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// Program, such as `dualtrack-coordinator`: `service.name`.
    pub service: String,
    /// Name of the instance: `service.instance.id`.
    pub instance: String,
    /// Version of the program.
    pub version: String,
}

/// Why spans cannot be exported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OtlpError {
    /// Not an address of a collector.
    #[error(
        "telemetry.otlp_endpoint = {0:?} must be http://HOST:PORT, the base address of a collector's OTLP receiver \
         (HTTP, usually port 4318); for TLS run a collector beside this program"
    )]
    Endpoint(String),
    /// The exporter cannot be made.
    #[error("spans cannot be exported to {0}: {1}")]
    Exporter(String, String),
}

/// Checks an endpoint: `http://` and a host.
///
/// # Errors
/// [`OtlpError::Endpoint`].
pub fn check(endpoint: &str) -> Result<(), OtlpError> {
    let host = endpoint.strip_prefix("http://").map(|rest| rest.split('/').next().unwrap_or_default());
    match host {
        Some(host) if !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c == '@') => Ok(()),
        Some(_) | None => Err(OtlpError::Endpoint(endpoint.to_owned())),
    }
}

/// Spans on their way to a collector.
#[derive(Debug)]
pub struct Exporting {
    processor: Arc<BatchSpanProcessor>,
    waiting: Arc<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    spans: AtomicUsize,
    away: AtomicBool,
    exported: Counter,
    dropped: Counter,
    failed: Counter,
}

impl Exporting {
    /// Spans go to the collector at `endpoint`, the base address of OTLP over HTTP.
    ///
    /// # Errors
    /// What is no endpoint; the exporter's.
    pub fn start(endpoint: &str, who: &Who, metrics: &Metrics) -> Result<(Spans, Self), OtlpError> {
        check(endpoint)?;
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}{TRACES}", endpoint.trim_end_matches('/')))
            .with_timeout(TIMEOUT)
            .build()
            .map_err(|why| OtlpError::Exporter(endpoint.to_owned(), why.to_string()))?;
        Ok(Self::through(exporter, who, metrics))
    }

    fn through(exporter: impl Export + 'static, who: &Who, metrics: &Metrics) -> (Spans, Self) {
        let waiting = Arc::new(Waiting {
            spans: AtomicUsize::new(0),
            away: AtomicBool::new(false),
            exported: metrics.counter(&SPANS_EXPORTED),
            dropped: metrics.counter(&SPANS_DROPPED),
            failed: metrics.counter(&SPANS_FAILED),
        });
        // Twice as many, so that the processor never drops what was counted as waiting.
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(2 * MAX_WAITING)
            .with_max_export_batch_size(BATCH)
            .with_scheduled_delay(EVERY)
            .build();
        let counted = Counted { exporter, waiting: waiting.clone() };
        let mut processor = BatchSpanProcessor::new(counted, config);
        processor.set_resource(&resource(who));
        let processor = Arc::new(processor);
        let sink = Sink { processor: processor.clone(), waiting: waiting.clone(), scope: Scope::new(&who.version) };
        (Spans::to(sink), Self { processor, waiting })
    }

    /// Sends what waits, for two seconds at most; how many spans are left then. Blocks.
    pub fn end(self) -> usize {
        // An error is a collector that is away, which was logged when it went.
        let _ = self.processor.shutdown_with_timeout(LAST);
        self.waiting.spans.load(Ordering::Relaxed)
    }
}

fn resource(who: &Who) -> Resource {
    Resource::builder_empty()
        .with_attributes([
            opentelemetry::KeyValue::new("service.name", who.service.clone()),
            opentelemetry::KeyValue::new("service.namespace", "dualtrack"),
            opentelemetry::KeyValue::new("service.instance.id", who.instance.clone()),
            opentelemetry::KeyValue::new("service.version", who.version.clone()),
        ])
        .build()
}

struct Sink {
    processor: Arc<BatchSpanProcessor>,
    waiting: Arc<Waiting>,
    scope: Scope,
}

impl SpanSink for Sink {
    fn take(&self, span: Span) {
        if self.waiting.spans.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            self.waiting.spans.fetch_sub(1, Ordering::Relaxed);
            self.waiting.dropped.add(1);
            return;
        }
        self.processor.on_end(span_data(span, &self.scope));
    }
}

/// The exporter, with what becomes of its batches counted.
#[derive(Debug)]
struct Counted<E> {
    exporter: E,
    waiting: Arc<Waiting>,
}

impl<E: Export> Export for Counted<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len();
        let outcome = self.exporter.export(batch).await;
        self.waiting.spans.fetch_sub(count, Ordering::Relaxed);
        match &outcome {
            Ok(()) => {
                self.waiting.exported.add(count as u64);
                if self.waiting.away.swap(false, Ordering::Relaxed) {
                    tracing::info!("the collector takes spans again");
                }
            }
            Err(why) => {
                self.waiting.failed.add(count as u64);
                if !self.waiting.away.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%why, "the collector does not take spans; they are dropped and counted, nothing else changes");
                }
            }
        }
        outcome
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;
    use task_events::{SpanId, TraceId};

    // A collector that answers while nobody holds this.
    #[derive(Debug)]
    struct Stuck(Arc<Mutex<()>>);

    impl Export for Stuck {
        async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
            drop(self.0.lock());
            Ok(())
        }
    }

    fn span(n: u64) -> Span {
        Span {
            trace_id: TraceId::new([1; 16]).expect("a trace"),
            span_id: SpanId::new((n + 1).to_be_bytes()).expect("a span"),
            parent: None,
            name: "x".into(),
            kind: spans::SpanKind::Internal,
            start_us: 1,
            end_us: 2,
            attributes: Vec::new(),
            links: Vec::new(),
            error: None,
        }
    }

    #[test]
    fn a_collector_that_stands_still_costs_spans_and_nothing_else() {
        let (gate, metrics) = (Arc::new(Mutex::new(())), Metrics::default());
        let held = gate.lock();
        let who = Who { service: "s".into(), instance: "i".into(), version: "1".into() };
        let (spans, exporting) = Exporting::through(Stuck(gate.clone()), &who, &metrics);
        let all = MAX_WAITING as u64 + 100;
        (0..all).for_each(|n| spans.take(|| Some(span(n))));
        let count = |name| metrics.counters()[name];
        assert_eq!(count("spans_dropped_total"), 100);
        drop(held);
        assert_eq!(exporting.end(), 0);
        assert_eq!(count("spans_exported_total"), MAX_WAITING as u64);
    }

    #[test]
    fn what_is_no_endpoint_is_refused_by_name() {
        for good in ["http://127.0.0.1:4318", "http://collector:4318/", "http://[::1]:4318/otlp"] {
            assert_eq!(check(good), Ok(()));
        }
        for bad in ["", "127.0.0.1:4318", "https://collector:4318", "http://", "http:///v1", "http://u:p@host:1"] {
            let why = check(bad).expect_err("no endpoint").to_string();
            assert!(why.contains("telemetry.otlp_endpoint") && why.contains("4318"), "{why}");
        }
    }
}
