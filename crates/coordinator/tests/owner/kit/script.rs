//! Histories as text: `submit t1 max=2 | poll w1 => t1 e=1 | fail t1 e=1 | approve t1 | wait 5s`.
//!
//! A step without `=>` may be answered as it likes; `=> nothing` says that it must not be yet.

use std::collections::BTreeMap;

use coordinator::owner::{Command, FindBy, Key, ListAsk, Look, TaskFilter, Token};
use task_core::decide::Replay;
use task_events::{
    ExecEpoch, ExecutionId, Incarnation, ReplayFrom, ReviewOutcome, RuleVersion, RunNo, StepDone, TaskId, TaskState,
};
use worker_protocol::ReportBody;

use super::{World, beat, complete, fail, poll, report, sha, task};

struct Step<'a> {
    verb: &'a str,
    words: Vec<&'a str>,
    given: BTreeMap<&'a str, &'a str>,
}

impl<'a> Step<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split_whitespace();
        let verb = parts.next().expect("a verb");
        let (mut words, mut given) = (Vec::new(), BTreeMap::new());
        for part in parts {
            match part.split_once('=') {
                Some((name, value)) => drop(given.insert(name, value)),
                None => words.push(part),
            }
        }
        Self { verb, words, given }
    }

    fn number<T: std::str::FromStr>(&self, name: &str, otherwise: T) -> T {
        self.given.get(name).map_or(otherwise, |v| v.parse().unwrap_or_else(|_| panic!("{name}={v} is no number")))
    }
}

fn millis(text: &str) -> u64 {
    match text.strip_suffix("ms") {
        Some(ms) => ms.parse().expect("ms"),
        None => 1_000 * text.strip_suffix('s').expect("s or ms").parse::<u64>().expect("seconds"),
    }
}

impl World {
    /// Plays a history and checks what was heard.
    pub fn play(&mut self, history: &str) {
        for text in history.split('|') {
            let (text, expected) = match text.split_once("=>") {
                Some((text, expected)) => (text.trim(), Some(expected.trim())),
                None => (text.trim(), None),
            };
            let token = self.step(text);
            if let Some(expected) = expected {
                let heard = self.heard(token.and_then(|t| self.replies.get(&t)));
                assert_eq!(heard, expected, "after `{text}` in {}", self.tail(15));
            }
        }
    }

    /// One step; the token of its request, if it is one.
    pub fn step(&mut self, text: &str) -> Option<Token> {
        let step = Step::parse(text);
        match step.verb {
            "wait" => self.wait(millis(step.words[0])),
            "freeze" => self.freeze(millis(step.words[0])),
            "crash" => drop(self.crash(if self.on == "a" { "b" } else { "a" })),
            "approve" => self.approve(self.id(step.words[0]), step.number("backoff", 0)),
            "plan" => self.plan(self.id(step.words[0])),
            _ => {
                let command = self.request(&step);
                return Some(self.ask(command));
            }
        }
        None
    }

    fn request(&self, step: &Step<'_>) -> Command {
        let name = *step.words.first().unwrap_or(&"");
        let run = |id| self.fold.tasks.get(id).map_or(1, |s| s.core.run_no.0);
        let told = |body: ReportBody| {
            let id = self.id(name);
            report(id, step.number("run", run(id)), step.number("e", 1), body)
        };
        match step.verb {
            "submit" => self.submit(step, name),
            "poll" => self.polling(step, name),
            "start" => told(ReportBody::Starting { start_time: self.now.wall_ms, memory_usage_percent: 10 }),
            "decline" => told(ReportBody::Declined { draining: step.given.contains_key("drain") }),
            "step" => told(ReportBody::Step(StepDone {
                step: step.words[1].into(),
                index: step.number("i", 0),
                output_hash: sha(step.words[1]),
                is_idempotent: true,
            })),
            "complete" => told(complete(step.given.get("hash").copied().unwrap_or("result"))),
            "fail" => told(fail(step.given.get("code").copied().unwrap_or("BROKEN"))),
            "beat" => {
                let id = self.id(name);
                let doing = step.given.get("in").map(|name| ((*name).into(), step.number("idem", true)));
                beat(id, step.number("run", run(id)), step.number("e", 1), doing)
            }
            "cancel" => Command::Cancel { task: self.id(name), actor: "me".into(), reason: "why not".into() },
            "await" => {
                Command::Await { task: self.id(name), wait_ms: step.given.get("for").map_or(30_000, |w| millis(w)) }
            }
            "find" => {
                let by = match step.given.get("trace") {
                    Some(trace) => FindBy::Trace((*trace).into()),
                    None => {
                        let creator = step.given.get("creator").copied().unwrap_or("default").into();
                        FindBy::BusinessKey { creator, key: name.into() }
                    }
                };
                Command::Find { by, limit: step.number("limit", 10) }
            }
            "list" => Command::Look(Look::List(Box::new(ListAsk {
                review: name == "review",
                filter: TaskFilter {
                    states: step
                        .given
                        .get("state")
                        .and_then(|name| TaskState::ALL.iter().copied().find(|state| state.as_str() == *name))
                        .into_iter()
                        .collect(),
                    ..TaskFilter::default()
                },
                low: step
                    .given
                    .get("behind")
                    .map_or(TaskId::ZERO, |name| TaskId::from_raw(self.id(name).raw() + 1).expect("an id")),
                high: TaskId::from_raw(i64::MAX).expect("an id"),
                oldest_first: true,
                limit: step.number("limit", 10),
                look: step.number("look", 1_000),
            }))),
            "stands" => Command::Look(Look::Stands(vec![self.id(name)])),
            "why" => Command::Why { task: self.id(name) },
            "get" => Command::Get { task: self.id(name) },
            "replay" => Command::Replay {
                task: self.id(name),
                ask: Replay {
                    run_no: RunNo(step.number("run", 1)),
                    replay_from: ReplayFrom::Start,
                    from_step: None,
                    actor: "me".into(),
                    reason: "again".into(),
                },
            },
            "review" => Command::Review {
                task: self.id(name),
                run_no: RunNo(step.number("run", 1)),
                outcome: if step.given.contains_key("abandoned") {
                    ReviewOutcome::Abandoned
                } else {
                    ReviewOutcome::Accepted
                },
                instead_of: step.given.contains_key("instead").then_some(ReviewOutcome::Accepted),
                actor: "me".into(),
                note: "fine".into(),
            },
            "activate" => Command::Activate { version: RuleVersion(name.parse().expect("a version")) },
            "pause" | "resume" => Command::Queue {
                queue: name.into(),
                pause: step.verb == "pause",
                actor: "me".into(),
                reason: "why not".into(),
            },
            verb => panic!("no verb {verb}"),
        }
    }

    fn submit(&self, step: &Step<'_>, name: &str) -> Command {
        let mut new = task(name);
        let created = &mut new.task.created;
        created.max_retries = step.number("max", 3);
        created.priority = step.number("prio", 4);
        created.deadline = step.given.get("deadline").map(|t| self.broker_in(t));
        created.not_before = step.given.get("not_before").map(|t| self.broker_in(t));
        created.timeouts.schedule_to_start_ms = step.given.get("to_start").map(|t| millis(t));
        if let Some(limit) = step.given.get("to_close") {
            created.timeouts.start_to_close_ms = millis(limit);
        }
        created.task_type = step.given.get("type").copied().unwrap_or("t").into();
        let label = step.given.get("label").and_then(|label| label.split_once(':'));
        created.labels = label.map(|(label, value)| (label.into(), value.into())).into_iter().collect();
        created.queue = step.given.get("queue").copied().unwrap_or("q").into();
        if let Some(trace) = step.given.get("trace") {
            (new.task.trace_id, created.trace_given) = ((*trace).into(), true);
        }
        created.concurrency_key = step.given.get("one").map(|key| (*key).into());
        created.creator = step.given.get("creator").copied().unwrap_or("default").into();
        if let Some(key) = step.given.get("key") {
            let request_hash = sha(step.given.get("body").copied().unwrap_or("body"));
            (created.key_hash, created.request_hash) = (Some(sha(key)), Some(request_hash));
            new.key = Some(Key { key_hash: sha(key), request_hash });
        }
        if let Some(payload) = step.given.get("payload") {
            created.payload_hash = sha(payload);
            new.payload = Some(bytes::Bytes::copy_from_slice(payload.as_bytes()));
        }
        Command::Create(Box::new(new))
    }

    fn polling(&self, step: &Step<'_>, worker: &str) -> Command {
        let mut poll = poll(worker);
        poll.incarnation = Incarnation(step.number("inc", 1));
        poll.free_slots = step.number("slots", 1);
        poll.wait_ms = step.given.get("wait").map_or(5_000, |w| millis(w));
        poll.queues = vec![step.given.get("queue").copied().unwrap_or("q").into()];
        let held = step.given.get("held").copied().unwrap_or_default();
        poll.held = held
            .split(',')
            .filter_map(|h| h.split_once('#'))
            .map(|(t, e)| ExecutionId::new(self.id(t), ExecEpoch(e.parse().expect("an epoch"))))
            .collect();
        Command::Poll(poll)
    }

    // Broker time so far from now.
    fn broker_in(&self, text: &str) -> i64 {
        self.now.wall_ms + self.skew_ms + millis(text) as i64
    }
}
