//! What the shell waits for.

use std::pin::Pin;
use std::task::Poll;

use event_log::{EventLog, LogError, RawRecord, Tail};
use fold_start::{LoadError, patient, pause};
use futures::channel::oneshot;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, Stream as _};
use service_kit::Clock;
use task_events::{Offset, PartitionId};

use super::inbox::{Control, Inbox, Message};
use super::shell::Call;
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

/// Events of one turn at most: what else is ready comes with the next one, so that answers do not
/// wait for a flood to end.
const TURN: usize = 256;

// All that is ready, in an order that depends on nothing but the number of the turn: calls that
// ended, what was read and questions take turns in coming first, so that no flood of one of them,
// nor of one that brings forth another, keeps the rest waiting.
pub(super) async fn next_events<T>(
    (inbox, turn): (&mut Inbox, u64),
    calls: &mut FuturesUnordered<Call>,
    reading: &mut Reading<T>,
    sleep: &mut BoxFuture<'static, ()>,
) -> Vec<Event<T>> {
    futures::future::poll_fn(|cx| {
        if let Poll::Ready(told) = inbox.poll_control(cx) {
            return Poll::Ready(vec![match told {
                Control::Drain(within) => Event::Input(Input::Drain(within)),
                Control::Lost => Event::Lost,
            }]);
        }
        let (mut events, mut may_read) = (Vec::new(), true);
        let mut place = 0;
        // Of each a part, so that the others find room in this turn.
        while place < 3 {
            let room = (TURN - events.len()).div_ceil(3 - place);
            let before = events.len();
            while events.len() - before < room {
                let event = match turn.wrapping_add(place as u64) % 3 {
                    0 => match Pin::new(&mut *calls).poll_next(cx) {
                        Poll::Ready(Some(input)) => input.map_or(Event::Nothing, Event::Input),
                        Poll::Ready(None) | Poll::Pending => break,
                    },
                    // What was read once must be read anew, with the tail it gives back.
                    1 if !may_read => break,
                    1 => match reading.poll_unpin(cx) {
                        Poll::Ready(Ok((tail, records))) => Event::Tail(tail, records),
                        Poll::Ready(Err(why)) => Event::Unreadable(why.to_string()),
                        Poll::Pending => break,
                    },
                    _ => match inbox.poll_asked(cx) {
                        Poll::Ready(message) => asked(message),
                        Poll::Pending => break,
                    },
                };
                may_read &= !matches!(event, Event::Tail(..) | Event::Unreadable(_));
                events.push(event);
            }
            place += 1;
        }
        if events.is_empty() && sleep.poll_unpin(cx).is_ready() {
            events.push(Event::Input(Input::Tick));
        }
        if events.is_empty() { Poll::Pending } else { Poll::Ready(events) }
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
pub(super) fn reopen<L: EventLog, C: Clock>(
    log: L,
    clock: C,
    partition: PartitionId,
    from: Offset,
) -> Reading<L::Tail> {
    async move {
        pause(&clock).await;
        read(patient(&clock, || log.tail(partition, from)).await?).await
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
        // It may take long, and the edge knows how long it may wait.
        while let Poll::Ready(message) = inbox.poll_asked(cx) {
            message.turn_away();
        }
        work.as_mut().poll(cx).map(Some)
    })
    .await
}

#[cfg(test)]
mod tests {
    use futures::future::{pending, ready};
    use task_events::TaskId;

    use super::super::inbox::inbox;
    use super::*;

    // Each question is answered by a port at once, as reads of closed tasks and payloads are.
    #[test]
    fn a_flood_of_questions_does_not_keep_the_tail_from_being_read() {
        let (handle, mut inbox) = inbox();
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let mut flood: Vec<_> = (0..1_000)
            .map(|_| {
                let handle = handle.clone();
                async move { handle.ask(Command::Get { task: TaskId::from_raw(42).expect("an id") }).await }.boxed()
            })
            .collect();
        flood.iter_mut().for_each(|ask| assert!(ask.poll_unpin(&mut cx).is_pending()));
        let mut calls = FuturesUnordered::<Call>::new();
        let mut reading: Reading<()> = ready(Ok(((), Ok(Vec::new())))).boxed();
        let mut sleep = pending().boxed();
        let (mut turns, mut told) = (0, 0);
        while told < 2 {
            let events = next_events((&mut inbox, turns), &mut calls, &mut reading, &mut sleep);
            let Poll::Ready(events) = std::pin::pin!(events).poll_unpin(&mut cx) else { panic!("much is ready") };
            turns += 1;
            for event in events {
                match event {
                    Event::Ask(..) => calls.push(ready(None).boxed()),
                    Event::Tail(..) => {
                        told += 1;
                        reading = ready(Ok(((), Ok(Vec::new())))).boxed();
                    }
                    Event::Input(_) | Event::Unreadable(_) | Event::Lost | Event::Nothing => {}
                }
            }
        }
        assert_eq!(turns, 2, "the log was read in every turn");
    }

    #[test]
    fn whoever_asks_while_it_loads_is_told_to_try_elsewhere() {
        let (handle, mut inbox) = inbox();
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let mut ask = handle.ask(Command::Get { task: TaskId::from_raw(42).expect("an id") }).boxed();
        assert!(ask.poll_unpin(&mut cx).is_pending());
        // The store is down for an hour.
        let mut loading = until_lost(pending::<()>(), &mut inbox).boxed();
        assert!(loading.poll_unpin(&mut cx).is_pending());
        let told = ask.now_or_never();
        assert_eq!(told, Some(Answer::Unavailable(super::super::Why::NotOwner)));
    }
}
