//! What became of a record, in the words of every answer that shows one.

use task_core::Reason;
use task_events::{Event, Malformed};

/// The verdict, and why if the record does not count.
pub(crate) fn words(
    decoded: Result<&Event, Malformed>,
    rejected: Option<Reason>,
) -> (&'static str, Option<&'static str>) {
    match (decoded, rejected) {
        (Err(malformed), _) => ("quarantined", Some(malformed.as_str())),
        (Ok(_), Some(reason)) => ("rejected", Some(reason.as_str())),
        (Ok(_), None) => ("accepted", None),
    }
}
