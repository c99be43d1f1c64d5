//! Log lines: text for people, JSON for collectors; the same fields under the same names in both
//! (docs/guide/operations.md). One event is one line, whatever stands in it.

mod line;

use std::io;

use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::SubscriberInitExt as _;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One object a line.
    Json,
}

/// Log lines go to standard error from now on, also those of libraries that use `log`; a second call
/// changes nothing.
pub fn start(format: LogFormat, filter: EnvFilter, colours: bool) {
    let started = match format {
        LogFormat::Text => text(filter, colours, io::stderr).try_init(),
        LogFormat::Json => json(filter, io::stderr).try_init(),
    };
    if let Err(why) = started {
        tracing::warn!(%why, "somebody else has set up the log of this process");
    }
}

fn text<W>(filter: EnvFilter, colours: bool, to: W) -> impl tracing::Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let inner = tracing_subscriber::fmt::format().with_ansi(colours);
    tracing_subscriber::fmt()
        .with_ansi(colours)
        .event_format(line::OneLine(inner))
        .with_env_filter(filter)
        .with_writer(to)
        .finish()
}

fn json<W>(filter: EnvFilter, to: W) -> impl tracing::Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_env_filter(filter)
        .with_writer(to)
        .finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Kept {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().clone()).expect("UTF-8")
        }
    }

    const FORGED: &str = "w1\n2026-01-01T00:00:00Z ERROR forged: nothing happened\r\n\u{1b}[2Jx\u{85}\u{2028}y";

    fn speak() {
        tracing::warn!(task_id = %42, worker_id = %FORGED, detail = FORGED, "no answer from {FORGED}");
    }

    #[test]
    fn what_strangers_write_stays_on_its_line() {
        let kept = Kept::default();
        let to = kept.clone();
        let subscriber = text(EnvFilter::new("warn"), false, move || to.clone());
        tracing::subscriber::with_default(subscriber, speak);
        let text = kept.text();
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        assert!(text.ends_with('\n') && !text.contains(['\r', '\u{1b}', '\u{85}', '\u{2028}']), "{text:?}");
        assert!(text.contains("task_id=42") && text.contains(r"\n2026-01-01"), "{text}");
    }

    #[test]
    fn json_has_the_fields_at_its_top_and_is_one_line() {
        let kept = Kept::default();
        let to = kept.clone();
        let subscriber = json(EnvFilter::new("warn"), move || to.clone());
        tracing::subscriber::with_default(subscriber, speak);
        let text = kept.text();
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        let line: serde_json::Value = serde_json::from_str(&text).expect("an object");
        assert_eq!((&line["level"], &line["task_id"]), (&"WARN".into(), &"42".into()), "{line}");
        assert_eq!((&line["worker_id"], &line["detail"]), (&FORGED.into(), &FORGED.into()), "{line}");
        assert!(line["message"].as_str().is_some_and(|m| m.starts_with("no answer from w1")), "{line}");
        assert!(line["timestamp"].is_string() && line["target"].is_string(), "{line}");
    }
}
