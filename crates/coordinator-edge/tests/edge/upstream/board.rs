//! Two instances that tell each other of themselves on a board.

use coordinator_edge::EdgeConfig;
use serde_json::json;

use crate::upstream::kit::{World, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edge_finds_owner_and_work_by_the_board_and_without_it_by_the_group() {
    for board in [true, false] {
        let world = World::new(2).with_board(board);
        let a = world.start("a", EdgeConfig::default());
        let b = world.start("b", EdgeConfig::default());
        until("each owns one", || a.surface.owned().len() == 1 && b.surface.owned().len() == 1).await;
        let id = a.task(json!({"task_type": "t", "payload": 1})).await;
        let task: task_events::TaskId = id.parse().expect("an id");
        let (right, wrong) = if a.surface.owned().contains(&task.partition()) { (a, b) } else { (b, a) };
        let count = |name: &str| wrong.metrics.counters().get(name).copied().unwrap_or(0);
        if board {
            // Known before anybody asks.
            until("the entry", || right.metrics.counters().get("board_put_up_total").is_some_and(|n| *n > 1)).await;
        }
        assert_eq!(wrong.get(&format!("/api/v1/task/{id}")).await.status, 200);
        let handed = wrong.poll("t").await;
        assert_eq!(handed.body["assignments"][0]["task_id"], id, "{handed:?}");
        assert_eq!(count("board_read_total") > 0, board);
        assert!(board || count("group_described_total") > 0);
        // The owner is gone, and with it what it said: the other one finds itself.
        drop(right);
        until("it owns both", || wrong.surface.owned().len() == 2).await;
        assert_eq!(wrong.get(&format!("/api/v1/task/{id}")).await.status, 200);
    }
}
