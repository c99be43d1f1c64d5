//! From the end of a program to the outcome of its attempt.

use std::ops::RangeInclusive;
use std::str::FromStr;

use bytes::Bytes;
use nix::sys::signal::Signal;
use rest_client::contract::MAX_PAYLOAD_BYTES;
use task_events::ErrorCategory;
use worker_sdk::HandlerError;

use crate::worker::result;
use crate::worker::supervisor::{Captured, Ended, How, LastLine};
use crate::worker::tree::Status;

/// Longest summary of an error, characters: what stands in the report itself.
const SUMMARY_CHARS: usize = 240;

/// Ends that are not worth another attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoRetry {
    codes: Vec<RangeInclusive<i32>>,
    signals: Vec<i32>,
}

impl FromStr for NoRetry {
    type Err = String;

    // `2,65-78,SEGV`; an empty text is none.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut found = Self::default();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let bad = || format!("{item:?} is no exit code (0 to 255), range (65-78) or signal (SEGV)");
            let code = |text: &str| text.parse::<u8>().map(i32::from).map_err(|_| bad());
            if item.starts_with(|c: char| c.is_ascii_digit()) {
                let (from, to) = item.split_once('-').unwrap_or((item, item));
                let (from, to) = (code(from)?, code(to)?);
                if from > to {
                    return Err(bad());
                }
                found.codes.push(from..=to);
            } else {
                let name = format!("SIG{}", item.to_ascii_uppercase().trim_start_matches("SIG"));
                found.signals.push(Signal::from_str(&name).map_err(|_| bad())? as i32);
            }
        }
        Ok(found)
    }
}

impl NoRetry {
    fn category(&self, status: Status) -> ErrorCategory {
        let never = match status {
            Status::Exited(code) => self.codes.iter().any(|codes| codes.contains(&code)),
            Status::Signalled(signal) => self.signals.contains(&signal),
        };
        if never { ErrorCategory::NonRetryable } else { ErrorCategory::Transient }
    }
}

/// Name of a signal, as in `kill -l`: `SIGKILL`.
fn signal_name(signal: i32) -> String {
    Signal::try_from(signal).map_or_else(|_| format!("SIG{signal}"), |signal| signal.as_str().to_owned())
}

/// The outcome of a program that ended by itself. `in_unsafe_step`: it was inside a step that must not
/// run twice, so that of a sudden death nobody knows what it did.
pub fn of_end(
    ended: &Ended,
    retries: &NoRetry,
    require_json: bool,
    in_unsafe_step: bool,
) -> Result<Bytes, HandlerError> {
    let (code, summary, category) = match &ended.how {
        How::NotStarted(why) => {
            ("EXEC_NOT_STARTED".to_owned(), format!("the program was not started: {why}"), ErrorCategory::Transient)
        }
        How::Ended(Status::Exited(0)) => return result_of(ended.last_line.as_ref(), require_json),
        How::Ended(status @ Status::Exited(code)) => {
            (format!("EXIT_{code}"), format!("exit code {code}"), retries.category(*status))
        }
        How::Ended(status @ Status::Signalled(signal)) => {
            let name = signal_name(*signal);
            let category = if in_unsafe_step { ErrorCategory::OutcomeUnknown } else { retries.category(*status) };
            (name.clone(), format!("ended by {name}"), category)
        }
    };
    Err(failure(&code, &summary, category, ended))
}

/// A failure with what the program printed.
pub fn failure(code: &str, summary: &str, category: ErrorCategory, ended: &Ended) -> HandlerError {
    let hint = last_words(&ended.stderr).or_else(|| last_words(&ended.stdout));
    let whole = hint.map_or_else(|| summary.to_owned(), |hint| format!("{summary}: {hint}"));
    let short: String = whole.chars().take(SUMMARY_CHARS).collect();
    let text = format!("{whole}\n{}{}", section("stderr", &ended.stderr), section("stdout", &ended.stdout));
    HandlerError::new(code, short, category).with_text(text)
}

// The last line that is not blank.
fn last_words(captured: &Captured) -> Option<String> {
    let end = if captured.tail.is_empty() { &captured.head } else { &captured.tail };
    let text = String::from_utf8_lossy(end);
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

fn section(name: &str, captured: &Captured) -> String {
    let Captured { head, tail, total } = captured;
    let kept = (head.len() + tail.len()) as u64;
    let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
    match total.saturating_sub(kept) {
        0 if *total == 0 => format!("--- {name}: nothing\n"),
        0 => format!("--- {name}: {total} bytes\n{head}{tail}\n"),
        left_out => format!(
            "--- {name}: {total} bytes, of which {left_out} in the middle are left out\n{head}\n--- …\n{tail}\n"
        ),
    }
}

// The last line without blanks around it if it is JSON, else as a JSON string; null without one.
fn result_of(line: Option<&LastLine>, require_json: bool) -> Result<Bytes, HandlerError> {
    let Some(LastLine { begin, bytes }) = line else {
        return match require_json {
            true => Err(HandlerError::permanent("RESULT_NOT_JSON", "nothing was printed, JSON was required")),
            false => Ok(Bytes::from_static(b"null")),
        };
    };
    if *bytes > MAX_PAYLOAD_BYTES as u64 {
        let text = format!("the last line of stdout has {bytes} bytes, the limit is {MAX_PAYLOAD_BYTES}");
        return Err(HandlerError::permanent("RESULT_TOO_LARGE", text));
    }
    match result::json(begin) {
        Ok(value) => Ok(value),
        Err(why) if require_json => {
            Err(HandlerError::permanent("RESULT_NOT_JSON", format!("the last line of stdout is not JSON: {why}")))
        }
        Err(_) => Ok(result::text(begin)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(status: Status, last: Option<&[u8]>) -> Ended {
        let last_line = last.map(|line| LastLine { begin: Bytes::copy_from_slice(line), bytes: line.len() as u64 });
        let (stdout, stderr) = (Captured::default(), Captured::default());
        Ended { how: How::Ended(status), cut: None, stdout, stderr, last_line }
    }

    fn fails(status: Status, retries: &str) -> (String, ErrorCategory) {
        let error = of_end(&ended(status, None), &retries.parse().unwrap(), false, false).unwrap_err();
        (error.code.to_string(), error.category)
    }

    #[test]
    fn codes_and_signals_are_kept_apart() {
        use ErrorCategory::{NonRetryable, Transient};
        for code in [1, 2, 125, 128, 130, 137, 143, 255] {
            assert_eq!(fails(Status::Exited(code), "126,127"), (format!("EXIT_{code}"), Transient));
        }
        for code in [126, 127] {
            assert_eq!(fails(Status::Exited(code), "126,127"), (format!("EXIT_{code}"), NonRetryable));
        }
        for (signal, name) in [(2, "SIGINT"), (15, "SIGTERM"), (11, "SIGSEGV"), (9, "SIGKILL"), (13, "SIGPIPE")] {
            assert_eq!(fails(Status::Signalled(signal), "126,127"), (name.to_owned(), Transient));
        }
        assert_eq!(fails(Status::Signalled(40), ""), ("SIG40".to_owned(), Transient));
        assert_eq!(fails(Status::Exited(70), "2,65-78,segv").1, NonRetryable);
        assert_eq!(fails(Status::Signalled(11), "2,65-78,SIGSEGV").1, NonRetryable);
        assert_eq!(fails(Status::Exited(11), "SEGV").1, Transient);
        let unsafe_death = of_end(&ended(Status::Signalled(9), None), &NoRetry::default(), false, true);
        assert_eq!(unsafe_death.unwrap_err().category, ErrorCategory::OutcomeUnknown);
        for bad in ["256", "-1", "9-2", "NOPE", "1-", "2;3"] {
            assert!(bad.parse::<NoRetry>().unwrap_err().contains("exit code"), "{bad}");
        }
    }

    #[test]
    fn the_last_line_is_the_result() {
        let of = |line: Option<&[u8]>, json| of_end(&ended(Status::Exited(0), line), &NoRetry::default(), json, false);
        let code = |outcome: Result<Bytes, HandlerError>| outcome.unwrap_err().code.to_string();
        assert_eq!(of(Some(b"{\"n\":0.10000000000000000555}"), true).unwrap(), "{\"n\":0.10000000000000000555}");
        assert_eq!(of(Some(b" {} \t"), true).unwrap(), "{}");
        assert_eq!(of(Some(b"plain \"text\""), false).unwrap(), r#""plain \"text\"""#);
        assert_eq!(of(Some(b"\xff"), false).unwrap(), "\"\u{fffd}\"");
        assert_eq!(of(None, false).unwrap(), "null");
        assert_eq!(code(of(None, true)), "RESULT_NOT_JSON");
        assert_eq!(code(of(Some(b"plain"), true)), "RESULT_NOT_JSON");
        let text = vec![b'a'; MAX_PAYLOAD_BYTES];
        assert_eq!(of(Some(&text), false).unwrap(), text);
        let error = of(Some(&[&text[..], b"a"].concat()), false).unwrap_err();
        assert_eq!((error.code.as_str(), error.category), ("RESULT_TOO_LARGE", ErrorCategory::NonRetryable));
        assert!(error.message.contains("262145") && error.message.contains("262144"), "{error}");
    }

    #[test]
    fn an_error_says_what_the_program_said_last() {
        let mut of = ended(Status::Exited(3), None);
        of.stderr = Captured { head: "begin\n".into(), tail: "all is\nlost\n\n".into(), total: 5_000_000 };
        let error = of_end(&of, &NoRetry::default(), false, false).unwrap_err();
        assert_eq!(error.message, "exit code 3: lost");
    }
}
