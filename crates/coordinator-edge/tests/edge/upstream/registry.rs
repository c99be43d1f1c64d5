//! The read-only schema registry, as Confluent's clients ask it.

use serde_json::{Value, json};

use crate::upstream::kit::alone;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_schema_is_found_by_id_and_by_subject() {
    let (_world, one) = alone().await;
    let by_id = one.get("/schemas/ids/1").await;
    assert_eq!((by_id.status, by_id.kind.as_str()), (200, "application/vnd.schemaregistry.v1+json"));
    let schema: Value = serde_json::from_str(by_id.body["schema"].as_str().expect("a text")).expect("a schema");
    assert_eq!(schema["type"], "record");
    assert_eq!(one.get("/subjects").await.body, json!(["task-execution-events-value"]));
    let subject = "/subjects/task-execution-events-value/versions";
    assert_eq!(one.get(subject).await.body, json!([1]));
    let (first, latest) = (one.get(&format!("{subject}/1")).await, one.get(&format!("{subject}/latest")).await);
    assert_eq!((first.status, &first.body), (200, &latest.body));
    assert_eq!((&first.body["id"], &first.body["version"]), (&json!(1), &json!(1)));
    assert_eq!(first.body["schema"], by_id.body["schema"]);
    for (path, status, code) in [
        ("/schemas/ids/9", 404, 40403),
        ("/schemas/ids/x", 404, 40403),
        ("/subjects/other/versions", 404, 40401),
        ("/subjects/other/versions/latest", 404, 40401),
        (&format!("{subject}/9"), 404, 40402),
        (&format!("{subject}/0"), 422, 42202),
        (&format!("{subject}/newest"), 422, 42202),
    ] {
        let got = one.get(path).await;
        assert_eq!((got.status, &got.body["error_code"]), (status, &json!(code)), "{path}: {got:?}");
        assert!(got.body["message"].is_string());
    }
}
