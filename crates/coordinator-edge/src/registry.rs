//! A read-only schema registry of the compiled-in schema, as Confluent's clients read it: so that any of
//! their consumers decodes the topic without a registry beside it.

mod operations;

use axum::body::Body;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};
use task_events::{SCHEMA_ID, SCHEMA_JSON};

use crate::api::Routes;

/// Subject of the topic's values, by Confluent's naming of subjects after topics.
const SUBJECT: &str = "task-execution-events-value";

/// Content type of the registry's protocol.
const KIND: &str = "application/vnd.schemaregistry.v1+json";

type Part = Result<Path<String>, PathRejection>;

/// Group of the document.
const TAG: &str = "events";

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Routes<S> {
    Routes::new()
        .get(TAG, "/schemas/ids/{id}", schema, operations::schema())
        .get(TAG, "/subjects", subjects, operations::subjects())
        .get(TAG, "/subjects/{subject}/versions", versions, operations::versions())
        .get(TAG, "/subjects/{subject}/versions/{version}", version, operations::version())
}

async fn schema(id: Part) -> Response {
    let id = text(id);
    if id.parse() == Ok(SCHEMA_ID) {
        return answer(StatusCode::OK, &json!({"schema": SCHEMA_JSON}));
    }
    error(StatusCode::NOT_FOUND, 40403, &format!("Schema {id} not found"))
}

async fn subjects() -> Response {
    answer(StatusCode::OK, &json!([SUBJECT]))
}

async fn versions(subject: Part) -> Response {
    match text(subject) {
        subject if subject == SUBJECT => answer(StatusCode::OK, &json!((1..=SCHEMA_ID).collect::<Vec<_>>())),
        subject => no_subject(&subject),
    }
}

async fn version(path: Result<Path<(String, String)>, PathRejection>) -> Response {
    let (subject, version) = path.map(|Path(parts)| parts).unwrap_or_default();
    if subject != SUBJECT {
        return no_subject(&subject);
    }
    let number = if version == "latest" { Some(SCHEMA_ID) } else { version.parse().ok().filter(|n| *n > 0) };
    match number {
        // The id of a schema is the number of its version (design.md §3).
        Some(SCHEMA_ID) => {
            let found = json!({"subject": SUBJECT, "version": SCHEMA_ID, "id": SCHEMA_ID, "schema": SCHEMA_JSON});
            answer(StatusCode::OK, &found)
        }
        Some(number) => error(StatusCode::NOT_FOUND, 40402, &format!("Version {number} not found.")),
        None => {
            let why = format!(
                "The specified version '{version}' is not a valid version id. Allowed values are between [1, 2^31-1] \
                 and the string \"latest\""
            );
            error(StatusCode::UNPROCESSABLE_ENTITY, 42202, &why)
        }
    }
}

fn text(part: Part) -> String {
    part.map(|Path(text)| text).unwrap_or_default()
}

fn no_subject(subject: &str) -> Response {
    error(StatusCode::NOT_FOUND, 40401, &format!("Subject '{subject}' not found."))
}

fn error(status: StatusCode, code: u32, message: &str) -> Response {
    answer(status, &json!({"error_code": code, "message": message}))
}

fn answer(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(KIND));
    response
}
