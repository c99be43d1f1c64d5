//! A text format that keeps an event on its line: names of workers and queues, and what they say, are
//! strangers' words, and a line break in one would forge the next line.

use std::fmt;

use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The format inside, with control characters escaped. Colours are its own: it escapes those of others.
pub(super) struct OneLine<F>(pub(super) F);

impl<S, N, F> FormatEvent<S, N> for OneLine<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = String::with_capacity(256);
        let coloured = writer.has_ansi_escapes();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        for c in line.trim_end_matches('\n').chars() {
            let own = c == '\u{1b}' && coloured || c == '\t';
            match c {
                '\u{2028}' | '\u{2029}' => write!(writer, "{}", c.escape_unicode())?,
                c if c.is_control() && !own => write!(writer, "{}", c.escape_default())?,
                c => writer.write_char(c)?,
            }
        }
        writer.write_char('\n')
    }
}
