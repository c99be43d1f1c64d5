//! From an answer to the outcome of an attempt.

use bytes::Bytes;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use rest_client::contract::MAX_PAYLOAD_BYTES;
use task_events::ErrorCategory;
use worker_sdk::HandlerError;

use crate::worker::result;

/// Of the body of an error so much is kept, bytes.
pub const MAX_ERROR_BYTES: usize = 64 * 1024;
/// And so much of it stands in the report, characters.
const HINT_CHARS: usize = 160;

/// An answer that came whole; of an error the body may be its beginning.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Its beginning.
    pub body: Bytes,
    /// How long it is, bytes.
    pub total: u64,
}

impl Answer {
    /// How long the receiver wants to be left alone, ms: seconds or a date.
    pub fn retry_after_ms(&self, now_ms: i64) -> Option<u64> {
        let text = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        if let Ok(seconds) = text.parse::<u64>() {
            return Some(seconds.saturating_mul(1_000));
        }
        let at = httpdate::parse_http_date(text).ok()?;
        let at_ms = at.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis();
        Some(u64::try_from(i64::try_from(at_ms).ok()?.saturating_sub(now_ms)).unwrap_or(0))
    }

    /// 2xx: the body is the result, as JSON or as a JSON string. All else fails.
    pub fn outcome(self) -> Result<Bytes, HandlerError> {
        let status = self.status;
        if !status.is_success() {
            return Err(self.failure());
        }
        if self.total > MAX_PAYLOAD_BYTES as u64 {
            let text = format!("the answer has {} bytes, the limit is {MAX_PAYLOAD_BYTES}", self.total);
            return Err(HandlerError::permanent("RESULT_TOO_LARGE", text));
        }
        Ok(match result::json(&self.body) {
            Ok(value) => value,
            Err(_) if self.body.trim_ascii().is_empty() => Bytes::from_static(b"null"),
            Err(_) => result::text(&self.body),
        })
    }

    fn failure(&self) -> HandlerError {
        let status = self.status;
        let text = String::from_utf8_lossy(&self.body);
        let hint: String = text.trim().chars().take(HINT_CHARS).collect();
        let target = self.headers.get(LOCATION).map(|at| String::from_utf8_lossy(at.as_bytes()).into_owned());
        let what = match target.filter(|_| status.is_redirection()) {
            Some(target) => format!("{status}: redirects are not followed; it points to {target:?}"),
            None if hint.is_empty() => status.to_string(),
            None => format!("{status}: {hint}"),
        };
        let short: String = what.chars().take(240).collect();
        let category = if is_worth_another(status) { ErrorCategory::Transient } else { ErrorCategory::NonRetryable };
        HandlerError::new(format!("HTTP_{}", status.as_u16()), short, category).with_text(format!("{status}\n{text}"))
    }
}

/// 408, 425 and 429 ask for it, 5xx may pass.
fn is_worth_another(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, retry_after: Option<&str>) -> Answer {
        let mut headers = HeaderMap::new();
        if let Some(text) = retry_after {
            headers.insert(RETRY_AFTER, text.parse().unwrap());
        }
        let body = Bytes::from_static(b"\"so\"");
        Answer { status: StatusCode::from_u16(status).unwrap(), headers, total: body.len() as u64, body }
    }

    #[test]
    fn each_status_has_its_outcome() {
        use ErrorCategory::{NonRetryable, Transient};
        for status in [200, 201, 202, 299] {
            assert_eq!(answer(status, None).outcome().unwrap(), "\"so\"");
        }
        for (status, category) in [
            (301, NonRetryable),
            (304, NonRetryable),
            (400, NonRetryable),
            (404, NonRetryable),
            (408, Transient),
            (409, NonRetryable),
            (425, Transient),
            (429, Transient),
            (499, NonRetryable),
            (500, Transient),
            (503, Transient),
            (599, Transient),
        ] {
            let error = answer(status, None).outcome().unwrap_err();
            assert_eq!((error.code.to_string(), error.category), (format!("HTTP_{status}"), category));
        }
        let empty = Answer { body: Bytes::new(), total: 0, ..answer(204, None) };
        assert_eq!(empty.outcome().unwrap(), "null");
        for (body, result) in [("well done", "\"well done\""), (" {\"n\":1}\n", "{\"n\":1}"), ("\r\n", "null")] {
            let answer = Answer { body: Bytes::from_static(body.as_bytes()), total: 1, ..answer(200, None) };
            assert_eq!(answer.outcome().unwrap(), result);
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let of = |text| answer(503, Some(text)).retry_after_ms(784_111_770_000);
        assert_eq!(of("120"), Some(120_000));
        assert_eq!(of("Sun, 06 Nov 1994 08:49:37 GMT"), Some(7_000));
        assert_eq!(of("Sun, 06 Nov 1994 08:49:00 GMT"), Some(0), "over already");
        assert_eq!(of("soon"), None);
        assert_eq!(answer(503, None).retry_after_ms(0), None);
    }
}
