//! `dualtrack dev` and the command line as users start them, with real processes.

mod command_line;
mod import_answers;
mod imports;
mod kit;
mod metrics;
mod nouns;
mod patience;
mod processes;
#[path = "../../../rest-client/tests/shared/request.rs"]
mod request;
mod telemetry;
mod torn_tail;
