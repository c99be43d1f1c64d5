//! What every board promises, as tests: an adapter passes when
//! [`board_suite!`](crate::board_suite) with its [`BoardHarness`] is green.

use std::future::Future;

use task_events::{PartitionEpoch, PartitionId};

use crate::{Board, Entry};

/// How long entries stand in most cases, ms.
const TTL_MS: u64 = 20_000;

/// How a case gets boards. One harness is one server whose board is empty.
pub trait BoardHarness: Send + Sync + Sized + 'static {
    /// The adapter under test.
    type Board: Board;

    /// A new server.
    fn start() -> impl Future<Output = Self> + Send;

    /// A handle on it; all are alike.
    fn board(&self) -> Self::Board;

    /// Lets so much time pass for the server, ms.
    fn pass(&self, ms: u64) -> impl Future<Output = ()> + Send;
}

/// Instantiates every case for a [`BoardHarness`] (a type in scope) as a `#[tokio::test]`.
#[macro_export]
macro_rules! board_suite {
    ($harness:ty) => {
        $crate::board_cases! { $harness;
            an_empty_board_is_no_error, everybody_sees_what_is_put_up, what_is_put_up_again_replaces,
            what_is_not_put_up_again_expires, what_is_taken_down_is_gone;
        }
    };
}

/// One test function per case; for [`board_suite!`].
#[doc(hidden)]
#[macro_export]
macro_rules! board_cases {
    ($harness:ty; $($case:ident),+ ;) => {
        $(#[tokio::test]
        async fn $case() {
            $crate::conformance::board::$case::<$harness>().await;
        })+
    };
}

fn entry(instance: &str, owns: &[(u16, u32)]) -> Entry {
    Entry {
        instance: instance.into(),
        url: format!("http://{instance}:7420").into(),
        owns: owns.iter().map(|(partition, epoch)| (PartitionId(*partition), PartitionEpoch(*epoch))).collect(),
        ready: [("订单".into(), 7)].into_iter().collect(),
    }
}

async fn entries<B: Board>(board: &B) -> Vec<Entry> {
    board.entries().await.expect("answered")
}

/// Nobody has told anything yet.
pub async fn an_empty_board_is_no_error<H: BoardHarness>() {
    let server = H::start().await;
    assert_eq!(entries(&server.board()).await, []);
    server.board().take_down("nobody".into()).await.expect("answered");
}

/// By name, whoever put it up and whoever looks.
pub async fn everybody_sees_what_is_put_up<H: BoardHarness>() {
    let server = H::start().await;
    let (b, a) = (entry("b", &[(0, 1), (1_023, u32::MAX)]), entry("a", &[]));
    server.board().put_up(b.clone(), TTL_MS).await.expect("put up");
    server.board().put_up(a.clone(), TTL_MS).await.expect("put up");
    assert_eq!(entries(&server.board()).await, [a, b]);
}

/// An instance has one entry.
pub async fn what_is_put_up_again_replaces<H: BoardHarness>() {
    let server = H::start().await;
    let board = server.board();
    board.put_up(entry("a", &[(0, 1), (1, 1)]), TTL_MS).await.expect("put up");
    board.put_up(entry("a", &[(1, 2)]), TTL_MS).await.expect("put up");
    assert_eq!(entries(&board).await, [entry("a", &[(1, 2)])]);
}

/// Of an instance that is gone nothing stands for long.
pub async fn what_is_not_put_up_again_expires<H: BoardHarness>() {
    let server = H::start().await;
    let board = server.board();
    board.put_up(entry("gone", &[(0, 1)]), TTL_MS).await.expect("put up");
    server.pass(TTL_MS * 3 / 4).await;
    board.put_up(entry("alive", &[(1, 1)]), TTL_MS).await.expect("put up");
    assert_eq!(entries(&board).await.len(), 2);
    server.pass(TTL_MS / 2).await;
    assert_eq!(entries(&board).await, [entry("alive", &[(1, 1)])]);
    board.put_up(entry("gone", &[(0, 2)]), TTL_MS).await.expect("put up");
    assert_eq!(entries(&board).await.len(), 2, "it is back");
}

/// An instance that stops says so.
pub async fn what_is_taken_down_is_gone<H: BoardHarness>() {
    let server = H::start().await;
    let board = server.board();
    board.put_up(entry("a", &[(0, 1)]), TTL_MS).await.expect("put up");
    board.put_up(entry("b", &[(1, 1)]), TTL_MS).await.expect("put up");
    board.take_down("a".into()).await.expect("taken down");
    assert_eq!(entries(&board).await, [entry("b", &[(1, 1)])]);
}
