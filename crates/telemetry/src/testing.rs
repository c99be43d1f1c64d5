//! A collector of a test's own: takes OTLP over HTTP as protobuf and keeps what it got.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use parking_lot::{Condvar, Mutex};
use prost::Message as _;

/// A span as it arrived; ids in hexadecimal, times in ns since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// `service.name` of who sent it.
    pub service: String,
    /// Trace.
    pub trace: String,
    /// Its identity.
    pub span: String,
    /// What it is part of; empty for the first of a trace.
    pub parent: String,
    /// Name.
    pub name: String,
    /// Text and numbers.
    pub attributes: BTreeMap<String, String>,
    /// Spans that led to it.
    pub links: Vec<String>,
    /// It failed, with this.
    pub error: Option<String>,
    /// Begin.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
}

/// The collector; it goes on listening for as long as the process lives.
#[derive(Clone)]
pub struct Collector {
    address: SocketAddr,
    kept: Arc<(Mutex<Vec<Received>>, Condvar)>,
}

impl Collector {
    /// Listens on a free port of loopback.
    ///
    /// # Panics
    /// There is none.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let kept = Arc::<(Mutex<Vec<Received>>, Condvar)>::default();
        let collector = Self { address, kept };
        let taking = collector.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let taking = taking.clone();
                std::thread::spawn(move || taking.serve(stream));
            }
        });
        collector
    }

    /// Base address for `telemetry.otlp_endpoint`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All that arrived.
    pub fn spans(&self) -> Vec<Received> {
        self.kept.0.lock().clone()
    }

    /// Waits until what arrived is enough.
    ///
    /// # Panics
    /// It was not within 30 s; says what there was.
    pub fn until(&self, what: &str, enough: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        let (kept, arrived) = &*self.kept;
        let mut spans = kept.lock();
        while !enough(&spans) {
            let late = arrived.wait_for(&mut spans, Duration::from_secs(30)).timed_out();
            assert!(!late || enough(&spans), "{what} did not come: {spans:#?}");
        }
        spans.clone()
    }

    // One connection: requests with a length, one after the other.
    fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut answers = stream.try_clone().ok()?;
        let mut reader = BufReader::new(stream);
        loop {
            let (mut first, mut length) = (String::new(), 0);
            reader.read_line(&mut first).ok().filter(|read| *read > 0)?;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
                let line = line.trim().to_ascii_lowercase();
                if line.is_empty() {
                    break;
                }
                if let Some(text) = line.strip_prefix("content-length:") {
                    length = text.trim().parse().ok()?;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            let known = first.starts_with("POST /v1/traces ");
            let read = known.then(|| ExportTraceServiceRequest::decode(&body[..]).ok()).flatten();
            let status = if read.is_some() { "200 OK" } else { "400 Bad Request" };
            self.keep(read.unwrap_or_default());
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n");
            answers.write_all(head.as_bytes()).ok()?;
        }
    }

    fn keep(&self, request: ExportTraceServiceRequest) {
        let (kept, arrived) = &*self.kept;
        let mut spans = kept.lock();
        for resource in request.resource_spans {
            let of = resource.resource.map(|resource| texts(resource.attributes)).unwrap_or_default();
            let service = of.get("service.name").cloned().unwrap_or_default();
            for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                let status = span.status.filter(|status| status.code == StatusCode::Error as i32);
                spans.push(Received {
                    service: service.clone(),
                    trace: hex(&span.trace_id),
                    span: hex(&span.span_id),
                    parent: hex(&span.parent_span_id),
                    name: span.name,
                    attributes: texts(span.attributes),
                    links: span.links.iter().map(|link| hex(&link.span_id)).collect(),
                    error: status.map(|status| status.message),
                    start_ns: span.start_time_unix_nano,
                    end_ns: span.end_time_unix_nano,
                });
            }
        }
        arrived.notify_all();
    }
}

fn texts(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: any_value::Value| match value {
        any_value::Value::StringValue(text) => Some(text),
        any_value::Value::IntValue(number) => Some(number.to_string()),
        any_value::Value::BoolValue(_)
        | any_value::Value::DoubleValue(_)
        | any_value::Value::ArrayValue(_)
        | any_value::Value::KvlistValue(_)
        | any_value::Value::BytesValue(_)
        | any_value::Value::StringValueStrindex(_) => None,
    };
    let pairs = attributes.into_iter().filter_map(|pair| Some((pair.key, text(pair.value?.value?)?)));
    pairs.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
