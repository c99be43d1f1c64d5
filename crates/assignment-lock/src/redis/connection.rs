//! Requests to Redis: pipelined, each with an answer of its own, on a connection that is replaced when
//! it is of no use any more.
//!
//! The library's manager connects anew after a connection broke. It keeps one on which answers stop
//! coming (a server that stands still, a network that swallows) and one to a server that has become a
//! replica: those are replaced here.

use std::sync::Arc;

use parking_lot::RwLock;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, Cmd, Pipeline, RedisError, RedisResult, ServerErrorKind, Value, cmd};

use super::config::{RedisConfig, RedisRefused};
use super::failure::Failure;

/// Requests in one pipeline: many enough to fill packets, few enough to be answered in time.
const PIPELINE: usize = 500;

/// Requests that wait to be written; more wait before they come that far.
const BUFFER: usize = 4_096;

/// A script, sent by its hash.
pub(super) struct Script {
    code: &'static str,
    hash: String,
}

impl Script {
    pub(super) fn new(code: &'static str) -> Self {
        Self { code, hash: redis::Script::new(code).get_hash().to_owned() }
    }

    /// A call of it with one key; arguments are added to it.
    pub(super) fn call(&self, key: &str) -> Cmd {
        let mut call = cmd("EVALSHA");
        call.arg(&self.hash).arg(1).arg(key);
        call
    }
}

/// A server; clones share the connection.
#[derive(Clone)]
pub(super) struct Connection(Arc<Inner>);

struct Inner {
    client: Client,
    settings: ConnectionManagerConfig,
    address: String,
    timeout_ms: u128,
    current: RwLock<Current>,
}

#[derive(Clone)]
struct Current {
    number: u64,
    manager: ConnectionManager,
}

impl Connection {
    /// Checks the settings; the server is met with the first request. Lives on a tokio runtime.
    pub(super) fn new(config: &RedisConfig) -> Result<Self, RedisRefused> {
        let client = config.client()?;
        // Whoever asks decides when to ask again: nothing waits here for a server that is away.
        let settings = ConnectionManagerConfig::new()
            .set_number_of_retries(0)
            .set_connection_timeout(Some(config.connect_timeout))
            .set_response_timeout(Some(config.response_timeout))
            .set_pipeline_buffer_size(BUFFER);
        let manager = ConnectionManager::new_lazy_with_config(client.clone(), settings.clone());
        let manager = manager.map_err(|why| RedisRefused {
            field: "url",
            value: config.address().to_owned(),
            rule: why.to_string(),
        })?;
        Ok(Self(Arc::new(Inner {
            client,
            settings,
            address: config.address().to_owned(),
            timeout_ms: config.response_timeout.as_millis(),
            current: RwLock::new(Current { number: 0, manager }),
        })))
    }

    /// Answers to these requests, in their order. All of them may be made again: what breaks off on a
    /// connection that was lost is asked once more on the next one.
    pub(super) async fn ask(&self, requests: &[Cmd]) -> Result<Vec<RedisResult<Value>>, Failure> {
        let mut answers = Vec::with_capacity(requests.len());
        for part in requests.chunks(PIPELINE) {
            let mut answered = self.once(part).await;
            if answered.as_ref().is_err_and(|why| why.is_io_error() && !why.is_timeout()) {
                answered = self.once(part).await;
            }
            answers.extend(answered.map_err(|why| self.failure(&why))?);
        }
        Ok(answers)
    }

    /// As [`Connection::ask`], for calls of a script: a server that does not know it (a new one, or one
    /// whose scripts were flushed) is told, and asked once more for what it had to leave out.
    pub(super) async fn call(&self, script: &Script, calls: &[Cmd]) -> Result<Vec<RedisResult<Value>>, Failure> {
        let mut answers = self.ask(calls).await?;
        let unknown = |answer: &RedisResult<Value>| {
            answer.as_ref().is_err_and(|why| why.kind() == redis::ErrorKind::Server(ServerErrorKind::NoScript))
        };
        let left: Vec<usize> = (0..answers.len()).filter(|n| unknown(&answers[*n])).collect();
        if left.is_empty() {
            return Ok(answers);
        }
        let mut load = cmd("SCRIPT");
        load.arg("LOAD").arg(script.code);
        let again: Vec<Cmd> = std::iter::once(load).chain(left.iter().map(|n| calls[*n].clone())).collect();
        let mut answered = self.ask(&again).await?.into_iter();
        answered.next().transpose().map_err(|why| self.failure(&why))?;
        for (n, answer) in left.into_iter().zip(answered) {
            answers[n] = answer;
        }
        Ok(answers)
    }

    /// What an error means and what to do about it.
    pub(super) fn failure(&self, why: &RedisError) -> Failure {
        Failure::of(why, &self.0.address, self.0.timeout_ms)
    }

    async fn once(&self, requests: &[Cmd]) -> RedisResult<Vec<RedisResult<Value>>> {
        let mut current = self.0.current.read().clone();
        let mut pipeline = Pipeline::with_capacity(requests.len());
        requests.iter().for_each(|request| {
            pipeline.add_command(request.clone());
        });
        let answers: RedisResult<Vec<RedisResult<Value>>> =
            pipeline.ignore_errors().query_async(&mut current.manager).await;
        let useless = match &answers {
            Err(why) => why.is_timeout(),
            Ok(answers) => answers.iter().any(|answer| answer.as_ref().is_err_and(is_read_only)),
        };
        if useless {
            self.replace(current.number);
        }
        answers
    }

    // Many may find the same connection useless; the first replaces it.
    fn replace(&self, number: u64) {
        let mut current = self.0.current.write();
        if current.number != number {
            return;
        }
        if let Ok(manager) = ConnectionManager::new_lazy_with_config(self.0.client.clone(), self.0.settings.clone()) {
            *current = Current { number: number + 1, manager };
        }
    }
}

fn is_read_only(why: &RedisError) -> bool {
    why.kind() == redis::ErrorKind::Server(ServerErrorKind::ReadOnly)
}
