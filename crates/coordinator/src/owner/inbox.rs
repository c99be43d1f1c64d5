//! How the edge speaks to an owner.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream as _;
use futures::channel::{mpsc, oneshot};
use parking_lot::Mutex;
use task_events::{Offset, PartitionEpoch, Text};
use tokio::sync::Notify;

use crate::surface::PartitionStatus;

use super::{Answer, Command, Owner, Phase, Token, Why};

/// Most queues that other instances are told of.
const MAX_QUEUES: usize = 64;

/// Of those who ask.
pub(super) enum Message {
    Ask(Token, Box<Command>, oneshot::Sender<Answer>),
    Forget(Token),
}

/// Of the group.
pub(super) enum Control {
    Drain(Duration),
    Lost,
}

/// Where an owner hears from its edge.
pub struct Inbox {
    messages: mpsc::UnboundedReceiver<Message>,
    control: mpsc::UnboundedReceiver<Control>,
    status: Arc<Status>,
}

/// What an owner tells its edge without being asked.
#[derive(Debug, Default)]
struct Status {
    applied: AtomicU64,
    backlog: AtomicUsize,
    offers: AtomicU64,
    unstarted: AtomicUsize,
    owning: AtomicBool,
    owed_bytes: AtomicUsize,
    open_tasks: AtomicUsize,
    in_flight: AtomicUsize,
    epoch: AtomicU32,
    /// Tasks that wait for a worker, by queue.
    ready: Mutex<Vec<(Text, u64)>>,
    offered: Notify,
}

impl Status {
    // All of it stands there before anybody is woken: a poll that finds no backlog asks nobody and waits on.
    fn show_work(&self, backlog: usize, offers: u64, ready: impl FnOnce() -> Vec<(Text, u64)>) {
        let changed = self.backlog.swap(backlog, Ordering::Relaxed) != backlog;
        let offered = self.offers.swap(offers, Ordering::Relaxed) < offers;
        if offered || changed {
            *self.ready.lock() = ready();
        }
        if offered {
            self.offered.notify_waiters();
        }
    }
}

/// The edge's side. Cheap to clone.
#[derive(Clone)]
pub struct OwnerHandle {
    messages: mpsc::UnboundedSender<Message>,
    control: mpsc::UnboundedSender<Control>,
    tokens: Arc<AtomicU64>,
    status: Arc<Status>,
}

/// A pair of both sides.
pub fn inbox() -> (OwnerHandle, Inbox) {
    let (messages, asked) = mpsc::unbounded();
    let (control, told) = mpsc::unbounded();
    let status = Arc::<Status>::default();
    let handle = OwnerHandle { messages, control, tokens: Arc::default(), status: status.clone() };
    (handle, Inbox { messages: asked, control: told, status })
}

/// What it never looked at was certainly not written: the edge may ask the next owner.
impl Drop for Inbox {
    fn drop(&mut self) {
        self.messages.close();
        while let Ok(message) = self.messages.try_recv() {
            message.turn_away();
        }
    }
}

impl Message {
    /// Answers that this is no owner.
    pub(super) fn turn_away(self) {
        match self {
            // An error means that nobody waits any more.
            Self::Ask(_, _, reply) => drop(reply.send(Answer::Unavailable(Why::NotOwner))),
            Self::Forget(_) => {}
        }
    }
}

impl Inbox {
    /// Lets the edge see how far the owner has folded and what waits for a worker.
    pub(super) fn show(&self, owner: &Owner) {
        let backlog = owner.backlog();
        self.status.applied.store(owner.fold().next_offset.0, Ordering::Relaxed);
        self.status.owning.store(owner.phase() == Phase::Owning, Ordering::Relaxed);
        self.status.owed_bytes.store(owner.owed_bytes(), Ordering::Relaxed);
        self.status.open_tasks.store(owner.fold().tasks.len(), Ordering::Relaxed);
        self.status.in_flight.store(owner.in_flight(), Ordering::Relaxed);
        self.status.unstarted.store(owner.unstarted(), Ordering::Relaxed);
        self.status.epoch.store(owner.fold().epoch.0, Ordering::Relaxed);
        self.status.show_work(backlog, owner.offers(), || owner.ready_by_queue(MAX_QUEUES));
    }

    /// What the group says; an edge that is gone has lost the partition.
    pub(super) fn poll_control(&mut self, cx: &mut Context<'_>) -> Poll<Control> {
        Pin::new(&mut self.control).poll_next(cx).map(|told| told.unwrap_or(Control::Lost))
    }

    /// What somebody asks.
    pub(super) fn poll_asked(&mut self, cx: &mut Context<'_>) -> Poll<Message> {
        match Pin::new(&mut self.messages).poll_next(cx) {
            Poll::Ready(Some(message)) => Poll::Ready(message),
            // Nobody can ask any more: the group's side says what follows from that.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

impl OwnerHandle {
    /// Asks the owner. Dropping the future tells it that nobody waits any more; what was appended
    /// stays appended. An owner that is gone answers `Unavailable`.
    pub async fn ask(&self, command: Command) -> Answer {
        let token = Token(self.tokens.fetch_add(1, Ordering::Relaxed) + 1);
        let (reply, answer) = oneshot::channel();
        if self.messages.unbounded_send(Message::Ask(token, Box::new(command), reply)).is_err() {
            return Answer::Unavailable(Why::NotOwner);
        }
        let mut guard = Forget { token, messages: Some(&self.messages) };
        let answer = answer.await;
        guard.messages = None;
        // The owner is gone without an answer: whether a record of it is in the log is unknown.
        answer.unwrap_or(Answer::OutcomeUnknown { task_id: None })
    }

    /// Offset of the next record it folds.
    pub fn applied(&self) -> Offset {
        Offset(self.status.applied.load(Ordering::Relaxed))
    }

    /// Tasks it could hand out now; a hint.
    pub fn backlog(&self) -> usize {
        self.status.backlog.load(Ordering::Relaxed)
    }

    /// The same by queue, of the first 64 queues; a hint.
    pub fn ready_by_queue(&self) -> Vec<(Text, u64)> {
        self.status.ready.lock().clone()
    }

    /// Number of the ownership it read about last; a hint.
    pub fn epoch(&self) -> PartitionEpoch {
        PartitionEpoch(self.status.epoch.load(Ordering::Relaxed))
    }

    /// Whether a poll may get something here: tasks that wait, or attempts that may not have reached
    /// their worker, which a poll that does not list them brings back (design.md §9). A hint.
    pub fn minds_polls(&self) -> bool {
        self.backlog() > 0 || self.status.unstarted.load(Ordering::Relaxed) > 0
    }

    /// Whether its claim was read back; a hint.
    pub fn is_owning(&self) -> bool {
        self.status.owning.load(Ordering::Relaxed)
    }

    /// What it last showed of itself.
    pub fn status(&self) -> PartitionStatus {
        PartitionStatus {
            owning: self.is_owning(),
            applied: self.applied(),
            backlog: self.backlog(),
            owed_bytes: self.status.owed_bytes.load(Ordering::Relaxed),
            open_tasks: self.status.open_tasks.load(Ordering::Relaxed),
            in_flight: self.status.in_flight.load(Ordering::Relaxed),
        }
    }

    /// Ready when a task came to wait for a worker since this call.
    pub fn offered(&self) -> impl Future<Output = ()> + Send + '_ {
        self.status.offered.notified()
    }

    /// Asks it to hand the partition over within this time.
    pub fn drain(&self, within: Duration) {
        let _ = self.control.unbounded_send(Control::Drain(within));
    }

    /// Tells it that the partition is somebody else's.
    pub fn lost(&self) {
        let _ = self.control.unbounded_send(Control::Lost);
    }
}

struct Forget<'a> {
    token: Token,
    messages: Option<&'a mpsc::UnboundedSender<Message>>,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        if let Some(messages) = self.messages {
            let _ = messages.unbounded_send(Message::Forget(self.token));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use task_events::TaskId;

    use super::*;

    #[test]
    fn what_an_owner_never_looked_at_is_not_of_unknown_outcome() {
        let (handle, inbox) = inbox();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut ask = handle.ask(Command::Get { task: TaskId::from_raw(42).expect("an id") }).boxed();
        assert!(ask.poll_unpin(&mut cx).is_pending());
        // Lost or drained while it loads, or lost with a full inbox.
        drop(inbox);
        assert_eq!(ask.now_or_never(), Some(Answer::Unavailable(Why::NotOwner)));
    }

    #[test]
    fn who_is_woken_by_an_offer_finds_the_backlog() {
        let (handle, inbox) = inbox();
        let ready = |count| move || vec![(Text::from("default"), count)];
        for (offers, backlog) in [(1, 1), (2, 3)] {
            let mut offered = handle.offered().boxed();
            assert_eq!(offered.as_mut().now_or_never(), None);
            inbox.status.show_work(backlog, offers, ready(backlog as u64));
            assert_eq!(offered.now_or_never(), Some(()));
            assert_eq!((handle.backlog(), handle.ready_by_queue()), (backlog, ready(backlog as u64)()));
            assert!(handle.minds_polls());
        }
        // Less of it wakes nobody.
        let mut offered = handle.offered().boxed();
        inbox.status.show_work(0, 2, ready(0));
        assert_eq!(offered.as_mut().now_or_never(), None);
        assert_eq!((handle.backlog(), handle.minds_polls()), (0, false));
    }
}
