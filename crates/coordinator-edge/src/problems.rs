//! The one place where something that went wrong becomes an answer of the API.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rest_contract::{Code, Problem};

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

/// A defect of ours: logged with what is known, told without it.
pub(crate) fn defect(what: impl AsRef<str>) -> Failure {
    tracing::error!(what = what.as_ref(), "defect");
    Failure(Problem::new(Code::Internal, "the request met a defect of the server; it is logged"))
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
        let Self(mut problem) = self;
        let retry = retry_after_s(problem.code);
        if let Some(seconds) = retry {
            problem = problem.fact("retry_after_ms", u64::from(seconds) * 1000);
        }
        let bytes = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = Response::new(Body::from(bytes));
        *response.status_mut() = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
