//! The futures a projection loop waits for: plain async functions that own what they use, so that
//! dropping one has no other effect than that nobody hears of its end.

use event_log::{AppendOutcome, EventLog, LogError, OffsetRange, RawRecord, Tail};
use futures::future::{AbortHandle, Abortable, BoxFuture, FutureExt as _};
use task_events::{EventId, Offset, PartitionId};

use super::{NoStart, Projection, Projector, Stop};
use crate::{Clock, Metrics};

/// First wait before an unavailable log is asked again, ms; doubled each time.
pub(super) const RETRY_MIN_MS: u64 = 100;
/// Longest one, ms.
pub(super) const RETRY_MAX_MS: u64 = 5_000;

/// One ownership of a partition by this member. What comes from another one is ignored.
pub(super) type Generation = u64;

/// What ended.
pub(super) enum Ended<P: Projection, T> {
    /// A partition can be folded from its start.
    Opened { projection: Box<P>, tail: T, end: Offset },
    /// There is nothing to start from; to be tried again.
    NoStart,
    /// Its tail was opened again.
    Reopened { tail: T },
    /// The reader must not go on.
    Stopped(Stop),
    /// The log cannot be read at all.
    Unreadable(LogError),
    /// Records came, or the tail broke.
    Read { tail: T, result: Result<Vec<RawRecord>, LogError> },
    /// An append came to its end.
    Appended { verdicts: Vec<(P::Subject, EventId)>, outcome: AppendOutcome },
    /// A question was answered.
    Answered(P::Answer),
    /// The partition was dropped meanwhile.
    Dropped,
}

/// An end, with the partition it belongs to.
pub(super) type Work<P, T> = BoxFuture<'static, (PartitionId, Generation, Ended<P, T>)>;

/// Bundles what the futures need.
#[derive(Clone)]
pub(super) struct Desktop<L, C> {
    pub(super) log: L,
    pub(super) clock: C,
    pub(super) metrics: Metrics,
    /// Name of the service, as the group calls it.
    pub(super) service: String,
}

/// Doubling waits.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    tried: u32,
}

impl Backoff {
    pub(super) fn next_ms(&mut self) -> u64 {
        let wait = RETRY_MIN_MS << self.tried.min(16);
        self.tried += 1;
        wait.min(RETRY_MAX_MS)
    }

    pub(super) fn reset(&mut self) {
        self.tried = 0;
    }
}

impl<L: EventLog, C: Clock> Desktop<L, C> {
    pub(super) async fn pause(&self, backoff: &mut Backoff) {
        let wait = backoff.next_ms();
        self.clock.sleep_until(self.clock.boot_ms().saturating_add(wait)).await;
    }

    /// Loads a partition and opens its tail, for as long as it takes.
    pub(super) fn open<J: Projector>(
        &self,
        projector: &J,
        (partition, generation): (PartitionId, Generation),
    ) -> (Work<J::Projection, L::Tail>, AbortHandle) {
        let this = self.clone();
        let loading = projector.load(partition);
        abortable(partition, generation, async move {
            let why = match loading.await {
                Ok(projection) => match this.open_at(partition, projection.next_offset()).await {
                    Ok((end, tail)) => return Ended::Opened { projection: Box::new(projection), tail, end },
                    Err(error @ LogError::OutOfRange { .. }) => error.to_string(),
                    Err(error) => return Ended::Unreadable(error),
                },
                Err(NoStart::Later(why)) => why,
                Err(NoStart::Stop(stop)) => return Ended::Stopped(stop),
            };
            // Nothing to start from now: a checkpoint may be there the next time.
            this.metrics.alarm("reader_start", format!("partition {partition} has no start: {why}"));
            this.clock.sleep_until(this.clock.boot_ms().saturating_add(RETRY_MAX_MS)).await;
            Ended::NoStart
        })
    }

    // End as of now and a tail, for as long as it takes.
    async fn open_at(&self, partition: PartitionId, from: Offset) -> Result<(Offset, L::Tail), LogError> {
        let mut backoff = Backoff::default();
        loop {
            match self.range_and_tail(partition, from).await {
                Ok((range, tail)) => return Ok((range.end, tail)),
                Err(LogError::Unavailable(_)) => self.pause(&mut backoff).await,
                Err(error) => return Err(error),
            }
        }
    }

    async fn range_and_tail(&self, partition: PartitionId, from: Offset) -> Result<(OffsetRange, L::Tail), LogError> {
        let range = self.log.range(partition).await?;
        Ok((range, self.log.tail(partition, from).await?))
    }

    /// Opens a broken tail again.
    pub(super) fn reopen<P: Projection>(
        &self,
        (partition, generation): (PartitionId, Generation),
        from: Offset,
    ) -> (Work<P, L::Tail>, AbortHandle) {
        let this = self.clone();
        abortable(partition, generation, async move {
            let mut backoff = Backoff::default();
            loop {
                this.pause(&mut backoff).await;
                match this.log.tail(partition, from).await {
                    Ok(tail) => return Ended::Reopened { tail },
                    Err(LogError::Unavailable(_)) => {}
                    Err(error) => return Ended::Unreadable(error),
                }
            }
        })
    }
}

/// Waits for the next records.
pub(super) fn read<P: Projection, T: Tail>(
    (partition, generation): (PartitionId, Generation),
    mut tail: T,
) -> (Work<P, T>, AbortHandle) {
    abortable(partition, generation, async move {
        let result = tail.next().await;
        Ended::Read { tail, result }
    })
}

/// Waits for the end of an append, which was queued when its future was made.
pub(super) fn append<P: Projection, T: Send + 'static>(
    (partition, generation): (PartitionId, Generation),
    verdicts: Vec<(P::Subject, EventId)>,
    queued: impl Future<Output = AppendOutcome> + Send + 'static,
) -> Work<P, T> {
    let appended = move |outcome| {
        crate::fail_point!("projection::after_append");
        (partition, generation, Ended::Appended { verdicts, outcome })
    };
    queued.map(appended).boxed()
}

/// Waits for the answer to a question.
pub(super) fn ask<P: Projection, T: Send + 'static>(
    (partition, generation): (PartitionId, Generation),
    question: BoxFuture<'static, P::Answer>,
) -> Work<P, T> {
    question.map(move |answer| (partition, generation, Ended::Answered(answer))).boxed()
}

// A partition that is dropped must not keep a tail open that waits for ever.
fn abortable<P: Projection, T: Send + 'static>(
    partition: PartitionId,
    generation: Generation,
    work: impl Future<Output = Ended<P, T>> + Send + 'static,
) -> (Work<P, T>, AbortHandle) {
    let (handle, registration) = AbortHandle::new_pair();
    let work = Abortable::new(work, registration);
    (work.map(move |ended| (partition, generation, ended.unwrap_or(Ended::Dropped))).boxed(), handle)
}
