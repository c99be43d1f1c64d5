//! The OpenAPI document is the committed one, and it and the router know the same endpoints.

use std::collections::BTreeSet;
use std::path::Path;

use reqwest::Method;
use rest_contract::Code;
use serde_json::Value;

use crate::checked::{conforms, document, text};
use crate::upstream::kit::{Got, alone};

const METHODS: [Method; 5] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// Every operation: method, path and what the document says.
fn operations() -> impl Iterator<Item = (&'static String, &'static String, &'static Value)> {
    let paths = document()["paths"].as_object().expect("paths");
    paths.iter().flat_map(|(path, item)| {
        item.as_object().expect("operations").iter().map(move |(method, operation)| (method, path, operation))
    })
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the switch that rewrites instead of comparing")]
fn the_document_is_the_committed_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/openapi/dualtrack.json");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, text()).expect("writable");
    }
    let committed = std::fs::read_to_string(&path).expect("the committed document");
    let text = text();
    let differing = committed.lines().zip(text.lines()).position(|(committed, made)| committed != made);
    assert!(committed == text, "the API changed (line {differing:?} is the first); if that is meant, run `make docs`");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_served() {
    let (_world, one) = alone().await;
    let got = one.get("/openapi.json").await;
    assert_eq!((got.status, got.kind.as_str(), got.text), (200, "application/json", text()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn router_and_document_know_the_same_endpoints() {
    let (_world, one) = alone().await;
    let paths = document()["paths"].as_object().expect("paths");
    for (path, item) in paths {
        assert!(!path.starts_with("/internal"), "{path} is nobody else's matter");
        let uri =
            path.split('/').map(|part| if part.starts_with('{') { "1" } else { part }).collect::<Vec<_>>().join("/");
        for method in METHODS {
            // A parameter that is refused, since a stream would have no end.
            let got = one.send(method.clone(), &format!("{uri}?mood=good"), &[], "").await;
            let is_there = item.get(method.as_str().to_lowercase()).is_some();
            assert_eq!(got.body["code"] != "method_not_allowed", is_there, "{method} {uri}: {got:?}");
            assert_ne!(got.body["code"], "no_such_path", "{method} {uri}");
        }
    }
}

#[test]
fn there_is_no_other_way_into_the_router() {
    let mut todo = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut found = BTreeSet::new();
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(std::fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            let adds = [".route(", ".route_service(", ".nest(", ".nest_service("];
            if adds.iter().any(|add| text.contains(add)) {
                found.insert(path.file_name().expect("a name").to_string_lossy().into_owned());
            }
        }
    }
    assert_eq!(found, ["api.rs", "internal.rs"].map(str::to_owned).into(), "endpoints belong into the table of `api`");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_that_it_does_not_name_are_refused() {
    let (_world, one) = alone().await;
    for (method, path, operation) in operations() {
        let names: BTreeSet<&str> = parameters(operation, "query").collect();
        let parts: BTreeSet<&str> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        assert_eq!(parameters(operation, "path").collect::<BTreeSet<_>>(), parts, "{method} {path}");
        if path.starts_with("/api/v1/") {
            let uri = path
                .replace("{trace_id}", &"a".repeat(32))
                .replace("{id}", "1")
                .replace("{key}", "k")
                .replace("{name}", "q");
            let got =
                one.send(method.to_uppercase().parse().expect("a method"), &format!("{uri}?mood=good"), &[], "").await;
            got.is_problem("invalid_parameter");
            assert_eq!(known(&got), names, "{method} {path}: {got:?}");
        }
    }
}

fn parameters(operation: &'static Value, place: &str) -> impl Iterator<Item = &'static str> {
    let all = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().filter(move |parameter| parameter["in"] == place).filter_map(|parameter| parameter["name"].as_str())
}

// The parameters that the edge says it knows.
fn known(got: &Got) -> BTreeSet<&str> {
    let said = got.body["limit"].as_str().expect("a limit");
    let listed = said.strip_prefix("one of ").map_or("", |rest| rest.split(':').next().expect("a list"));
    listed.split(", ").filter(|name| !name.is_empty()).collect()
}

#[test]
fn operations_are_told_apart_and_their_examples_are_right() {
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations() {
        let id = operation["operationId"].as_str().expect("an id");
        assert!(ids.insert(id), "{id} stands twice");
        assert!(operation["summary"].is_string() && operation["tags"].is_array(), "{id}");
        let body = &operation["requestBody"]["content"]["application/json"];
        assert_eq!(body.is_object(), method == "post", "{method} {path}");
        if body.is_object() {
            assert!(body["example"].is_object(), "{id}");
            conforms(&format!("{method} {path}"), &body["schema"], &body["example"], id);
        }
        let known: BTreeSet<&str> =
            document()["tags"].as_array().expect("tags").iter().filter_map(|tag| tag["name"].as_str()).collect();
        assert!(
            operation["tags"].as_array().expect("tags").iter().all(|tag| known.contains(tag.as_str().expect("a name")))
        );
    }
}

#[test]
fn every_code_is_listed_and_answered_somewhere() {
    let all: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let listed = document()["components"]["schemas"]["Code"]["enum"].as_array().expect("a list");
    assert_eq!(listed.iter().filter_map(Value::as_str).collect::<BTreeSet<_>>(), all);
    // Of no operation, and of the last message of a stream.
    let mut used: BTreeSet<&str> = ["no_such_path", "method_not_allowed", "reader_too_slow"].into();
    for (_, _, operation) in operations() {
        for answer in operation["responses"].as_object().expect("answers").values() {
            used.extend(answer["x-codes"].as_array().into_iter().flatten().filter_map(Value::as_str));
        }
    }
    assert_eq!(used, all, "codes that no operation names");
}
