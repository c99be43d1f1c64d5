//! The lines that a program writes to descriptor 3, and what is answered on descriptor 4.
//!
//! One line at a time: the next one is read when the last one is done, so that what a program says is
//! recorded in its order. docs/guide/workers.md says what the lines mean.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use task_events::Text;
use tokio::sync::oneshot;
use worker_sdk::{Context, HandlerError, RecordedStep};

/// Step under which checkpoints are recorded.
pub const CHECKPOINT: &str = "checkpoint";

/// A line, as it stands there: exactly one of the first four.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Line {
    begin: Option<Text>,
    step: Option<Text>,
    #[serde(deserialize_with = "present")]
    checkpoint: Option<Box<RawValue>>,
    #[serde(deserialize_with = "present")]
    progress: Option<Box<RawValue>>,
    #[serde(deserialize_with = "present")]
    output: Option<Box<RawValue>>,
    idempotent: Option<bool>,
}

// `null` is an output too.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(from).map(Some)
}

/// A step that was begun.
struct Open {
    name: Text,
    is_idempotent: bool,
    /// Gives the step its output.
    output: Option<oneshot::Sender<Bytes>>,
    running: BoxFuture<'static, Result<Bytes, HandlerError>>,
}

/// What a line waits for before the next one is read.
enum Awaiting {
    Nothing,
    /// The step may run.
    Go(oneshot::Receiver<()>),
    /// The step is recorded.
    Step,
    /// The checkpoint is.
    Checkpoint(BoxFuture<'static, Result<(), HandlerError>>),
}

/// The channel of one attempt.
pub struct Channel {
    context: Context,
    recorded: BTreeMap<Text, Bytes>,
    open: Option<Open>,
    awaiting: Awaiting,
    progress: Option<String>,
}

impl Channel {
    pub fn new(context: Context, recorded: Vec<RecordedStep>) -> Self {
        let recorded = recorded.into_iter().map(|step| (step.step, step.output)).collect();
        Self { context, recorded, open: None, awaiting: Awaiting::Nothing, progress: None }
    }

    /// The file of recorded steps: an object, each output under its step's name.
    pub fn steps_file(&self) -> Bytes {
        let outputs: BTreeMap<&str, Box<RawValue>> =
            self.recorded.iter().filter_map(|(name, output)| Some((name.as_str(), as_json(output)?))).collect();
        serde_json::to_vec(&outputs).unwrap_or_default().into()
    }

    /// Whether the next line may be read.
    pub fn is_ready(&self) -> bool {
        matches!(self.awaiting, Awaiting::Nothing)
    }

    /// What the program last said of its progress.
    pub fn progress(&self) -> Option<&str> {
        self.progress.as_deref()
    }

    /// Whether the program is inside a step that must not run twice.
    pub fn in_unsafe_step(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !open.is_idempotent)
    }

    /// Takes a line in; what to reply at once, if anything.
    ///
    /// # Errors
    /// It means nothing: the attempt fails with what is wrong with it.
    pub fn take(&mut self, begin: &[u8], bytes: u64) -> Result<Option<Bytes>, HandlerError> {
        if bytes > begin.len() as u64 {
            let text = format!("a line on descriptor 3 has {bytes} bytes, the limit is {}", begin.len());
            return Err(HandlerError::permanent("STEP_OUTPUT_TOO_LARGE", text));
        }
        let line: Line = serde_json::from_slice(begin).map_err(|why| invalid(begin, &why.to_string()))?;
        let Line { begin: begun, step, checkpoint, progress, output, idempotent } = line;
        match (begun, step, checkpoint, progress) {
            (Some(name), None, None, None) if output.is_none() => self.begin(name, idempotent.unwrap_or(false)),
            (None, Some(name), None, None) => self.step(name, output, idempotent),
            (None, None, Some(at), None) if output.is_none() && idempotent.is_none() => {
                self.checkpoint(bytes_of(&at));
                Ok(None)
            }
            (None, None, None, Some(how_far)) if output.is_none() && idempotent.is_none() => {
                tracing::info!(task_id = %self.context.task_id(), progress = how_far.get(), "progress");
                self.progress = Some(how_far.get().chars().take(200).collect());
                Ok(None)
            }
            _ => Err(invalid(
                begin,
                "it must have one of begin, step, checkpoint and progress; output goes with step alone, idempotent with begin and step",
            )),
        }
    }

    /// Ready when something is done that was awaited; what to reply. Pending while nothing is.
    ///
    /// # Errors
    /// It was not done: the attempt fails with why.
    pub async fn done(&mut self) -> Result<Bytes, HandlerError> {
        let running = async {
            match &mut self.open {
                Some(open) => (&mut open.running).await,
                None => std::future::pending().await,
            }
        };
        match &mut self.awaiting {
            Awaiting::Checkpoint(recording) => {
                let recorded = recording.await;
                self.awaiting = Awaiting::Nothing;
                recorded?;
                Ok(reply("done", CHECKPOINT, None))
            }
            Awaiting::Go(go) => tokio::select! {
                biased;
                // Dropped without a word when the step does not run: its own error tells.
                Ok(()) = go => {
                    self.awaiting = Awaiting::Nothing;
                    Ok(reply("go", &self.open_name(), None))
                }
                ended = running => self.ended(ended),
            },
            Awaiting::Nothing | Awaiting::Step => {
                let ended = running.await;
                self.ended(ended)
            }
        }
    }

    fn open_name(&self) -> Text {
        self.open.as_ref().map(|open| open.name.clone()).unwrap_or_default()
    }

    fn ended(&mut self, ended: Result<Bytes, HandlerError>) -> Result<Bytes, HandlerError> {
        let name = self.open_name();
        self.open = None;
        self.awaiting = Awaiting::Nothing;
        self.recorded.insert(name.clone(), ended?);
        Ok(reply("done", &name, None))
    }

    fn begin(&mut self, name: Text, is_idempotent: bool) -> Result<Option<Bytes>, HandlerError> {
        if let Some(output) = self.recorded.get(&name) {
            return Ok(Some(reply("done", &name, as_json(output))));
        }
        self.may_open(&name)?;
        self.awaiting = Awaiting::Go(self.run(name, is_idempotent));
        Ok(None)
    }

    fn step(
        &mut self,
        name: Text,
        output: Option<Box<RawValue>>,
        idempotent: Option<bool>,
    ) -> Result<Option<Bytes>, HandlerError> {
        if let Some(output) = self.recorded.get(&name) {
            // What is on record stands.
            return Ok(Some(reply("done", &name, as_json(output))));
        }
        let is_open = self.open.as_ref().is_some_and(|open| open.name == name);
        if !is_open {
            self.may_open(&name)?;
            drop(self.run(name.clone(), idempotent.unwrap_or(false)));
        }
        let output = output.map_or(Bytes::from_static(b"null"), |output| bytes_of(&output));
        if let Some(give) = self.open.as_mut().and_then(|open| open.output.take()) {
            let _ = give.send(output);
        }
        self.awaiting = Awaiting::Step;
        Ok(None)
    }

    fn may_open(&self, name: &Text) -> Result<(), HandlerError> {
        if name == CHECKPOINT {
            return Err(channel(format!("a step cannot be called {CHECKPOINT}: that is where checkpoints stand")));
        }
        match &self.open {
            None => Ok(()),
            Some(open) => Err(channel(format!("step {name} is named while step {} is under way", open.name))),
        }
    }

    // Begins a step; ready when it may run.
    fn run(&mut self, name: Text, is_idempotent: bool) -> oneshot::Receiver<()> {
        let (go, may_go) = oneshot::channel();
        let (give, output) = oneshot::channel();
        let (context, step) = (self.context.clone(), name.clone());
        let running = async move {
            let work = || async {
                let _ = go.send(());
                output.await.map_err(|_| context.give_up())
            };
            context.step(step).idempotent(is_idempotent).run(work).await
        };
        self.open = Some(Open { name, is_idempotent, output: Some(give), running: running.boxed() });
        may_go
    }

    fn checkpoint(&mut self, at: Bytes) {
        let context = self.context.clone();
        self.awaiting = Awaiting::Checkpoint(async move { context.checkpoint(CHECKPOINT, at).await }.boxed());
    }
}

fn bytes_of(value: &RawValue) -> Bytes {
    Bytes::copy_from_slice(value.get().as_bytes())
}

// As it is, or as a string if it is no JSON.
fn as_json(output: &Bytes) -> Option<Box<RawValue>> {
    let raw = serde_json::from_slice::<Box<RawValue>>(output);
    raw.or_else(|_| to_raw_value(&String::from_utf8_lossy(output))).ok()
}

// One line: `{"go":"pay"}`, `{"done":"pay"}`, `{"done":"pay","output":…}`.
fn reply(what: &str, name: &str, output: Option<Box<RawValue>>) -> Bytes {
    let name = serde_json::Value::from(name);
    // Digit by digit as it was recorded, and on this one line: a line's end in JSON is mere space.
    let output = output.map(|output| format!(",\"output\":{}", output.get().replace(['\n', '\r'], " ")));
    format!("{{\"{what}\":{name}{}}}\n", output.unwrap_or_default()).into()
}

fn invalid(line: &[u8], why: &str) -> HandlerError {
    let begin: String = String::from_utf8_lossy(line).chars().take(80).collect();
    channel(format!("line {begin:?} on descriptor 3: {why}"))
}

fn channel(why: String) -> HandlerError {
    HandlerError::permanent("CHANNEL_INVALID", why)
}

#[cfg(test)]
mod tests;
