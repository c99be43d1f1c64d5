//! The loop itself: one wake-up at a time, membership first, then what ended, then the clock.

mod ended;
mod part;

use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use event_log::{EventLog, GroupMember, LogError, MembershipEvent};
use futures::future::FutureExt as _;
use futures::stream::{FuturesUnordered, StreamExt as _};
use task_events::{Offset, PartitionId};

use super::live::Counters;
use super::tries::Tries;
use super::work::{Backoff, Desktop, Ended, Generation, Work, append, ask};
use super::{Moment, Projection, ProjectionError, Projector, Stop};
use crate::{Clock, Standing, Standings};
use part::{Part, Phase};

enum Wake<P: Projection, T> {
    Shutdown,
    Member(Result<MembershipEvent, LogError>),
    Ended(PartitionId, Generation, Ended<P, T>),
    Clock,
}

type Timer = (u64, Pin<Box<dyn Future<Output = ()> + Send>>);

pub(super) struct Group<'a, L: EventLog, C: Clock, J: Projector> {
    desktop: Desktop<L, C>,
    counters: Counters,
    standings: Standings,
    projector: &'a J,
    tries: &'a mut Tries<<J::Projection as Projection>::Subject>,
    parts: BTreeMap<PartitionId, Part<J::Projection>>,
    work: FuturesUnordered<Work<J::Projection, L::Tail>>,
    generation: Generation,
    timer: Option<Timer>,
}

impl<'a, L: EventLog, C: Clock, J: Projector> Group<'a, L, C, J> {
    pub(super) fn new(
        desktop: Desktop<L, C>,
        standings: Standings,
        projector: &'a J,
        tries: &'a mut Tries<<J::Projection as Projection>::Subject>,
    ) -> Self {
        Self {
            counters: Counters::new(&desktop.metrics, &desktop.service),
            desktop,
            standings,
            projector,
            tries,
            parts: BTreeMap::new(),
            work: FuturesUnordered::new(),
            generation: 0,
            timer: None,
        }
    }

    /// Runs until shutdown, an error, or until the group dropped the member.
    pub(super) async fn run(
        &mut self,
        mut member: L::Member,
        stop: &mut (impl Future<Output = ()> + Unpin),
        leave_within: Duration,
    ) -> Result<(), ProjectionError> {
        let ended = loop {
            match self.next(&mut member, stop).await {
                Wake::Shutdown => break Ok(()),
                Wake::Member(Ok(event)) => self.membership(event, &mut member),
                // Away for now; asking again at once would spin.
                Wake::Member(Err(LogError::Unavailable(_))) => self.desktop.pause(&mut Backoff::default()).await,
                Wake::Member(Err(error)) => break Err(error.into()),
                Wake::Ended(partition, generation, ended) => {
                    if let Err(error) = self.ended(partition, generation, ended) {
                        break Err(error);
                    }
                    self.tell(partition, &mut member);
                }
                Wake::Clock => self.timer = None,
            }
            self.act(&mut member);
        };
        if let Err(error) = &ended {
            self.alarm(error);
        }
        if !matches!(ended, Err(ProjectionError::Log(LogError::NotMember(_)))) {
            let deadline = self.now().boot_ms.saturating_add(leave_within.as_millis() as u64 / 2);
            self.settle(deadline).await;
            member.leave(leave_within / 2).await;
        }
        for partition in self.parts.keys().copied().collect::<Vec<_>>() {
            self.close(partition);
        }
        ended
    }

    // Waits for the next thing to happen, in a fixed order among what is ready.
    async fn next(
        &mut self,
        member: &mut L::Member,
        stop: &mut (impl Future<Output = ()> + Unpin),
    ) -> Wake<J::Projection, L::Tail> {
        self.set_timer();
        let mut membership = pin!(member.next());
        std::future::poll_fn(|cx| {
            if stop.poll_unpin(cx).is_ready() {
                return Poll::Ready(Wake::Shutdown);
            }
            if let Poll::Ready(event) = membership.as_mut().poll(cx) {
                return Poll::Ready(Wake::Member(event));
            }
            if let Poll::Ready(Some((partition, generation, ended))) = self.work.poll_next_unpin(cx) {
                return Poll::Ready(Wake::Ended(partition, generation, ended));
            }
            match &mut self.timer {
                Some((_, timer)) => timer.as_mut().poll(cx).map(|()| Wake::Clock),
                None => Poll::Pending,
            }
        })
        .await
    }

    // A timer that rings too early only costs a look; so it is replaced only when it is too late.
    fn set_timer(&mut self) {
        let now = self.now().boot_ms;
        let due = self.parts.values().filter_map(|part| part.next_due(now)).min();
        let Some(due) = due else { return };
        if self.timer.as_ref().is_none_or(|(at, _)| *at > due) {
            self.timer = Some((due, Box::pin(self.desktop.clock.sleep_until(due))));
        }
    }

    fn membership(&mut self, event: MembershipEvent, member: &mut L::Member) {
        match event {
            MembershipEvent::Assigned(partitions) => partitions.into_iter().for_each(|p| self.open(p)),
            MembershipEvent::Revoked { partitions, deadline } => {
                let until = self.now().boot_ms.saturating_add(deadline.as_millis() as u64);
                for partition in partitions {
                    if let Some(part) = self.parts.get_mut(&partition) {
                        part.revoked_until = Some(until);
                    }
                    self.release_if_settled(partition, member);
                }
            }
            MembershipEvent::Lost(partitions) => partitions.into_iter().for_each(|p| self.close(p)),
        }
    }

    fn close(&mut self, partition: PartitionId) {
        if let Some(Part { phase: Phase::Live(live), .. }) = self.parts.get_mut(&partition) {
            self.tries.keep(partition, live.tried());
        }
        self.parts.remove(&partition);
        self.standings.remove(partition);
    }

    fn open(&mut self, partition: PartitionId) {
        self.close(partition);
        self.generation += 1;
        let generation = self.generation;
        let (work, handle) = self.desktop.open(self.projector, (partition, generation));
        self.work.push(work);
        self.parts.insert(partition, Part { generation, revoked_until: None, phase: Phase::Opening(handle) });
        self.standings.set(partition, Standing::default());
    }

    // Tells the group and whoever looks how far the fold is, and gives back what is settled.
    fn tell(&mut self, partition: PartitionId, member: &mut L::Member) {
        if let Some(Part { phase: Phase::Live(live), .. }) = self.parts.get(&partition) {
            let applied = live.projection.next_offset();
            member.progress(partition, applied);
            self.standings.set(partition, Standing { owning: live.is_caught_up(), applied });
        }
        self.release_if_settled(partition, member);
    }

    fn release_if_settled(&mut self, partition: PartitionId, member: &mut L::Member) {
        let now = self.now().boot_ms;
        let Some(part) = self.parts.get(&partition) else { return };
        let Some(until) = part.revoked_until else { return };
        let (settled, applied) = match &part.phase {
            Phase::Opening(_) => (true, Offset(0)),
            Phase::Live(live) => (live.appends == 0, live.projection.next_offset()),
        };
        if settled || now >= until {
            self.close(partition);
            member.release(partition, applied);
        }
    }

    // Decides wherever something is due.
    fn act(&mut self, member: &mut L::Member) {
        let now = self.now();
        let is_due = |part: &Part<J::Projection>| part.next_due(now.boot_ms).is_some_and(|at| at <= now.boot_ms);
        let due: Vec<_> = self.parts.iter().filter(|(_, part)| is_due(part)).map(|(p, _)| *p).collect();
        for partition in due {
            self.act_on(partition, now);
            self.release_if_settled(partition, member);
        }
    }

    fn act_on(&mut self, partition: PartitionId, now: Moment) {
        let Some(part) = self.parts.get_mut(&partition) else { return };
        let (Phase::Live(live), None) = (&mut part.phase, part.revoked_until) else { return };
        let id = (partition, part.generation);
        let batch = live.decide(now);
        if !batch.records.is_empty() {
            crate::fail_point!("projection::before_append");
            self.counters.decided.add(batch.verdicts.len() as u64);
            live.appends += 1;
            // Calling enqueues: the order of calls is the order in the log.
            let queued = self.desktop.log.append(partition, batch.records);
            self.work.push(append(id, batch.verdicts, queued));
        }
        for question in live.projection.questions(now) {
            self.work.push(ask(id, question));
        }
    }

    // After the last decision: what is out comes to its end, or the deadline does.
    async fn settle(&mut self, deadline: u64) {
        for part in self.parts.values_mut() {
            part.revoked_until = Some(deadline);
        }
        let mut timer = self.desktop.clock.sleep_until(deadline).boxed();
        loop {
            let open = |part: &Part<J::Projection>| matches!(&part.phase, Phase::Live(live) if live.appends > 0);
            if !self.parts.values().any(open) {
                return;
            }
            let ended = std::future::poll_fn(|cx| match self.work.poll_next_unpin(cx) {
                Poll::Ready(Some(ended)) => Poll::Ready(Some(ended)),
                Poll::Ready(None) => Poll::Ready(None),
                Poll::Pending => timer.poll_unpin(cx).map(|()| None),
            });
            let Some((partition, generation, ended)) = ended.await else { return };
            if self.ended(partition, generation, ended).is_err() {
                return;
            }
        }
    }

    fn alarm(&self, error: &ProjectionError) {
        let name = match error {
            ProjectionError::Stopped { stop: Stop::UnknownRules(_), .. } => "unknown_rules",
            ProjectionError::Stopped { stop: Stop::OffsetGap { .. }, .. } => "offset_gap",
            ProjectionError::Stopped { stop: Stop::StateDiffers(_), .. } => "state_differs",
            ProjectionError::Log(LogError::NotMember(_)) => "dropped_from_group",
            ProjectionError::Log(_) => "log_unusable",
        };
        self.desktop.metrics.alarm(name, error.to_string());
    }

    fn now(&self) -> Moment {
        Moment::of(&self.desktop.clock)
    }
}
