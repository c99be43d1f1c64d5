//! What becomes of spans.

service_kit::metrics! {
    SPANS_EXPORTED = Counter "spans_exported_total" [] "spans that the collector took";
    SPANS_DROPPED = Counter "spans_dropped_total" [] "spans that found the queue full: more than 4,096 waited for the collector";
    SPANS_FAILED = Counter "spans_failed_total" [] "spans that the collector did not take";
}
