//! Acceptance rules: what is active, who knows it, and what is refused.

use coordinator_edge::EdgeConfig;
use event_log::{EventLog as _, MemberSpec};
use serde_json::json;
use task_events::SUPPORTED_RULES;

use crate::upstream::kit::{World, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_are_shown_and_refused_until_everybody_knows_them() {
    let world = World::new(2);
    let a = world.start("a", EdgeConfig::default());
    until("it owns both", || a.surface.owned().len() == 2).await;
    let known = SUPPORTED_RULES.0;
    let seen = a.get("/api/v1/rules").await;
    assert_eq!((seen.status, &seen.body["known"]), (200, &json!(known)));
    let partitions = json!([{"partition": 0, "active": 1}, {"partition": 1, "active": 1}]);
    assert_eq!(seen.body["partitions"], partitions);
    let member = &seen.body["members"][0];
    assert_eq!((&member["group"], &member["instance"]), (&json!("coordinator"), &json!("a")), "{seen:?}");
    assert_eq!((&member["rules_to"], &member["partitions"]), (&json!(known), &json!([0, 1])));

    // Active already: nothing is written, and asking does no harm.
    let again = a.post("/api/v1/rules", r#"{"version":1}"#).await;
    assert_eq!((again.status, &again.body["partitions"]), (200, &json!([{"partition": 0}, {"partition": 1}])));
    let unknown = a.post("/api/v1/rules", json!({"version": known + 1}).to_string()).await;
    assert_eq!(unknown.is_problem("rules_unsupported").body["limit"], json!(known));
    a.post("/api/v1/rules", r#"{"version":0}"#).await.is_problem("invalid_field");
    a.post("/api/v1/rules", r#"{"version":1,"force":true}"#).await.is_problem("unknown_field");

    // One that does not say what it knows is held to know nothing; a stranger's group does not count.
    let join = |group: &str| world.log.join(MemberSpec { group: group.into(), client_id: "rdkafka".into() });
    let stranger = join("somebodys-reports").await.expect("joined");
    assert_eq!(a.post("/api/v1/rules", r#"{"version":1}"#).await.status, 200);
    let silent = join("auto-replay").await.expect("joined");
    let refused = a.post("/api/v1/rules", r#"{"version":1}"#).await;
    let members = refused.is_problem("rules_unsupported").body["members"].clone();
    assert_eq!((&members[0]["group"], members.as_array().map(Vec::len)), (&json!("auto-replay"), Some(1)));
    drop((stranger, silent));
}
