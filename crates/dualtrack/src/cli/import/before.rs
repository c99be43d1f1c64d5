//! Whether a file was sent before, and how long ago: an idempotency key holds for 24 hours, and after
//! that the same line would become a second task. The server is asked for the traces of marked lines,
//! which it knows for as long as it knows their tasks; so it does not matter from where they were sent.

use rest_client::{Client, ClientError};

use super::super::times::shown;

/// How long a key holds, ms (24 h).
const WINDOW_MS: i64 = 24 * 60 * 60 * 1000;

/// Clocks may differ and a sending takes its time, ms (15 min).
const MARGIN_MS: i64 = 15 * 60 * 1000;

/// An earlier sending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// Its oldest task found, Unix ms.
    pub at: i64,
    /// That task.
    pub task: String,
}

impl Earlier {
    /// Until when its keys protect, Unix ms.
    pub const fn until(&self) -> i64 {
        self.at.saturating_add(WINDOW_MS - MARGIN_MS)
    }

    /// Why it is not sent again just so.
    pub fn words(&self, name: &str) -> String {
        format!(
            "{name} was sent before: task {} is of {}. The keys by which a line is known again hold for 24 hours, \
             so sending it again would make second tasks.\n  If that is meant, say --again; if it is another file \
             of the same name, give it another one with --name",
            self.task,
            shown(self.at)
        )
    }
}

/// The earliest task of these traces, if there is one.
///
/// # Errors
/// A failed call, or partitions that do not answer while none was found (then nobody can tell).
pub async fn earlier(client: &Client, marks: &[String]) -> Result<Option<Earlier>, Asking> {
    let mut found: Option<Earlier> = None;
    let mut silent = Vec::new();
    for mark in marks {
        let view = client.trace(mark).await.map_err(Asking::Call)?;
        silent.extend(view.unanswered);
        for task in view.tasks {
            if found.as_ref().is_none_or(|found| task.created_at < found.at) {
                found = Some(Earlier { at: task.created_at, task: task.task_id.to_string() });
            }
        }
    }
    match (&found, silent.first()) {
        (None, Some(partition)) => Err(Asking::Silent(*partition)),
        (Some(_), _) | (None, None) => Ok(found),
    }
}

/// Why nobody can tell.
#[derive(Debug)]
pub enum Asking {
    /// The call failed.
    Call(ClientError),
    /// This partition does not answer.
    Silent(u16),
}
