//! A request as a span: who asked, what was asked, how it was answered.

use axum::http::{HeaderMap, StatusCode};
use service_kit::Clock;
use spans::{Span, SpanKind, Value};
use task_events::{Sampling, SpanId, Text, TraceId, TraceParent};

use super::parameters::parent_of;
use crate::Edge;
use crate::problems::Answered;

/// A request whose answer is not known yet.
#[derive(Clone, Copy)]
pub(super) struct Asking {
    /// The caller's span, if it named one.
    pub(super) caller: Option<TraceParent>,
    own: Option<Own>,
}

/// The request's own span, if it is told.
#[derive(Clone, Copy)]
struct Own {
    span: TraceParent,
    /// When it began: Unix and boot, µs.
    began: (i64, u64),
}

impl Asking {
    /// The span that what the request brings about is part of: its own, or the caller's if nobody wants
    /// spans of requests.
    pub(super) fn parent(&self) -> Option<TraceParent> {
        self.own.map(|own| own.span).or(self.caller)
    }
}

impl<L, S, C: Clock, P> Edge<L, S, C, P> {
    /// Reads who asks. A request that names no trace begins one, if spans are wanted.
    pub(super) fn asking(&self, headers: &HeaderMap) -> Asking {
        let caller = parent_of(headers);
        let told = self.spans.is_on() && caller.is_none_or(|caller| caller.sampling.is_recorded());
        let own = told.then(|| {
            let trace_id = match caller {
                Some(caller) => caller.trace_id,
                None => TraceId::parse(self.mint_trace().as_bytes())?,
            };
            let span_id = SpanId::new(self.random().max(1).to_be_bytes())?;
            let span = TraceParent { trace_id, span_id, sampling: Sampling::Recorded };
            Some(Own { span, began: (self.clock.wall_us(), self.clock.boot_us()) })
        });
        Asking { caller, own: own.flatten() }
    }

    /// A new trace.
    pub(super) fn mint_trace(&self) -> Text {
        format!("{:016x}{:016x}", self.random(), self.random().max(1)).into()
    }

    /// The request was answered.
    pub(super) fn answered(&self, asking: Asking, route: &'static str, answered: &Answered) {
        let Some(Own { span, began: (wall_us, boot_us) }) = asking.own else { return };
        self.spans.take(|| {
            let took = i64::try_from(self.clock.boot_us().saturating_sub(boot_us)).unwrap_or(0);
            let (status, code) = match answered {
                Ok(response) => (response.status().as_u16(), None),
                Err(failure) => (failure.0.status, Some(Text::const_new(failure.0.code.as_str()))),
            };
            let mut attributes = vec![
                ("http.request.method", Value::Text(Text::const_new("POST"))),
                ("http.route", Value::Text(Text::const_new(route))),
                ("http.response.status_code", u32::from(status).into()),
            ];
            attributes.extend(code.clone().map(|code| ("error.type", Value::Text(code))));
            Some(Span {
                trace_id: span.trace_id,
                span_id: span.span_id,
                parent: asking.caller.map(|caller| caller.span_id),
                name: format!("POST {route}").into(),
                kind: SpanKind::Server,
                start_us: wall_us,
                end_us: wall_us.saturating_add(took),
                attributes,
                links: Vec::new(),
                // What the caller did wrong is no error of the server's.
                error: code.filter(|_| status >= StatusCode::INTERNAL_SERVER_ERROR.as_u16()),
            })
        });
    }
}
