//! What the document says of the probes, and of itself.

use serde_json::json;

use super::{Health, Ready};
use crate::api::Operation;

pub(super) fn healthz() -> Operation {
    Operation::new("getHealth", "Tells that the process is alive, and which alarms stand")
        .answers::<Health<'_>>(200, "It is alive.")
}

pub(super) fn readyz() -> Operation {
    Operation::new("getReadiness", "Tells whether the instance's partitions get on")
        .answers::<Ready<'_>>(200, "They do.")
        .answers::<Ready<'_>>(503, "They do not, or there are none: `reasons` says why.")
}

pub(super) fn metrics() -> Operation {
    Operation::new("getMetrics", "Counters and alarms, for Prometheus").answers_with(
        200,
        "text/plain",
        json!({ "type": "string" }),
        "Text exposition format, version 0.0.4.",
    )
}

pub(crate) fn document() -> Operation {
    Operation::new("getDocument", "This document").answers_with(
        200,
        "application/json",
        json!({ "type": "object" }),
        "OpenAPI 3.1.",
    )
}
