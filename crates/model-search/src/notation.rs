//! Histories in the notation of the behaviour tests: what the search prints can be pasted into a
//! test, and the histories it starts from read the same way.
//!
//! `claim | submit t1 max=1 | assign t1 e=1 | complete t1 e=1 => SUCCESS`: the records in the order
//! in which they land. Numbers left out are those a writer who knows the state would give:
//! `s` event_sequence, `r` run_no, `e` exec_epoch, `x` attempt of the execution id, `p` partition
//! epoch and owner_seq, `c` carried state/run/sequence/epoch/attempt. After `=>` stands what must
//! become of the record: a state, `rejected(reason)`, or nothing for accepted.

use task_core::Reason;
use task_events::{Kind, RecordKey, TaskState};

use crate::audit::Audit;
use crate::fold::Fold;
use crate::rec::{Carried, Rec};
use crate::right::{names_attempt, right};
use crate::subject::{PARTITION, TASKS, foreign_id, index_of, task_id};

const VERBS: [(&str, Kind); 30] = [
    ("submit", Kind::TaskCreated),
    ("assign", Kind::TaskAssigned),
    ("start", Kind::TaskStarted),
    ("step", Kind::TaskStepCompleted),
    ("release", Kind::TaskReleased),
    ("complete", Kind::TaskCompleted),
    ("fail", Kind::TaskFailed),
    ("lose", Kind::TaskLost),
    ("timeout", Kind::TaskTimedOut),
    ("approve", Kind::TaskRetryApproved),
    ("giveup", Kind::TaskFailedPermanently),
    ("plan", Kind::TaskReplayPlanned),
    ("retry", Kind::TaskRetried),
    ("cancel", Kind::TaskCancelRequested),
    ("cancelled", Kind::TaskCancelled),
    ("replay", Kind::TaskReplayRequested),
    ("review", Kind::TaskReviewed),
    ("reject", Kind::RejectedReport),
    ("overdue", Kind::TaskOverdue),
    ("analyse", Kind::TaskFailureAnalysis),
    ("skip", Kind::TaskSkippedByPolicy),
    ("quarantine", Kind::WorkerQuarantined),
    ("free", Kind::WorkerReleased),
    ("pause", Kind::QueuePaused),
    ("resume", Kind::QueueResumed),
    ("backlog", Kind::BacklogAlarm),
    ("claim", Kind::OwnershipClaimed),
    ("renew", Kind::OwnershipRenewed),
    ("rules", Kind::RulesActivated),
    ("seal", Kind::LogSealed),
];

/// What a history says must become of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// It counts.
    Accepted,
    /// It counts and leaves the task so.
    State(TaskState),
    /// It does not.
    Rejected(Reason),
}

/// The verb of a kind.
pub fn verb(kind: Kind) -> &'static str {
    VERBS.iter().find(|(_, k)| *k == kind).map_or("?", |(verb, _)| verb)
}

/// Reads one record of a history at this state.
pub fn parse(text: &str, fold: &Fold, audit: &Audit) -> Result<(Rec, Expect), String> {
    let (said, expected) = text.split_once("=>").map_or((text, None), |(a, b)| (a, Some(b.trim())));
    let mut words = said.split_whitespace().peekable();
    let name = words.next().ok_or("empty record")?;
    let kind = VERBS.iter().find(|(verb, _)| *verb == name).ok_or_else(|| format!("unknown verb {name:?}"))?.1;
    let subject = words.next_if(|w| w.starts_with('t') && !w.contains('='));
    let task = match subject {
        Some("tX") => None,
        Some(t) => {
            let known = t[1..].parse::<usize>().ok().and_then(|n| n.checked_sub(1)).filter(|n| *n < TASKS);
            Some(known.ok_or_else(|| format!("{t:?} is no task"))?)
        }
        None => Some(0),
    };
    let mut rec = right(fold, audit, kind, task.unwrap_or(0));
    if task.is_none() {
        (rec.task, rec.key) = (Some(foreign_id()), RecordKey::Task(foreign_id()));
    }
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| format!("{word:?} is no name=value"))?;
        set(&mut rec, name, value).ok_or_else(|| format!("cannot read {word:?}"))?;
    }
    let expect = match expected {
        None => Expect::Accepted,
        Some(text) => parse_expect(text).ok_or_else(|| format!("cannot expect {text:?}"))?,
    };
    Ok((rec, expect))
}

fn parse_expect(text: &str) -> Option<Expect> {
    if let Some(reason) = text.strip_prefix("rejected(").and_then(|r| r.strip_suffix(')')) {
        return Reason::ALL.iter().find(|r| r.as_str() == reason).map(|r| Expect::Rejected(*r));
    }
    TaskState::ALL.iter().find(|s| s.as_str() == text).map(|s| Expect::State(*s))
}

fn set(rec: &mut Rec, name: &str, value: &str) -> Option<()> {
    let number = || value.parse::<u32>().ok();
    match name {
        "s" => rec.seq = number()?,
        "r" => rec.run = number()?,
        // Who speaks of an attempt names it by its id too, unless the history says otherwise.
        "e" => (rec.e, rec.x) = (number()?, rec.x.map(|_| number().unwrap_or(0))),
        "x" => rec.x = if value == "-" { None } else { Some(number()?) },
        "max" => rec.max = number()?,
        "by" => rec.by = number()? as u8,
        "key" => match value {
            "#" => rec.key = RecordKey::Control(PARTITION),
            "#X" => rec.key = RecordKey::Control(foreign_id().partition()),
            "tX" => rec.key = RecordKey::Task(foreign_id()),
            "-" => rec.key = RecordKey::Other,
            "K" => rec.keyed = true,
            t => rec.key = RecordKey::Task(task_id(t.strip_prefix('t')?.parse::<usize>().ok()?.checked_sub(1)?)),
        },
        "p" => {
            let (p, o) = value.split_once('.')?;
            rec.p = if p == "-" { None } else { Some(p.parse().ok()?) };
            rec.o = if o == "-" { None } else { Some(o.parse().ok()?) };
        }
        "c" => {
            let mut parts = value.split('/');
            let state = parts.next()?;
            let state = *TaskState::ALL.iter().find(|s| s.as_str() == state)?;
            let mut number = || parts.next()?.parse::<u32>().ok();
            rec.carried = Some(Carried { state, run: number()?, seq: number()?, e: number()?, x: number()? });
        }
        _ => return None,
    }
    Some(())
}

/// Writes one record of a history, met at this state.
pub fn print(rec: &Rec, fold: &Fold, audit: &Audit) -> String {
    let task = rec.task.map(|id| index_of(id).map_or_else(|| "tX".to_owned(), |n| format!("t{}", n + 1)));
    let usual = right(fold, audit, rec.kind, rec.task.and_then(index_of).unwrap_or(0));
    let mut out = verb(rec.kind).to_owned();
    if let Some(task) = task {
        out += &format!(" {task}");
    }
    let mut say = |text: String| {
        out.push(' ');
        out += &text;
    };
    if rec.kind == Kind::TaskCreated {
        say(format!("max={}", rec.max));
        if rec.keyed {
            say("key=K".into());
        }
    }
    if rec.seq != usual.seq {
        say(format!("s={}", rec.seq));
    }
    if rec.run != usual.run {
        say(format!("r={}", rec.run));
    }
    if names_attempt(rec.kind) {
        say(format!("e={}", rec.e));
        if rec.x != usual.x.map(|_| rec.e) {
            say(rec.x.map_or_else(|| "x=-".to_owned(), |x| format!("x={x}")));
        }
    }
    if (rec.p, rec.o) != (usual.p, usual.o) {
        let text = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
        say(format!("p={}.{}", text(rec.p.map(u64::from)), text(rec.o)));
    }
    if rec.carried != usual.carried
        && let Some(c) = rec.carried
    {
        say(format!("c={}/{}/{}/{}/{}", c.state, c.run, c.seq, c.e, c.x));
    }
    match rec.key {
        RecordKey::Other => say("key=-".into()),
        RecordKey::Control(p) if p != PARTITION => say("key=#X".into()),
        RecordKey::Control(_) if rec.task.is_some() => say("key=#".into()),
        RecordKey::Task(id) if rec.task != Some(id) => {
            say(index_of(id).map_or_else(|| "key=tX".to_owned(), |n| format!("key=t{}", n + 1)));
        }
        RecordKey::Control(_) | RecordKey::Task(_) => {}
    }
    if rec.by > 1 {
        say(format!("by={}", rec.by));
    }
    out
}
