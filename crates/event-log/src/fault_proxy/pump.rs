//! One direction of one connection: reads, judges what passes and when, writes.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Fault, Shared};

/// Pieces under way in one direction: 64 of 64 KiB at most.
const UNDER_WAY: usize = 64;

/// A narrow line passes pieces of a twentieth of what it carries in a second.
const PIECES_PER_S: u64 = 20;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Request,
    Response,
}

/// Bytes, and when they are passed on.
type Piece = (Instant, Vec<u8>);

/// Carries bytes from one end to the other until one of them closes, or the fault says so.
pub(super) async fn pump(ends: (ReadHalf<'_>, WriteHalf<'_>), of: (Direction, u64), shared: &Shared) {
    let ((from, to), (direction, number)) = (ends, of);
    let (pieces, under_way) = mpsc::channel(UNDER_WAY);
    let writing = pass_on(under_way, to);
    tokio::pin!(writing);
    let closed = tokio::select! {
        () = &mut writing => return,
        closed = take_in(from, pieces, (direction, number), shared) => closed,
    };
    // What is under way still arrives, unless the connection is to end at once.
    if !closed {
        writing.await;
    }
}

// Whether the connection is to end at once.
async fn take_in(
    mut from: ReadHalf<'_>,
    pieces: mpsc::Sender<Piece>,
    (direction, number): (Direction, u64),
    shared: &Shared,
) -> bool {
    let mut fault = shared.fault.subscribe();
    let mut line = Line::new(number);
    let mut buffer = vec![0; 64 << 10];
    let (mut lost, mut held) = (false, false);
    loop {
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            _ = fault.changed() => {
                let now = *fault.borrow_and_update();
                if now.closes() || lost && now == Fault::None {
                    return true;
                }
                continue;
            }
        };
        let Ok(count @ 1..) = read else { return false };
        let mut now = *fault.borrow_and_update();
        // What comes behind it stays in the sockets.
        while now == Fault::Hold {
            held = true;
            if fault.changed().await.is_err() {
                return true;
            }
            now = *fault.borrow_and_update();
        }
        let (pass, end) = shared.judge(now, direction, count);
        if pass < count {
            lost = true;
            shared.swallowed.fetch_add((count - pass) as u64, Ordering::SeqCst);
        }
        for piece in line.pieces(now, &buffer[..pass]) {
            if line.is_late() || std::mem::take(&mut held) {
                shared.held_up.fetch_add(piece.1.len() as u64, Ordering::SeqCst);
            }
            if pieces.send(piece).await.is_err() {
                return true;
            }
        }
        if end {
            return now.closes();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "injected latency is real time: the other end is a real process")]
async fn pass_on(mut under_way: mpsc::Receiver<Piece>, mut to: WriteHalf<'_>) {
    while let Some((due, bytes)) = under_way.recv().await {
        tokio::time::sleep_until(due).await;
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

/// When what came is passed on: never before what came earlier.
struct Line {
    last: Instant,
    late: bool,
    random: u64,
}

impl Line {
    fn new(number: u64) -> Self {
        Self { last: now(), late: false, random: number.wrapping_add(1) }
    }

    fn pieces(&mut self, fault: Fault, bytes: &[u8]) -> Vec<Piece> {
        if bytes.is_empty() {
            return Vec::new();
        }
        match fault {
            Fault::Delay { by, jitter } => {
                self.late = true;
                let due = now() + by + jitter.mul_f64(self.share());
                vec![(self.no_earlier(due), bytes.to_vec())]
            }
            Fault::Rate { bytes_per_s } => {
                self.late = true;
                let rate = bytes_per_s.max(1);
                let size = usize::try_from(rate.div_ceil(PIECES_PER_S)).unwrap_or(usize::MAX);
                let timed = |piece: &[u8]| {
                    let takes = Duration::from_nanos((piece.len() as u64).saturating_mul(1_000_000_000) / rate);
                    self.last = self.last.max(now()) + takes;
                    (self.last, piece.to_vec())
                };
                bytes.chunks(size).map(timed).collect()
            }
            Fault::None
            | Fault::DropResponses
            | Fault::DropRequests
            | Fault::Blackhole
            | Fault::Hold
            | Fault::CutRequestsAfter(_)
            | Fault::CutResponsesAfter(_)
            | Fault::Refuse
            | Fault::Reset => {
                self.late = false;
                vec![(self.no_earlier(now()), bytes.to_vec())]
            }
        }
    }

    const fn is_late(&self) -> bool {
        self.late
    }

    fn no_earlier(&mut self, due: Instant) -> Instant {
        self.last = self.last.max(due);
        self.last
    }

    // SplitMix64; evenly from 0 to below 1, the same for each run of the same connection.
    fn share(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[expect(clippy::disallowed_methods, reason = "injected latency is real time: the other end is a real process")]
fn now() -> Instant {
    Instant::now()
}

impl Shared {
    /// How many of these bytes pass, and whether the connection ends after them.
    fn judge(&self, fault: Fault, direction: Direction, count: usize) -> (usize, bool) {
        let cut = || {
            let before = self.budget.fetch_sub(count as i64, Ordering::SeqCst);
            let pass = usize::try_from(before).unwrap_or(0).min(count);
            if pass < count {
                self.torn.fetch_add(1, Ordering::SeqCst);
                self.fault.send_replace(Fault::None);
            }
            (pass, pass < count)
        };
        match (fault, direction) {
            (Fault::None | Fault::Hold | Fault::Delay { .. } | Fault::Rate { .. }, _) => (count, false),
            (Fault::DropResponses | Fault::CutResponsesAfter(_), Direction::Request)
            | (Fault::DropRequests | Fault::CutRequestsAfter(_), Direction::Response) => (count, false),
            (Fault::DropResponses, Direction::Response)
            | (Fault::DropRequests, Direction::Request)
            | (Fault::Blackhole, _) => (0, false),
            (Fault::CutRequestsAfter(_), Direction::Request) | (Fault::CutResponsesAfter(_), Direction::Response) => {
                cut()
            }
            (Fault::Refuse | Fault::Reset, _) => (0, true),
        }
    }
}
