//! What stands behind the verb.

use bytes::Bytes;
use task_events::*;

use super::{Said, attempt, carried, name_attempt};
use crate::kit::{PARTITION, World, task};

/// One `name=value`, or a word alone.
pub fn set(world: &World, event: &mut Event, said: &mut Said, name: &str, value: &str) -> Option<()> {
    let number = || value.parse::<u32>().ok();
    match name {
        "s" => event.event_sequence = EventSequence(number()?),
        "r" => event.run_no = RunNo(number()?),
        // Who speaks of an attempt names it by its id too, unless the history says otherwise.
        "e" => {
            event.exec_epoch = ExecEpoch(number()?);
            let execution = attempt(event, event.exec_epoch.0);
            name_attempt(&mut event.body, execution);
        }
        "x" => match &mut event.body {
            Body::TaskTimedOut(b) if value == "-" => b.execution_id = None,
            Body::TaskTimedOut(_) => {
                let execution = attempt(event, number()?);
                if let Body::TaskTimedOut(b) = &mut event.body {
                    b.execution_id = Some(execution);
                }
            }
            _ => {
                let execution = attempt(event, number()?);
                name_attempt(&mut event.body, execution);
            }
        },
        "p" => {
            let (p, o) = value.split_once('.')?;
            event.partition_epoch =
                if p == "-" { None } else { Some(PartitionEpoch(p.parse::<u32>().ok()?.checked_sub(world.earlier)?)) };
            event.owner_seq = if o == "-" { None } else { Some(OwnerSeq(o.parse().ok()?)) };
        }
        "task" => event.task_id = if value == "-" { None } else { Some(task(number()? as u16)) },
        // An idempotency key is not the fold's affair.
        "key" if value == "K" => {}
        "by" => event.producer.instance = value.into(),
        "key" => {
            said.key = match value {
                "-" => Bytes::new(),
                "#" => RecordKey::Control(PARTITION).to_bytes(),
                t if t.starts_with('t') => RecordKey::Task(task(t[1..].parse().ok()?)).to_bytes(),
                other => other.to_owned().into(),
            }
        }
        "at" => event.event_time = value.parse().ok()?,
        "c" => {
            let mut parts = value.split('/');
            let state = parts.next()?;
            let state = *TaskState::ALL.iter().find(|s| s.as_str() == state)?;
            let mut number = || parts.next()?.parse::<u32>().ok();
            let (run, seq, e, x) = (number()?, number()?, number()?, number()?);
            let execution = attempt(event, x);
            let c = carried(&mut event.body)?;
            (c.state, c.run_no, c.event_sequence) = (state, RunNo(run), EventSequence(seq));
            (c.exec_epoch, c.execution_id) = (ExecEpoch(e), execution);
            said.wild = true;
        }
        name => return say(&mut event.body, name, value),
    }
    Some(())
}

// What is not judged.
fn say(body: &mut Body, name: &str, value: &str) -> Option<()> {
    let number = || value.parse::<u32>().ok();
    let time = || value.parse::<i64>().ok();
    let step = |text: &str| {
        let (step, index) = text.split_once('#').unwrap_or((text, "0"));
        let output_hash = Sha256Hash::of(text.as_bytes());
        Some(StepDone { step: step.into(), index: index.parse().ok()?, output_hash, is_idempotent: false })
    };
    match (body, name) {
        (Body::TaskCreated(b), "max") => b.max_retries = number()?,
        (Body::TaskCreated(b), "nb") => b.not_before = Some(time()?),
        (Body::TaskCreated(b), "deadline") => b.deadline = Some(time()?),
        (Body::TaskCreated(b), "s2s") => b.timeouts.schedule_to_start_ms = Some(u64::from(number()?)),
        (Body::TaskCreated(b), "s2c") => b.timeouts.start_to_close_ms = u64::from(number()?),
        (Body::TaskAssigned(b), "") => b.worker_id = value.into(),
        (Body::TaskStepCompleted(b), "") => b.done = step(value)?,
        (Body::TaskReleased(b), "") => {
            b.reason = *ReleaseReason::ALL.iter().find(|r| r.as_str() == value)?;
        }
        (Body::TaskReleased(b), "ll") => b.lease_left_ms = u64::from(number()?),
        (Body::TaskLost(b), "ll") => b.lease_left_ms = u64::from(number()?),
        (Body::TaskTimedOut(b), "in") => (b.step_in_progress, b.step_is_idempotent) = (Some(value.into()), Some(false)),
        (Body::TaskTimedOut(b), "idem") => b.step_is_idempotent = Some(value.parse().ok()?),
        (Body::TaskTimedOut(b), "ll") => b.lease_left_ms = u64::from(number()?),
        (Body::TaskCancelled(b), "ll") => b.lease_left_ms = u64::from(number()?),
        (Body::TaskLost(b), "in") => (b.step_in_progress, b.step_is_idempotent) = (Some(value.into()), Some(false)),
        (Body::TaskLost(b), "idem") => b.step_is_idempotent = Some(value.parse().ok()?),
        (Body::TaskFailed(b), "in") => b.failed_step = Some(value.into()),
        (Body::TaskFailed(b), "idem") => b.is_idempotent = Some(value.parse().ok()?),
        (Body::TaskFailed(b), "") => b.error_code = value.into(),
        (Body::TaskFailed(b), "cat") => b.category = *ErrorCategory::ALL.iter().find(|c| c.as_str() == value)?,
        (Body::TaskFailed(b), "done") => b.steps_done = value.split(',').map(step).collect::<Option<_>>()?,
        (Body::TaskCompleted(b), "done") => b.steps_done = value.split(',').map(step).collect::<Option<_>>()?,
        (Body::TaskFailedPermanently(b), "") => b.error_code = value.into(),
        (Body::TaskTimedOut(b), "") => b.timeout = *TimeoutKind::ALL.iter().find(|k| k.as_str() == value)?,
        (Body::TaskRetryApproved(b), "nb") => b.not_before = Some(time()?),
        (Body::TaskRetryApproved(b), "avoid") => b.avoid_workers = vec![value.into()],
        (Body::TaskRetried(b), "nb") => b.not_before = Some(time()?),
        (Body::TaskReplayPlanned(b), "from") => b.resume_from_step = Some(value.into()),
        (Body::TaskReplayRequested(b), "from") => {
            let (from, step) = value.split_once(':').map_or((value, None), |(a, b)| (a, Some(b)));
            b.replay_from = *ReplayFrom::ALL.iter().find(|f| f.as_str() == from)?;
            b.from_step = step.map(Text::from);
        }
        (Body::TaskReplayRequested(b), "hist") => b.carried.history = hex::decode(value).ok()?.into(),
        (Body::QueuePaused(b), "") => b.queue = value.into(),
        (Body::QueueResumed(b), "") => b.queue = value.into(),
        (Body::RulesActivated(b), "to") => b.activated = RuleVersion(number()?),
        _ => return None,
    }
    Some(())
}
