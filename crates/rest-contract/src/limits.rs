//! Limits of design.md §8. Every one of them is named, with the value sent, by the problem that
//! refuses what is beyond it.

/// Longest inline payload, step output or result, bytes (256 KiB).
pub const MAX_PAYLOAD_BYTES: usize = 256 * 1024;
/// Longest body of a single request, bytes: a payload and what stands around it.
pub const MAX_BODY_BYTES: usize = MAX_PAYLOAD_BYTES + 64 * 1024;
/// Longest body of a batch, bytes (4 MiB).
pub const MAX_BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Most items in a batch.
pub const MAX_BATCH_ITEMS: usize = 1_000;
/// Deepest nesting of a JSON text.
pub const MAX_JSON_DEPTH: usize = 32;
/// Longest name: task type, queue, creator, worker, key, trace, step, bytes.
pub const MAX_NAME_BYTES: usize = 256;
/// Longest free text: reason, actor, note, `payload_ref`, bytes.
pub const MAX_TEXT_BYTES: usize = 1_024;
/// Most labels of a task.
pub const MAX_LABELS: usize = 32;
/// Most approved retries a caller may ask for.
pub const MAX_RETRIES: u32 = 1_000;
/// Longest life of a task, ms (30 days, design.md §7).
pub const MAX_LIFE_MS: u64 = 30 * 24 * 60 * 60 * 1000;
/// Longest `?wait=` and longest wait of a poll, ms.
pub const MAX_WAIT_MS: u64 = 60_000;
/// Most free slots a poll may offer.
pub const MAX_SLOTS: u32 = 1_000;
/// Most attempts a poll may list as held.
pub const MAX_HELD: usize = 10_000;
/// Most queues of a worker.
pub const MAX_QUEUES: usize = 256;
/// Most steps of an attempt.
pub const MAX_STEPS: usize = 10_000;
/// Highest priority; 0 is the lowest.
pub const MAX_PRIORITY: u8 = 9;
/// Priority of a task that names none.
pub const DEFAULT_PRIORITY: u8 = 4;
/// Start-to-close of a task that names none, ms (1 h).
pub const DEFAULT_START_TO_CLOSE_MS: u64 = 60 * 60 * 1000;
/// Retries of a task that names none.
pub const DEFAULT_MAX_RETRIES: u32 = 3;
/// Most tasks on a page of a list.
pub const MAX_PAGE: u32 = 1_000;
/// Tasks on a page that names no limit.
pub const DEFAULT_PAGE: u32 = 50;

/// Records on a page of a task's history that names no limit.
pub const DEFAULT_EVENTS_PAGE: u32 = 200;
/// Most tasks that a trace or a business key shows; of more the newest.
pub const MAX_FOUND: usize = 200;
