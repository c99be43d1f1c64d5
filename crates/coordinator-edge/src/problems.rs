//! The one place where something that went wrong becomes an answer of the API.

mod answers;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rest_contract::{Code, Problem};

pub(crate) use answers::{Asked, failure_of, no_such_task};

/// A problem on its way out.
#[derive(Debug)]
pub(crate) struct Failure(pub Problem);

/// What every handler returns.
pub(crate) type Answered = Result<Response, Failure>;

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl Failure {
    /// The problem, with what every way out adds to it.
    pub(crate) fn into_problem(self) -> Problem {
        match retry_after_s(self.0.code) {
            Some(seconds) => self.0.fact("retry_after_ms", u64::from(seconds) * 1000),
            None => self.0,
        }
    }
}

/// A defect of ours: logged with what is known, told without it.
pub(crate) fn defect(what: impl AsRef<str>) -> Failure {
    tracing::error!(what = what.as_ref(), "defect");
    Failure(Problem::new(Code::Internal, "the request met a defect of the server; it is logged"))
}

/// A parameter of the path or the query that cannot be read.
pub(crate) fn bad_parameter(name: &str, value: &str, must: &str) -> Problem {
    Problem::new(Code::InvalidParameter, format!("{name} is {value:?}, it must be {must}"))
        .field(name)
        .value(value)
        .limit(must)
}

/// A field that is not valid.
pub(crate) fn bad_field(field: &str, value: impl Into<serde_json::Value>, must: &str) -> Problem {
    let problem = Problem::new(Code::InvalidField, "").field(field).value(value).limit(must);
    let shown = problem.value.as_ref().map(ToString::to_string).unwrap_or_default();
    Problem { detail: format!("{field} is {shown}, it must be {must}"), ..problem }
}

// How long a caller waits before it asks again, s: about as long as what it met lasts.
const fn retry_after_s(code: Code) -> Option<u32> {
    match code.status() {
        429 => Some(5),
        503 => Some(1),
        _ => None,
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let problem = self.into_problem();
        let bytes = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = Response::new(Body::from(bytes));
        *response.status_mut() = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry_after_s(problem.code) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
