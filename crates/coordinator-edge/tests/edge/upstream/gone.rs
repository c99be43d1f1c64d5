//! Tasks whose rows are gone: what is still known of them is told with the refusal.

use std::sync::Arc;

use coordinator_edge::EdgeConfig;
use serde_json::json;
use service_kit::{Clock as _, SystemClock};
use snapshot_store::{MemoryStore, RowKind, RowWrite};
use task_events::{TASK_ID_EPOCH_MS, TaskId, TaskState};

use crate::upstream::kit::{World, until};

const DAY_MS: i64 = 86_400_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_old_is_refused_with_its_summary_while_that_lives() {
    let world = World::with_store(1, MemoryStore::with_clock(Arc::new(|| SystemClock.wall_ms())));
    let one = world.start("a", EdgeConfig::default());
    until("it owns it", || one.surface.owned().len() == 1).await;
    let id = one.task(json!({"task_type": "t", "payload": 1})).await;
    one.post(&format!("/api/v1/task/{id}/cancel"), "{}").await;
    until("its row is written", || world.store.rows().iter().any(|row| row.closed_at.is_some())).await;
    let mut row = world.store.rows().remove(0);
    let now = SystemClock.wall_ms();
    for (days, known) in [(40, true), (200, false)] {
        let ended = now - days * DAY_MS;
        let old = TaskId::from_parts(ended - TASK_ID_EPOCH_MS, row.core.id.partition(), 7).expect("an id");
        (row.core.id, row.core.state) = (old, TaskState::FailedPermanently);
        let beside = Arc::make_mut(&mut row.row);
        (beside.end_time, beside.error_code) = (Some(ended), Some("DISK_FULL".into()));
        world.store.write_now(vec![RowWrite { timestamp_us: 1, row: RowKind::Snapshot(row.clone()) }]);
        let path = format!("/api/v1/task/{old}");
        let replay = format!("{path}/replay");
        let review = format!("/api/v1/review/{old}");
        for got in [
            one.get(&path).await,
            one.get(&format!("{path}/events")).await,
            one.get(&format!("{path}/why")).await,
            one.get(&format!("{path}/result")).await,
            one.post(&format!("{path}/cancel"), "{}").await,
            one.post(&replay, r#"{"run_no":1}"#).await,
            one.post(&review, r#"{"run_no":1,"outcome":"ACCEPTED"}"#).await,
        ] {
            got.is_problem("replay_window_over");
            let summary = &got.body["summary"];
            assert_eq!(summary.is_object(), known, "{days} days: {got:?}");
            if known {
                assert_eq!(
                    (&summary["task_id"], &summary["status"]),
                    (&json!(old.to_string()), &json!("FAILED_PERMANENTLY"))
                );
                assert_eq!((&summary["completed_at"], &summary["error_code"]), (&json!(ended), &json!("DISK_FULL")));
            }
        }
        let listed = one.get("/api/v1/tasks?code=DISK_FULL").await;
        let found =
            listed.body["tasks"].as_array().expect("a list").iter().any(|task| task["task_id"] == old.to_string());
        assert_eq!(found, known, "{days} days: {listed:?}");
    }
    one.get("/api/v1/task/4194304").await.is_problem("replay_window_over");
}
