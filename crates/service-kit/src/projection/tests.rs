//! The loop against a scripted log, with a toy for a projection: `o S L` opens subject S at level
//! L, `v S L` is a verdict on it.

mod acting;
mod groups;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use event_log::{MemberSpec, OutRecord, RawRecord};
use futures::future::{BoxFuture, FutureExt as _, ready};
use parking_lot::Mutex;
use task_events::{EventId, Offset, PartitionId, RuleVersion};

use super::*;
use crate::testing::{Driven, ManualClock, ScriptedLog};
use crate::{Metrics, Shutdown, Standing, Standings};

/// What a test can turn while the loop runs.
#[derive(Default)]
struct Knobs {
    reject: bool,
    decide_nothing: bool,
    ask_first: bool,
    load_fails: u32,
    loads: u32,
}

struct Toy {
    partition: PartitionId,
    next: u64,
    open: BTreeMap<u8, u64>,
    answered: bool,
    questions: Vec<u8>,
    knobs: Arc<Mutex<Knobs>>,
}

fn record(kind: u8, subject: u8, level: u8, attempt: u8) -> OutRecord {
    OutRecord {
        key: Bytes::new(),
        headers: Vec::new(),
        value: Bytes::copy_from_slice(&[kind, subject, level, attempt]),
    }
}

fn id(subject: u8, level: u8, attempt: u8) -> EventId {
    let mut id = [0; 16];
    id[..3].copy_from_slice(&[subject, level, attempt]);
    EventId(id)
}

impl Projection for Toy {
    type Subject = u8;
    type Answer = u8;

    fn next_offset(&self) -> Offset {
        Offset(self.next)
    }

    fn fold(&mut self, record: &RawRecord) -> Result<Folded<u8>, Stop> {
        assert_eq!((record.offset.0, record.partition), (self.next, self.partition));
        self.next += 1;
        let Some([kind, subject, level, attempt]) = record.value.as_deref().and_then(|v| <[u8; 4]>::try_from(v).ok())
        else {
            return Ok(Folded::NOTHING);
        };
        match kind {
            b'o' => {
                self.open.insert(subject, u64::from(level));
                Ok(Folded { touched: Some(subject), own: None })
            }
            b'r' => Err(Stop::UnknownRules(RuleVersion(9))),
            _ => {
                let counts = !self.knobs.lock().reject && self.open.get(&subject) == Some(&u64::from(level));
                if counts {
                    self.open.remove(&subject);
                }
                let own = Own { subject, event_id: id(subject, level, attempt), rejected: (!counts).then_some(4) };
                Ok(Folded { touched: Some(subject), own: Some(own) })
            }
        }
    }

    fn pending(&self, subject: u8) -> Option<u64> {
        self.open.get(&subject).copied()
    }

    fn all_pending(&self) -> Vec<u8> {
        self.open.keys().copied().collect()
    }

    fn decide(&mut self, subject: u8, attempt: u32, now: Moment) -> Decision {
        let knobs = self.knobs.lock();
        if knobs.decide_nothing {
            return Decision::Nothing;
        }
        if knobs.ask_first && !self.answered {
            self.questions.push(subject);
            return Decision::Later(now.boot_ms + 60_000);
        }
        let (level, attempt) = (self.open[&subject] as u8, attempt as u8);
        let verdict = id(subject, level, attempt);
        Decision::Write { records: vec![record(b'v', subject, level, attempt)], verdict }
    }

    fn questions(&mut self, _: Moment) -> Vec<BoxFuture<'static, u8>> {
        self.questions.drain(..).map(|s| ready(s).boxed()).collect()
    }

    fn answered(&mut self, answer: u8, _: Moment) -> Result<Vec<u8>, Stop> {
        self.answered = true;
        Ok(vec![answer])
    }
}

struct Toys(Arc<Mutex<Knobs>>);

impl Projector for Toys {
    type Projection = Toy;

    fn load(&self, partition: PartitionId) -> BoxFuture<'static, Result<Toy, NoStart>> {
        let mut knobs = self.0.lock();
        knobs.loads += 1;
        if knobs.load_fails > 0 {
            knobs.load_fails -= 1;
            return ready(Err(NoStart::Later("no checkpoint".into()))).boxed();
        }
        let knobs = self.0.clone();
        let toy = Toy { partition, next: 0, open: BTreeMap::new(), answered: false, questions: Vec::new(), knobs };
        ready(Ok(toy)).boxed()
    }
}

struct World {
    log: ScriptedLog,
    clock: ManualClock,
    metrics: Metrics,
    standings: Standings,
    shutdown: Shutdown,
    knobs: Arc<Mutex<Knobs>>,
    run: Driven<Result<(), ProjectionError>>,
}

impl World {
    fn new() -> Self {
        Self::on(ScriptedLog::new(2))
    }

    fn on(log: ScriptedLog) -> Self {
        let (clock, metrics) = (ManualClock::default(), Metrics::default());
        let (shutdown, knobs) = (Shutdown::default(), Arc::new(Mutex::new(Knobs::default())));
        let member = MemberSpec { group: "toys".into(), client_id: "toy|1|rules=1-1|".into() };
        let config = ProjectionConfig { member, leave_within: Duration::from_secs(4) };
        let (standings, toys) = (Standings::default(), Toys(knobs.clone()));
        let shown = standings.clone();
        let run = run_projection(log.clone(), clock.clone(), metrics.clone(), shown, toys, config, shutdown.clone());
        Self { log, clock, metrics, standings, shutdown, knobs, run: Driven::new(run) }
    }

    /// Lets time pass in steps of 50 ms.
    fn pass(&mut self, ms: u64) {
        self.run.settle();
        for _ in 0..ms / 50 {
            self.clock.advance(50);
            self.run.settle();
        }
    }

    fn open(&mut self, subject: u8, level: u8) {
        self.log.write(0, vec![record(b'o', subject, level, 0)]);
        self.run.settle();
    }

    /// (subject, level, attempt) of every verdict the loop appended.
    fn verdicts(&self) -> Vec<(u8, u8, u8)> {
        let all = self.log.appended().into_iter().flatten();
        all.map(|r| (r.value[1], r.value[2], r.value[3])).collect()
    }
}
