//! The adapter passes the conformance suite of its embedded twin.

use assignment_lock::conformance::Harness;
use assignment_lock::conformance::board::BoardHarness;
use assignment_lock::conformance::server::RedisServer;
use assignment_lock::{Holder, RedisConfig, RedisLock};
use redis::Commands as _;
use task_events::{ExecEpoch, TaskId};

struct Redis {
    config: RedisConfig,
    locks: RedisLock,
}

/// Who holds the lock of a task, read as people would read it.
pub fn holder(config: &RedisConfig, task: TaskId) -> Option<Holder> {
    let key = format!("{}task:{task}:assignee", config.key_prefix);
    let held: Option<String> = RedisServer::shared().raw().get(key).expect("an answer");
    held.map(|held| {
        let (worker, epoch) = held.rsplit_once('#').expect("worker_id#exec_epoch");
        Holder { worker_id: worker.into(), exec_epoch: ExecEpoch(epoch.parse().expect("a number")) }
    })
}

impl Redis {
    // The server's clock cannot be set, but what it has left to wait for can.
    fn age(&self, keys: &str, ms: u64) {
        let mut raw = RedisServer::shared().raw();
        let keys: Vec<String> = raw.keys(format!("{}{keys}", self.config.key_prefix)).expect("keys");
        for key in keys {
            let left: i64 = raw.pttl(&key).expect("an answer");
            assert!(left > 0, "{key} never expires");
            let _: bool = raw.pexpire(&key, left - i64::try_from(ms).expect("in range")).expect("an answer");
        }
    }
}

impl Harness for Redis {
    type Locks = RedisLock;

    async fn start() -> Self {
        let config = RedisServer::shared().config();
        let locks = RedisLock::connect(&config).expect("settings");
        Self { config, locks }
    }

    fn locks(&self) -> RedisLock {
        self.locks.clone()
    }

    async fn pass(&self, ms: u64) {
        self.age("task:*:assignee", ms);
    }

    async fn holder(&self, task: TaskId) -> Option<Holder> {
        holder(&self.config, task)
    }
}

assignment_lock::conformance_suite!(Redis);

impl BoardHarness for Redis {
    type Board = RedisLock;

    async fn start() -> Self {
        <Self as Harness>::start().await
    }

    fn board(&self) -> RedisLock {
        self.locks.clone()
    }

    async fn pass(&self, ms: u64) {
        self.age("task:board:*", ms);
    }
}

assignment_lock::board_suite!(Redis);
