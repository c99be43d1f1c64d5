//! Between the bodies of the contract and the words of the protocol. Nothing is checked here: the edge
//! does that before, and the SDK only sends what it was given.

use task_events::StepDone;
use worker_protocol::{ReportAnswer, ReportBody};

use crate::report::{ReportBodyJson, Verdict};
use crate::worker::StepBody;

impl From<StepDone> for StepBody {
    fn from(s: StepDone) -> Self {
        Self { step: s.step, index: s.index, output_hash: s.output_hash, is_idempotent: s.is_idempotent }
    }
}

impl From<StepBody> for StepDone {
    fn from(s: StepBody) -> Self {
        Self { step: s.step, index: s.index, output_hash: s.output_hash, is_idempotent: s.is_idempotent }
    }
}

fn all<A, B: From<A>>(items: Vec<A>) -> Vec<B> {
    items.into_iter().map(B::from).collect()
}

// Variant by variant, in both directions: the two enums differ in how they are written, not in what they
// say.
macro_rules! reports {
    ($from:ident => $to:ident, $($step:tt)*) => {
        impl From<$from> for $to {
            fn from(body: $from) -> Self {
                match body {
                    $from::Starting { start_time, memory_usage_percent } => {
                        Self::Starting { start_time, memory_usage_percent }
                    }
                    $from::Declined { draining } => Self::Declined { draining },
                    $($step)*
                    $from::Success { result_data_hash, execution_time_ms, steps_done, memory_usage_percent } => {
                        let steps_done = all(steps_done);
                        Self::Success { result_data_hash, execution_time_ms, steps_done, memory_usage_percent }
                    }
                    $from::Failure {
                        error_code,
                        error_message,
                        category,
                        failed_step,
                        is_idempotent,
                        execution_time_ms,
                        steps_done,
                        memory_usage_percent,
                    } => Self::Failure {
                        error_code,
                        error_message,
                        category,
                        failed_step,
                        is_idempotent,
                        execution_time_ms,
                        steps_done: all(steps_done),
                        memory_usage_percent,
                    },
                }
            }
        }
    };
}

reports!(ReportBody => ReportBodyJson, ReportBody::Step(done) => Self::Step { done: done.into() },);
reports!(ReportBodyJson => ReportBody, ReportBodyJson::Step { done } => Self::Step(done.into()),);

macro_rules! verdicts {
    ($($name:ident),*) => {
        impl From<ReportAnswer> for Verdict {
            fn from(answer: ReportAnswer) -> Self {
                match answer { $(ReportAnswer::$name => Self::$name),* }
            }
        }

        impl From<Verdict> for ReportAnswer {
            fn from(verdict: Verdict) -> Self {
                match verdict { $(Verdict::$name => Self::$name),* }
            }
        }
    };
}

verdicts!(Accepted, Duplicate, Fenced, TooEarly, OutcomeUnknown, Unavailable);
