//! What a coordinator counts. What it reads off its owners is set by whoever answers a scrape.

use service_kit::{Counter, Described, Histogram, Metrics};

service_kit::metrics! {
    PARTITION_EPOCH = Gauge "partition_epoch" ["partition"] "number of the ownership; each take-over and each claim after an unknown outcome counts it up";
    PARTITION_BACKLOG = Gauge "partition_backlog" ["partition"] "tasks that could be handed out now";
    PARTITION_OPEN_TASKS = Gauge "partition_open_tasks" ["partition"] "tasks that are open";
    PARTITION_IN_FLIGHT = Gauge "partition_in_flight" ["partition"] "own records between append and read-back; 4,096 stop creates";
    PARTITION_OWED_BYTES = Gauge "partition_owed_bytes" ["partition"] "rows owed to the store, bytes; 32 MiB stop creates, 64 MiB stop hand-outs";
    PARTITION_OWED_ROWS = Gauge "partition_owed_rows" ["partition"] "rows owed to the store";
    SNAPSHOT_LAG_RECORDS = Gauge "snapshot_lag_records" ["partition"] "drift: records of the log whose rows the store has not all acknowledged";
    SNAPSHOT_LAG_SECONDS = Seconds "snapshot_lag_seconds" ["partition"] "drift: how long the row that is owed longest is overdue; rows are due within a second of their record";
    PARTITION_RECORDS = Counter "partition_records_total" ["partition", "verdict"] "records since the partition's first by what became of them: accepted, quarantined, or the reason of their rejection";
    ZOMBIE_REJECTED = Counter "zombie_rejected_total" ["partition"] "records of former owners and of attempts that are over, rejected by the fence since the partition's first record";
    QUEUE_BACKLOG = Gauge "queue_backlog" ["queue"] "tasks of a queue that could be handed out now, over the partitions of this instance; the 50 longest queues, the rest as _other";
    QUEUE_RUNNING = Gauge "queue_running" ["queue"] "live attempts of a queue, over the partitions of this instance";
    QUEUE_OPEN_TASKS = Gauge "queue_open_tasks" ["queue"] "open tasks of a queue, over the partitions of this instance";
    APPEND_SECONDS = Histogram "append_seconds" [] "from an append of an owner to its acknowledgement";
    READ_BACK_SECONDS = Histogram "read_back_seconds" [] "from an append of an owner to its records read back as accepted, which every answer waits for; the oldest of each turn";
    APPENDS_UNKNOWN = Counter "appends_unknown_total" [] "appends of owners of which the log did not say what became of them; the partition is claimed anew";
    APPENDS_NOT_SENT = Counter "appends_not_sent_total" [] "appends of owners that the log certainly did not take";
    STORE_SECONDS = Histogram "store_seconds" ["operation"] "calls of the store by owners";
    STORE_ERRORS = Counter "store_errors_total" ["operation"] "calls of the store by owners that failed or whose outcome is unknown";
    LOCK_SECONDS = Histogram "lock_seconds" ["operation"] "calls of the lock server by owners";
    LOCK_UNAVAILABLE = Counter "lock_unavailable_total" ["operation"] "calls that the lock server did not answer well";
    LOCK_REPLACED = Counter "lock_replaced_total" [] "locks that bore somebody else's name although the log showed no live attempt";
    LOCK_LOST = Counter "lock_lost_total" [] "locks of live attempts that were gone when they were renewed; they are set again";
    CHECKPOINTS_PUBLISHED = Counter "checkpoints_published_total" [] "checkpoints that were published";
    CHECKPOINTS_FAILED = Counter "checkpoints_failed_total" [] "checkpoints that could not be written";
    BOARD_PUT_UP = Counter "board_put_up_total" [] "times this instance put itself up on the board";
    BOARD_FAILED = Counter "board_failed_total" [] "times the board did not take that: others ask the group";
    GROUP_REJOINED = Counter "group_rejoined_total" [] "times the group had dropped this instance";
}

/// Handles that an owner's shell keeps.
#[derive(Clone)]
pub(crate) struct ShellMetrics {
    pub(crate) append: Histogram,
    pub(crate) read_back: Histogram,
    pub(crate) unknown: Counter,
    pub(crate) not_sent: Counter,
    pub(crate) lock_replaced: Counter,
    pub(crate) lock_lost: Counter,
    pub(crate) locks_taken: Timed,
    pub(crate) locks_renewed: Timed,
    pub(crate) locks_released: Timed,
    pub(crate) lock_server: Timed,
    pub(crate) rows_written: Timed,
    pub(crate) row_read: Timed,
    pub(crate) key_read: Timed,
    pub(crate) payloads_stored: Timed,
    pub(crate) acked_put: Timed,
    pub(crate) checkpoint: Timed,
    pub(crate) published: Counter,
}

/// A call of a port whose time is taken.
#[derive(Clone)]
pub(crate) struct Timed {
    seconds: Histogram,
    failed: Counter,
}

impl Timed {
    fn new(metrics: &Metrics, (seconds, failed): (&'static Described, &'static Described), operation: &str) -> Self {
        let labels = [operation];
        Self { seconds: metrics.histogram_of(seconds, &labels), failed: metrics.counter_of(failed, &labels) }
    }

    /// It ended after so many µs.
    pub(crate) fn ended<T, E>(&self, us: u64, outcome: &Result<T, E>) {
        self.seconds.observe_us(us);
        if outcome.is_err() {
            self.failed.add(1);
        }
    }
}

impl ShellMetrics {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let store = |operation| Timed::new(metrics, (&STORE_SECONDS, &STORE_ERRORS), operation);
        let lock = |operation| Timed::new(metrics, (&LOCK_SECONDS, &LOCK_UNAVAILABLE), operation);
        let mut checkpoint = store("checkpoint");
        checkpoint.failed = metrics.counter(&CHECKPOINTS_FAILED);
        Self {
            append: metrics.histogram_of(&APPEND_SECONDS, &[]),
            read_back: metrics.histogram_of(&READ_BACK_SECONDS, &[]),
            unknown: metrics.counter(&APPENDS_UNKNOWN),
            not_sent: metrics.counter(&APPENDS_NOT_SENT),
            lock_replaced: metrics.counter(&LOCK_REPLACED),
            lock_lost: metrics.counter(&LOCK_LOST),
            locks_taken: lock("take"),
            locks_renewed: lock("renew"),
            locks_released: lock("release"),
            lock_server: lock("server"),
            rows_written: store("write_rows"),
            row_read: store("read_row"),
            key_read: store("read_key"),
            payloads_stored: store("put_payloads"),
            acked_put: store("put_acked"),
            checkpoint,
            published: metrics.counter(&CHECKPOINTS_PUBLISHED),
        }
    }
}
