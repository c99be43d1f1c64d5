//! What every adapter of the port promises, as tests: an adapter passes when
//! [`conformance_suite!`](crate::conformance_suite) with its [`Harness`] is green.

pub mod board;
#[cfg(feature = "redis")]
pub mod server;

use std::future::Future;

use task_events::{ExecEpoch, PartitionId, TaskId};

use crate::{AssignmentLock, Holder, Lock, Taken};

/// Time to live of the locks of most cases, ms.
pub const TTL_MS: u64 = 20_000;

/// How a case gets locks, and does to their server what no user of the port can. One harness is one
/// server without any lock.
pub trait Harness: Send + Sync + Sized + 'static {
    /// The adapter under test.
    type Locks: AssignmentLock;

    /// A new server.
    fn start() -> impl Future<Output = Self> + Send;

    /// A handle on it; all are alike.
    fn locks(&self) -> Self::Locks;

    /// Lets so much time pass for the server, ms.
    fn pass(&self, ms: u64) -> impl Future<Output = ()> + Send;

    /// Who holds the lock of a task, as the server sees it.
    fn holder(&self, task: TaskId) -> impl Future<Output = Option<Holder>> + Send;
}

/// Instantiates every case for a [`Harness`] (a type in scope) as a `#[tokio::test]`.
#[macro_export]
macro_rules! conformance_suite {
    ($harness:ty) => {
        $crate::conformance_cases! { $harness;
            a_free_lock_is_taken, the_same_holder_takes_it_again, a_foreign_value_is_replaced_and_told,
            an_expired_lock_is_free, a_renewed_lock_lives_on, a_lock_that_is_gone_is_set_again,
            a_renewal_replaces_only_what_is_older,
            only_the_holder_releases, a_lock_that_is_gone_is_released_without_complaint,
            answers_come_in_the_order_asked, clones_are_one_server, nothing_is_a_request_too,
            a_server_without_a_break_says_so;
        }
    };
}

/// One test function per case; for [`conformance_suite!`].
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    ($harness:ty; $($case:ident),+ ;) => {
        $(#[tokio::test]
        async fn $case() {
            $crate::conformance::$case::<$harness>().await;
        })+
    };
}

/// The `n`-th task.
pub fn task(n: u16) -> TaskId {
    TaskId::from_parts(95_000_000_000, PartitionId(3), n).expect("parts in range")
}

/// `worker#exec_epoch`.
pub fn holder(worker: &str, epoch: u32) -> Holder {
    Holder { worker_id: worker.into(), exec_epoch: ExecEpoch(epoch) }
}

fn lock(n: u16, worker: &str, epoch: u32) -> Lock {
    Lock { task: task(n), holder: holder(worker, epoch), ttl_ms: TTL_MS }
}

async fn take<L: AssignmentLock>(locks: &L, wanted: Vec<Lock>) -> Vec<Taken> {
    locks.take(wanted).await.expect("the server answers")
}

/// NX: nobody had it.
pub async fn a_free_lock_is_taken<H: Harness>() {
    let server = H::start().await;
    assert_eq!(take(&server.locks(), vec![lock(1, "w1", 1)]).await, [Taken::Yes]);
    assert_eq!((server.holder(task(1)).await, server.holder(task(2)).await), (Some(holder("w1", 1)), None));
}

/// After an unknown outcome it is asked for again, and must not look like somebody else's.
pub async fn the_same_holder_takes_it_again<H: Harness>() {
    let server = H::start().await;
    take(&server.locks(), vec![lock(1, "w1", 1)]).await;
    server.pass(TTL_MS / 2).await;
    assert_eq!(take(&server.locks(), vec![lock(1, "w1", 1)]).await, [Taken::Yes]);
    server.pass(TTL_MS * 3 / 4).await;
    assert_eq!(server.holder(task(1)).await, Some(holder("w1", 1)), "for its whole time anew");
}

/// The owner asks while its fold shows no live attempt, so what is there is left over.
pub async fn a_foreign_value_is_replaced_and_told<H: Harness>() {
    let server = H::start().await;
    take(&server.locks(), vec![lock(1, "w1", 1)]).await;
    // The fencing token is part of the holder: an earlier attempt of the same worker is foreign.
    for (worker, epoch) in [("w2", 2), ("w2", 3)] {
        assert_eq!(take(&server.locks(), vec![lock(1, worker, epoch)]).await, [Taken::Replaced]);
        assert_eq!(server.holder(task(1)).await, Some(holder(worker, epoch)));
    }
}

/// EX: a lock that nobody renews goes by itself.
pub async fn an_expired_lock_is_free<H: Harness>() {
    let server = H::start().await;
    take(&server.locks(), vec![lock(1, "w1", 1)]).await;
    server.pass(TTL_MS / 2).await;
    assert_eq!(server.holder(task(1)).await, Some(holder("w1", 1)));
    server.pass(TTL_MS).await;
    assert_eq!(server.holder(task(1)).await, None);
    assert_eq!(take(&server.locks(), vec![lock(1, "w2", 2)]).await, [Taken::Yes]);
}

/// A renewal counts from when it is made.
pub async fn a_renewed_lock_lives_on<H: Harness>() {
    let server = H::start().await;
    take(&server.locks(), vec![lock(1, "w1", 1)]).await;
    for _ in 0..3 {
        server.pass(TTL_MS * 3 / 4).await;
        assert_eq!(server.locks().renew(vec![lock(1, "w1", 1)]).await.expect("renewed"), 0, "none was lost");
    }
    assert_eq!(server.holder(task(1)).await, Some(holder("w1", 1)));
    server.pass(TTL_MS * 2).await;
    assert_eq!(server.holder(task(1)).await, None);
}

/// Of a server that has forgotten everything the board is filled again.
pub async fn a_lock_that_is_gone_is_set_again<H: Harness>() {
    let server = H::start().await;
    take(&server.locks(), vec![lock(2, "w1", 1)]).await;
    let renewed = server.locks().renew(vec![lock(1, "w1", 1), lock(2, "w1", 1), lock(3, "w1", 1)]).await;
    assert_eq!(renewed.expect("set"), 2, "two had been lost");
    for n in 1..=3 {
        assert_eq!(server.holder(task(n)).await, Some(holder("w1", 1)));
    }
}

/// An owner that stood still and goes on renews what it held before it hears that it is not the owner.
pub async fn a_renewal_replaces_only_what_is_older<H: Harness>() {
    let server = H::start().await;
    take(&server.locks(), vec![lock(1, "w2", 2)]).await;
    assert_eq!(server.locks().renew(vec![lock(1, "w1", 1)]).await.expect("answered"), 1);
    assert_eq!(server.holder(task(1)).await, Some(holder("w2", 2)), "the later attempt's lock stays");
    for (worker, epoch) in [("w1", 2), ("w1", 10)] {
        assert_eq!(server.locks().renew(vec![lock(1, worker, epoch)]).await.expect("answered"), 1);
        assert_eq!(server.holder(task(1)).await, Some(holder(worker, epoch)));
    }
}

/// A late release of a former attempt leaves its successor's lock alone.
pub async fn only_the_holder_releases<H: Harness>() {
    let server = H::start().await;
    take(&server.locks(), vec![lock(1, "w1", 2)]).await;
    let others = vec![(task(1), holder("w1", 1)), (task(1), holder("w2", 2))];
    server.locks().release(others).await.expect("answered");
    assert_eq!(server.holder(task(1)).await, Some(holder("w1", 2)));
    server.locks().release(vec![(task(1), holder("w1", 2))]).await.expect("released");
    assert_eq!(server.holder(task(1)).await, None);
}

/// Released twice, or expired before.
pub async fn a_lock_that_is_gone_is_released_without_complaint<H: Harness>() {
    let server = H::start().await;
    take(&server.locks(), vec![lock(1, "w1", 1)]).await;
    for _ in 0..2 {
        let both = vec![(task(1), holder("w1", 1)), (task(2), holder("w1", 1))];
        server.locks().release(both).await.expect("answered");
    }
    assert_eq!(take(&server.locks(), vec![lock(1, "w2", 2)]).await, [Taken::Yes]);
}

/// A batch is many locks, each with its own answer.
pub async fn answers_come_in_the_order_asked<H: Harness>() {
    let server = H::start().await;
    take(&server.locks(), vec![lock(7, "w1", 1), lock(3, "w1", 1)]).await;
    let wanted = (0..10).map(|n| lock(n, "w2", 2)).collect();
    let expected: Vec<_> = (0..10).map(|n| if n == 7 || n == 3 { Taken::Replaced } else { Taken::Yes }).collect();
    assert_eq!(take(&server.locks(), wanted).await, expected);
}

/// Whoever holds a handle sees the same locks.
pub async fn clones_are_one_server<H: Harness>() {
    let server = H::start().await;
    let (a, b) = (server.locks(), server.locks().clone());
    take(&a, vec![lock(1, "w1", 1)]).await;
    assert_eq!(take(&b, vec![lock(1, "w2", 2)]).await, [Taken::Replaced]);
    a.release(vec![(task(1), holder("w1", 1))]).await.expect("answered");
    assert_eq!(server.holder(task(1)).await, Some(holder("w2", 2)));
}

/// An empty batch is answered like any other.
pub async fn nothing_is_a_request_too<H: Harness>() {
    let server = H::start().await;
    assert_eq!(take(&server.locks(), Vec::new()).await, []);
    assert_eq!(server.locks().renew(Vec::new()).await.expect("answered"), 0);
    server.locks().release(Vec::new()).await.expect("answered");
}

/// From the second question on, the sentinel stands and the run is the same.
pub async fn a_server_without_a_break_says_so<H: Harness>() {
    let server = H::start().await;
    let first = server.locks().server().await.expect("answered");
    let second = server.locks().server().await.expect("answered");
    assert_eq!((second.run_id, second.sentinel), (first.run_id, true));
}
