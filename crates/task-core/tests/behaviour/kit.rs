//! Plays a history three ways at once and holds them against each other.

use std::cell::Cell;
use std::collections::BTreeMap;

use bytes::Bytes;
use task_core::invariants::{self, Before};
use task_core::{Change, Closed, CoreState, PartitionState, Record, Row, Rules, STANDARD, Verdict, checkpoint};
use task_events::{Event, PartitionId, RecordKey, RecordParts, TaskId, TaskState, decode, encode};

use crate::notation::{self, Expect, Said};

/// Partition of all histories.
pub const PARTITION: PartitionId = PartitionId(7);

/// The n-th task of a history, from 1.
pub fn task(n: u16) -> TaskId {
    TaskId::from_parts(1_000 * i64::from(n), PARTITION, n).unwrap()
}

/// A log and what it led to.
pub struct World {
    /// State of the reader that goes step by step, with rows.
    pub state: PartitionState,
    /// Closed tasks as last seen.
    pub closed: BTreeMap<TaskId, Closed>,
    /// All verdicts.
    pub verdicts: Vec<Verdict>,
    bare: PartitionState,
    loaded: PartitionState,
    born: BTreeMap<TaskId, CoreState>,
    log: Vec<Line>,
    /// Tasks of a pasted history by the number it gives them.
    pub names: BTreeMap<String, u16>,
    /// Epochs before a pasted history begins.
    pub earlier: u32,
    /// Nobody wrote what an honest writer would not, so that all invariants hold.
    pub honest: bool,
}

// As it lies in the log; the event is what was meant, for comparison.
struct Line {
    broker_ms: i64,
    key: Bytes,
    headers: Vec<(&'static str, Bytes)>,
    value: Bytes,
}

impl Line {
    fn event(&self) -> Option<Event> {
        let headers = self.headers.iter().map(|(n, c)| (*n, &c[..]));
        decode(RecordParts { headers, value: Some(&self.value) }).ok()
    }
}

thread_local! {
    /// Rules that all readers of this thread fold by: others than the standard ones for mutants only.
    pub static RULES: Cell<&'static Rules> = const { Cell::new(&STANDARD) };
}

fn new(rows: bool) -> PartitionState {
    PartitionState::with_rules(PARTITION, rows, RULES.get())
}

fn reload(state: &PartitionState) -> PartitionState {
    let parts = state.freeze().parts();
    let chunk = |hash| parts.chunks.iter().find(|(h, _)| *h == hash).map(|(_, b)| Bytes::clone(b));
    let named = checkpoint::chunks_of(&parts.manifest, true).unwrap();
    assert_eq!(named.len(), parts.chunks.len(), "a manifest names all its chunks");
    checkpoint::load(&parts.manifest, true, RULES.get(), chunk).unwrap()
}

// One record into one reader, from the bytes of the log.
fn feed(state: &mut PartitionState, line: &Line) -> Option<Verdict> {
    let Some(event) = line.event() else {
        state.quarantine(line.broker_ms);
        return None;
    };
    let (offset, key) = (state.next_offset, RecordKey::parse(Some(&line.key)));
    Some(state.apply(&Record { offset, broker_ms: line.broker_ms, key, event }))
}

// A reader without rows says the same with less.
fn bare(verdict: &Verdict) -> Verdict {
    match verdict {
        Verdict::Accepted(Change::Closed(closed)) => Verdict::Accepted(Change::Forgotten(closed.core)),
        other => other.clone(),
    }
}

impl Default for World {
    fn default() -> Self {
        Self {
            state: new(true),
            bare: new(false),
            loaded: new(true),
            closed: BTreeMap::new(),
            born: BTreeMap::new(),
            verdicts: Vec::new(),
            log: Vec::new(),
            names: BTreeMap::new(),
            earlier: 0,
            honest: true,
        }
    }
}

impl World {
    /// Appends an event under its own key.
    pub fn append(&mut self, event: &Event) -> Option<Verdict> {
        let key = RecordKey::of(event, PARTITION).to_bytes();
        let at = event.event_time;
        self.append_as(event, key, at, false)
    }

    /// Appends an event under any key.
    pub fn append_as(&mut self, event: &Event, key: Bytes, broker_ms: i64, torn: bool) -> Option<Verdict> {
        let encoded = encode(event, PARTITION).unwrap();
        let mut line = Line { broker_ms, key, headers: encoded.headers, value: encoded.value };
        if torn {
            line.value = line.value.slice(..line.value.len() - 1);
        } else {
            assert_eq!(line.event().as_ref(), Some(event), "an event comes back as it was written");
        }
        self.read_back(line)
    }

    fn read_back(&mut self, line: Line) -> Option<Verdict> {
        let before = self.state.clone();
        let verdict = feed(&mut self.state, &line);
        assert_eq!(feed(&mut self.bare, &line), verdict.as_ref().map(bare));
        assert_eq!(feed(&mut self.loaded, &line), verdict);
        self.loaded = reload(&self.loaded);
        self.agree(&self.loaded, true);
        self.agree(&self.bare, false);
        invariants::adds_up(&self.state).unwrap();
        if let (Some(verdict), Some(event)) = (&verdict, line.event()) {
            self.laws(&before, &line, event, verdict);
            self.verdicts.push(verdict.clone());
        }
        self.log.push(line);
        verdict
    }

    fn laws(&mut self, before: &PartitionState, line: &Line, event: Event, verdict: &Verdict) {
        invariants::ownership(before, &event, verdict).unwrap();
        let id = event.task_id;
        let open = |s: &PartitionState| id.and_then(|id| s.tasks.get(id)).map(|slot| slot.core);
        if verdict.rejected().is_some() {
            let (offset, key) = (before.next_offset, RecordKey::parse(Some(&line.key)));
            let record = Record { offset, broker_ms: line.broker_ms, key, event };
            return invariants::unchanged(before, &self.state, &record).unwrap();
        }
        let was = id.and_then(|id| self.born.get(&id)).map_or(Before::Unborn, |core| Before::Closed(*core));
        let was = open(before).map_or(was, Before::Open);
        let now = open(&self.state);
        if self.honest {
            invariants::accepted_step(was, &event, now.as_ref(), &self.state).unwrap();
        }
        if let Some(core) = now.or(invariants::closed_state(verdict)) {
            self.born.insert(core.id, core);
        }
        match verdict {
            Verdict::Accepted(Change::Closed(closed) | Change::Reviewed(closed)) => {
                self.closed.insert(closed.core.id, (**closed).clone());
            }
            Verdict::Accepted(Change::Opened(id)) => drop(self.closed.remove(id)),
            Verdict::Accepted(_) | Verdict::Rejected(_) => {}
        }
    }

    fn agree(&self, other: &PartitionState, rows: bool) {
        assert_eq!(self.state.hash(), other.hash());
        assert_eq!(self.state.counters, other.counters);
        assert_eq!(self.state.tasks.len(), other.tasks.len());
        let sum = self.state.tasks.iter().fold(0u128, |sum, slot| sum.wrapping_add(slot.core.hash()));
        assert_eq!(sum, self.state.tasks.hash_sum(), "the hash kept is the hash computed");
        for slot in self.state.tasks.iter() {
            let twin = other.tasks.get(slot.core.id).unwrap();
            assert_eq!((slot.core, rows.then_some(&slot.row)), (twin.core, rows.then_some(&twin.row)));
        }
    }

    /// From offset 0 once more, all bytes: the same verdicts, hash and rows.
    pub fn replay_all(&self) {
        let (mut state, mut verdicts) = (new(true), Vec::new());
        for line in &self.log {
            verdicts.extend(feed(&mut state, line));
        }
        assert_eq!(verdicts, self.verdicts);
        self.agree(&state, true);
        assert_eq!(state.freeze().parts(), self.state.freeze().parts(), "the same checkpoint, byte by byte");
    }

    /// An open task.
    pub fn core(&self, n: u16) -> CoreState {
        self.state.tasks.get(task(n)).unwrap().core
    }

    /// Its row, open or closed.
    pub fn row(&self, n: u16) -> Row {
        let open = self.state.tasks.get(task(n)).map(|slot| slot.row.as_deref().unwrap());
        open.unwrap_or_else(|| &self.closed[&task(n)].row).clone()
    }

    /// The history of a task: offset and `None` for accepted, else the reason.
    pub fn history(&self, n: u16) -> Vec<(u64, Option<&'static str>)> {
        let entries = self.row(n).history.entries();
        entries.iter().map(|e| (e.offset.0, e.rejected.map(|r| r.as_str()))).collect()
    }

    fn state_of(&self, id: Option<TaskId>) -> Option<TaskState> {
        id.and_then(|id| self.born.get(&id)).map(|core| core.state)
    }

    // A printed history begins somewhere: at its first claim, and with ids of its own.
    fn begin(&mut self, step: &str) {
        let mut words = step.split_whitespace();
        let (verb, epoch) =
            (words.next(), words.find_map(|w| w.strip_prefix("p=")?.split('.').next()?.parse::<u32>().ok()));
        if let (Some("claim"), Some(epoch), 0) = (verb, epoch, self.state.next_offset.0) {
            // A first claim that is meant to be refused stays what it is.
            self.earlier = if step.contains("rejected") { 0 } else { epoch.saturating_sub(1) };
        }
        let named = step.split_whitespace().nth(1).and_then(|w| w.strip_prefix('t')).filter(|w| w.len() > 3);
        if let Some(name) = named.filter(|w| w.bytes().all(|b| b.is_ascii_digit())) {
            let next = self.names.len() as u16 + 1;
            self.names.entry(name.to_owned()).or_insert(next);
        }
    }

    /// Goes on with a history.
    pub fn then(mut self, text: &str) -> Self {
        let mut played: Vec<&str> = Vec::new();
        for step in text.split(['|', '\n']).map(str::trim).filter(|s| !s.is_empty()) {
            self.begin(step);
            let Said { event, key, expect, torn, wild } =
                notation::parse(step, &self).unwrap_or_else(|e| panic!("{e}"));
            played.push(step);
            self.honest &= !wild || matches!(expect, Expect::Rejected(_));
            let verdict = self.append_as(&event, key, event.event_time, torn);
            let state = self.state_of(event.task_id);
            let as_said = match (&verdict, expect) {
                (None, Expect::Malformed) => true,
                (Some(v), Expect::Rejected(reason)) => v.rejected() == Some(reason),
                (Some(Verdict::Accepted(_)), Expect::Accepted) => true,
                (Some(Verdict::Accepted(_)), Expect::State(s)) => state == Some(s),
                _ => false,
            };
            let got = verdict.map(|v| v.rejected().map_or("accepted".to_owned(), |r| format!("rejected({r})")));
            assert!(as_said, "{}\nwas {got:?}, the task is {state:?}", played.join(" | "));
        }
        self.replay_all();
        self
    }
}

/// Plays a history from an empty log.
pub fn play(text: &str) -> World {
    World::default().then(text)
}
