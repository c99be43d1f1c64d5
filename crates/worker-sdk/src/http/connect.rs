//! The front door: a worker from a URL and its handlers.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use rest_contract::{MAX_NAME_BYTES, MAX_SLOTS, MAX_WAIT_MS};
use spans::Spans;
use task_events::{Incarnation, Text};

use super::{HttpCoordinator, HttpWorker, InvalidUrl};
use crate::machine::{Config, InvalidConfig};
use crate::{Context, FileOutbox, HandlerError, Handlers, SystemClock, Worker, WorkerClock};

impl Worker<HttpCoordinator, SystemClock> {
    /// A worker of the coordinator at `url` (`http://host:port`).
    ///
    /// ```no_run
    /// use bytes::Bytes;
    /// use worker_sdk::{Context, HandlerError, Worker};
    ///
    /// async fn greet(ctx: Context) -> Result<Bytes, HandlerError> {
    ///     let text = ctx.step("greet").idempotent(true).run(|| async { Ok("\"hello\"".into()) }).await?;
    ///     Ok(text)
    /// }
    ///
    /// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
    /// let worker = Worker::connect("http://127.0.0.1:8080")
    ///     .worker_id("greeter-1")
    ///     .handler("greet", greet)
    ///     .slots(8)
    ///     .outbox("/var/lib/greeter-1")
    ///     .build()?;
    /// worker.run(async { tokio::signal::ctrl_c().await.unwrap_or(()) }).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect(url: impl Into<String>) -> Connect {
        Connect {
            urls: vec![url.into()],
            worker_id: Text::default(),
            queues: Vec::new(),
            slots: 16,
            handler_version: Text::const_new("1"),
            outbox: None,
            drain_within: Duration::from_secs(30),
            poll_wait: Duration::from_secs(5),
            cancel_grace: None,
            max_attempts: None,
            end_when_idle: None,
            handlers: Handlers::new(),
            spans: Spans::default(),
        }
    }
}

/// Settings of a worker; [`Connect::build`] checks them.
#[must_use = "nothing is connected before `build` and `run`"]
pub struct Connect {
    urls: Vec<String>,
    worker_id: Text,
    queues: Vec<Text>,
    slots: u32,
    handler_version: Text,
    outbox: Option<PathBuf>,
    drain_within: Duration,
    poll_wait: Duration,
    cancel_grace: Option<Duration>,
    max_attempts: Option<u64>,
    end_when_idle: Option<Duration>,
    handlers: Handlers,
    spans: Spans,
}

/// Settings that cannot work; each names the setting.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// `connect` or `also_at`.
    #[error(transparent)]
    Url(#[from] InvalidUrl),
    /// A setting is missing or beyond its limit.
    #[error("{setting} {why}")]
    Setting {
        /// Which one.
        setting: &'static str,
        /// What is wrong with it: value and limit.
        why: String,
    },
    /// Settings that contradict each other.
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    /// The outbox cannot be used, or another process holds it.
    #[error("outbox {}: {why}", path.display())]
    Outbox {
        /// Its directory.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
}

impl Connect {
    /// Another instance, asked when the one in use does not answer.
    pub fn also_at(mut self, url: impl Into<String>) -> Self {
        self.urls.push(url.into());
        self
    }

    /// Name of the worker: the same after each restart, and no other process's. Required.
    pub fn worker_id(mut self, id: impl Into<Text>) -> Self {
        self.worker_id = id.into();
        self
    }

    /// Queues to serve; without them those named like the task types of the handlers.
    pub fn queues<T: Into<Text>>(mut self, queues: impl IntoIterator<Item = T>) -> Self {
        self.queues = queues.into_iter().map(Into::into).collect();
        self
    }

    /// Attempts at a time; 16 without it.
    pub fn slots(mut self, slots: u32) -> Self {
        self.slots = slots;
        self
    }

    /// Version of the handlers, recorded with each attempt; `1` without it.
    pub fn handler_version(mut self, version: impl Into<Text>) -> Self {
        self.handler_version = version.into();
        self
    }

    /// Directory in which reports survive a crash (synced before they are sent). Without it a crash
    /// costs what was done and not yet answered: the lease runs out and the step runs again.
    pub fn outbox(mut self, directory: impl Into<PathBuf>) -> Self {
        self.outbox = Some(directory.into());
        self
    }

    /// How long running handlers may go on once `run` was told to stop; 30 s without it.
    pub fn drain_within(mut self, within: Duration) -> Self {
        self.drain_within = within;
        self
    }

    /// Longest wait of a poll, 5 s without it; cut to what the coordinator allows and to a quarter of
    /// its lease.
    pub fn poll_wait(mut self, wait: Duration) -> Self {
        self.poll_wait = wait;
        self
    }

    /// How long a handler may go on after its task's cancel; 10 s without it. The coordinator has a
    /// grace of its own, after which it counts the worker as not stopped (30 s unless configured).
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = Some(grace);
        self
    }

    /// Drains after taking so many attempts, at least 1; without it `run` goes on for ever.
    pub fn max_attempts(mut self, attempts: u64) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// Drains once there was nothing to do for so long while the coordinator answered; without it
    /// `run` waits for work for ever.
    pub fn end_when_idle(mut self, after: Duration) -> Self {
        self.end_when_idle = Some(after);
        self
    }

    /// Where spans of what handlers do go [default: nowhere].
    pub fn spans(mut self, spans: Spans) -> Self {
        self.spans = spans;
        self
    }

    /// Runs tasks of this type with `handler`.
    pub fn handler<F, R>(mut self, task_type: impl Into<Text>, handler: F) -> Self
    where
        F: Fn(Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Bytes, HandlerError>> + Send + 'static,
    {
        self.handlers = self.handlers.on(task_type, handler);
        self
    }

    /// All handlers at once, instead of those named so far.
    pub fn handlers(mut self, handlers: Handlers) -> Self {
        self.handlers = handlers;
        self
    }

    /// Checks the settings. Blocks while it opens the outbox; connects to nothing.
    ///
    /// # Errors
    /// Names the setting, its value and the limit.
    pub fn build(mut self) -> Result<HttpWorker, ConnectError> {
        if self.queues.is_empty() {
            self.queues = self.handlers.task_types().cloned().collect();
        }
        self.check()?;
        let clock = SystemClock;
        let coordinator = HttpCoordinator::new(&self.urls, clock)?;
        let incarnation = Incarnation::new(clock.now().wall_ms, random());
        let standard = Config::new(self.worker_id.clone(), incarnation, self.queues.clone());
        let end_when_idle_ms = self.end_when_idle.map(whole_ms);
        let config = Config {
            slots: self.slots,
            handler_version: self.handler_version.clone(),
            // Idleness is noticed at the end of a poll.
            poll_wait_ms: whole_ms(self.poll_wait).min(MAX_WAIT_MS).min(end_when_idle_ms.unwrap_or(MAX_WAIT_MS)),
            max_undelivered: self.slots.max(10_000),
            cancel_grace_ms: self.cancel_grace.map_or(standard.cancel_grace_ms, whole_ms),
            max_attempts: self.max_attempts,
            end_when_idle_ms,
            ..standard
        };
        config.check()?;
        let outbox = match &self.outbox {
            None => None,
            Some(path) => Some(open(path).map_err(|why| ConnectError::Outbox { path: path.clone(), why })?),
        };
        let Self { handlers, drain_within, spans, .. } = self;
        Ok(HttpWorker { coordinator, config, handlers, outbox, drain_within, spans })
    }

    fn check(&self) -> Result<(), ConnectError> {
        name("worker_id", &self.worker_id)?;
        // It stands in a path, where these mean something else.
        if matches!(self.worker_id.as_str(), "." | "..") {
            return Err(setting("worker_id", format!("{:?} cannot stand in a path", self.worker_id)));
        }
        name("handler_version", &self.handler_version)?;
        self.queues.iter().try_for_each(|queue| name("queues", queue))?;
        if self.queues.is_empty() {
            return Err(setting("queues", "are empty, and there is no handler to name one"));
        }
        if self.handlers.is_empty() {
            return Err(setting("handlers", "are empty: a worker needs at least one"));
        }
        self.handlers.task_types().try_for_each(|task_type| name("handlers", task_type))?;
        if !(1..=MAX_SLOTS).contains(&self.slots) {
            return Err(setting("slots", format!("must be in 1..={MAX_SLOTS}, is {}", self.slots)));
        }
        Ok(())
    }
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn setting(setting: &'static str, why: impl Into<String>) -> ConnectError {
    ConnectError::Setting { setting, why: why.into() }
}

fn name(of: &'static str, text: &str) -> Result<(), ConnectError> {
    if (1..=MAX_NAME_BYTES).contains(&text.len()) {
        return Ok(());
    }
    Err(setting(of, format!("{text:?} has {} bytes, must have 1..={MAX_NAME_BYTES}", text.len())))
}

pub(super) type OpenOutbox = (FileOutbox, Vec<crate::machine::OutboxEntry>);

fn open(directory: &std::path::Path) -> std::io::Result<OpenOutbox> {
    std::fs::create_dir_all(directory)?;
    FileOutbox::open(&directory.join("outbox"))
}

#[expect(clippy::disallowed_methods, reason = "the one place of the SDK that needs a random number: its incarnation")]
fn random() -> u32 {
    let mut bytes = [0; 4];
    while rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) != Ok(bytes.len()) {}
    u32::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(connect: Connect) -> String {
        connect.build().err().expect("refused").to_string()
    }

    fn good() -> Connect {
        Worker::connect("http://h:1").worker_id("w").handler("t", |_| async { Ok(Bytes::new()) })
    }

    #[test]
    fn a_setting_that_cannot_work_is_named() {
        assert!(why(Worker::connect("http://h")).starts_with("worker_id \"\" has 0 bytes"));
        assert!(why(Worker::connect("http://h").worker_id("w")).starts_with("queues are empty"));
        assert!(why(Worker::connect("http://h").worker_id("w").queues(["q"])).starts_with("handlers are empty"));
        assert_eq!(why(good().slots(0)), "slots must be in 1..=1000, is 0");
        assert!(why(good().worker_id("..")).starts_with("worker_id"));
        assert!(why(good().queues(["q".repeat(257)])).starts_with("queues"));
        assert!(why(good().also_at("https://h")).starts_with("url"));
        let dir = tempfile::tempdir().unwrap();
        let _first = good().outbox(dir.path()).build().expect("the outbox is free");
        assert!(why(good().outbox(dir.path())).contains("is in use"));
    }

    #[test]
    fn queues_are_those_of_the_handlers_unless_they_are_named() {
        assert_eq!(good().build().expect("settings").config.queues, ["t"]);
        assert_eq!(good().queues(["q"]).build().expect("settings").config.queues, ["q"]);
    }
}
