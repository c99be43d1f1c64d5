//! What the shell waits for.

use std::pin::Pin;
use std::task::Poll;

use assignment_lock::AssignmentLock;
use event_log::{EventLog, LogError, RawRecord, Tail};
use fold_start::{LoadError, patient, pause};
use futures::channel::oneshot;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, Stream as _};
use service_kit::Clock;
use snapshot_store::SnapshotStore;
use task_events::{Offset, PartitionId};

use super::inbox::{Control, Inbox, Message};
use super::shell::{Call, Ports};
use super::{Answer, Command, Input, Token};

/// What the shell was woken by.
pub(super) enum Event<T> {
    Input(Input),
    Ask(Token, Box<Command>, oneshot::Sender<Answer>),
    Tail(T, Result<Vec<RawRecord>, LogError>),
    Unreadable(String),
    Lost,
    Nothing,
}

// Fixed order, so that a run depends on nothing but its inputs. Every other time questions come
// last: neither can a flood of them keep the owner from reading back what answers the earlier ones,
// nor a long log keep it from answering.
pub(super) async fn next_event<T>(
    (inbox, asked_last): (&mut Inbox, bool),
    calls: &mut FuturesUnordered<Call>,
    reading: &mut Reading<T>,
    sleep: &mut BoxFuture<'static, ()>,
) -> Event<T> {
    futures::future::poll_fn(|cx| {
        if let Poll::Ready(told) = inbox.poll_control(cx) {
            return Poll::Ready(match told {
                Control::Drain(within) => Event::Input(Input::Drain(within)),
                Control::Lost => Event::Lost,
            });
        }
        if !asked_last && let Poll::Ready(message) = inbox.poll_asked(cx) {
            return Poll::Ready(asked(message));
        }
        if let Poll::Ready(Some(input)) = Pin::new(&mut *calls).poll_next(cx) {
            return Poll::Ready(input.map_or(Event::Nothing, Event::Input));
        }
        if let Poll::Ready(read) = reading.poll_unpin(cx) {
            return Poll::Ready(match read {
                Ok((tail, records)) => Event::Tail(tail, records),
                Err(LoadError::Unreadable(why)) => Event::Unreadable(why),
            });
        }
        if asked_last && let Poll::Ready(message) = inbox.poll_asked(cx) {
            return Poll::Ready(asked(message));
        }
        if sleep.poll_unpin(cx).is_ready() {
            return Poll::Ready(Event::Input(Input::Tick));
        }
        Poll::Pending
    })
    .await
}

fn asked<T>(message: Message) -> Event<T> {
    match message {
        Message::Ask(token, command, reply) => Event::Ask(token, command, reply),
        Message::Forget(token) => Event::Input(Input::Forget(token)),
    }
}

// A tail with what it read, or why there is none.
pub(super) type Reading<T> = BoxFuture<'static, Result<(T, Result<Vec<RawRecord>, LogError>), LoadError>>;

pub(super) fn read<T: Tail>(mut tail: T) -> Reading<T> {
    async move {
        let records = tail.next().await;
        Ok((tail, records))
    }
    .boxed()
}

// A tail that broke, opened again where it broke and read; an error that waiting cannot mend ends
// the owner.
pub(super) fn reopen<L, S, K, C>(ports: Ports<L, S, K, C>, partition: PartitionId, from: Offset) -> Reading<L::Tail>
where
    L: EventLog,
    S: SnapshotStore,
    K: AssignmentLock,
    C: Clock,
{
    async move {
        pause(&ports.clock).await;
        let mut tail = patient(&ports.clock, || ports.log.tail(partition, from)).await?;
        let records = tail.next().await;
        Ok((tail, records))
    }
    .boxed()
}

pub(super) async fn until_lost<T>(work: impl Future<Output = T> + Send, inbox: &mut Inbox) -> Option<T> {
    let mut work = std::pin::pin!(work);
    futures::future::poll_fn(|cx| {
        // While loading there is nothing to hand over.
        if inbox.poll_control(cx).is_ready() {
            return Poll::Ready(None);
        }
        work.as_mut().poll(cx).map(Some)
    })
    .await
}
