//! The real lock server: Redis, or what speaks its protocol (RESP3, so version 6 or newer).
//!
//! Locks are plain keys, `task:ID:assignee` = `worker_id#exec_epoch`, so that people can read them
//! with `redis-cli`. Every request may be made twice: a lost answer is asked for again. What leaves this
//! module is boxed: else each crate that calls it would compile the driver's machinery anew.

mod board;
mod config;
mod connection;
mod failure;

use std::future::Future;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use redis::{Cmd, FromRedisValue, RedisResult, Value, cmd, from_redis_value};
use task_events::TaskId;

pub use self::config::{RedisClient, RedisConfig, RedisRefused};
use self::connection::{Connection, Script};
use self::failure::Failure;
use crate::{AssignmentLock, Holder, Lock, LockUnavailable, ServerState, Taken};

/// Sets a lock that is not there or that an earlier attempt left, prolongs one that is the holder's own.
/// Answers 0 if it was there, 1 if it was lost.
const RENEW: &str = "\
local held = redis.call('GET', KEYS[1])
if held == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 0
end
local epoch = held and tonumber(string.match(held, '#(%d+)$'))
if not (epoch and epoch > tonumber(ARGV[3])) then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return 1";

/// Deletes a lock that still is the holder's own.
const RELEASE: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return 0";

/// The sentinel is forgotten when nobody has looked at it for a week, s.
const SENTINEL_S: u64 = 7 * 86_400;

/// Locks in Redis. Clones share one connection.
#[derive(Clone)]
pub struct RedisLock {
    shared: Arc<Shared>,
}

struct Shared {
    connection: Connection,
    prefix: String,
    renew: Script,
    release: Script,
}

impl RedisLock {
    /// Locks on the server that these settings name. It is met with the first request, so that a
    /// coordinator starts while its lock server is away. Lives on the tokio runtime it is made on.
    ///
    /// # Errors
    /// [`RedisRefused`]: a setting cannot be used.
    pub fn connect(config: &RedisConfig) -> Result<Self, RedisRefused> {
        let connection = Connection::new(config)?;
        let (renew, release) = (Script::new(RENEW), Script::new(RELEASE));
        Ok(Self { shared: Arc::new(Shared { connection, prefix: config.key_prefix.clone(), renew, release }) })
    }
}

impl RedisLock {
    /// What the server does when its memory is full (`maxmemory-policy`); anything but `noeviction` lets
    /// locks vanish that are held.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub fn eviction_policy(&self) -> BoxFuture<'_, Result<String, LockUnavailable>> {
        async move {
            let mut info = cmd("INFO");
            info.arg("memory");
            let answers = self.shared.connection.ask(&[info]).await.map_err(|why| why.unavailable(""))?;
            let info: String = self.shared.next(&mut answers.into_iter(), "INFO")?;
            let policy = info.lines().find_map(|line| line.strip_prefix("maxmemory_policy:"));
            Ok(policy.unwrap_or("unknown").trim().to_owned())
        }
        .boxed()
    }
}

impl Shared {
    fn key(&self, task: TaskId) -> String {
        format!("{}task:{task}:assignee", self.prefix)
    }

    fn set(&self, lock: &Lock, how: &str) -> Cmd {
        let mut set = cmd("SET");
        set.arg(self.key(lock.task)).arg(lock.holder.to_string());
        set.arg(how).arg("PX").arg(lock.ttl_ms.max(1));
        set
    }

    async fn take(&self, locks: &[Lock]) -> Result<Vec<Taken>, LockUnavailable> {
        let requests: Vec<Cmd> = locks.iter().map(|lock| self.set(lock, "NX")).collect();
        let answers = match self.connection.ask(&requests).await {
            Ok(answers) => answers,
            Err(Failure::Silent(why)) => return self.look_again(locks, why).await,
            Err(why) => return Err(why.unavailable("")),
        };
        let set = self.read::<Option<String>>(answers, locks)?;
        // What was there: the lock itself after a lost answer, or what an attempt left that is over.
        let found: Vec<&Lock> = locks.iter().zip(&set).filter(|(_, set)| set.is_none()).map(|(lock, _)| lock).collect();
        let requests: Vec<Cmd> = found.iter().map(|lock| self.set(lock, "GET")).collect();
        let answers = self.connection.ask(&requests).await.map_err(|why| why.unavailable(""))?;
        let mut before = self.read::<Option<Vec<u8>>>(answers, found.iter().copied())?.into_iter();
        let taken = locks.iter().zip(set).map(|(lock, set)| {
            let before = if set.is_some() { None } else { before.next().flatten() };
            match before {
                Some(held) if held != lock.holder.to_string().into_bytes() => Taken::Replaced,
                Some(_) | None => Taken::Yes,
            }
        });
        Ok(taken.collect())
    }

    // No answer: perhaps it was done all the same, and only its answer was lost.
    async fn look_again(&self, locks: &[Lock], why: String) -> Result<Vec<Taken>, LockUnavailable> {
        let unknown = || LockUnavailable::Away(format!("{why}: whether {} locks were taken is unknown", locks.len()));
        let requests: Vec<Cmd> = locks
            .iter()
            .map(|lock| {
                let mut get = cmd("GET");
                get.arg(self.key(lock.task));
                get
            })
            .collect();
        let answers = self.connection.ask(&requests).await.map_err(|_| unknown())?;
        let held = self.read::<Option<Vec<u8>>>(answers, locks)?;
        let ours = |(lock, held): (&Lock, Option<Vec<u8>>)| held == Some(lock.holder.to_string().into_bytes());
        if locks.iter().zip(held).all(ours) { Ok(vec![Taken::Yes; locks.len()]) } else { Err(unknown()) }
    }

    async fn renew(&self, locks: &[Lock]) -> Result<usize, LockUnavailable> {
        let calls: Vec<Cmd> = locks
            .iter()
            .map(|lock| {
                let mut call = self.renew.call(&self.key(lock.task));
                call.arg(lock.holder.to_string()).arg(lock.ttl_ms.max(1)).arg(lock.holder.exec_epoch.0);
                call
            })
            .collect();
        let answers = self.connection.call(&self.renew, &calls).await.map_err(|why| why.unavailable(""))?;
        Ok(self.read::<usize>(answers, locks)?.into_iter().sum())
    }

    async fn release(&self, locks: &[(TaskId, Holder)]) -> Result<(), LockUnavailable> {
        let calls: Vec<Cmd> = locks
            .iter()
            .map(|(task, holder)| {
                let mut call = self.release.call(&self.key(*task));
                call.arg(holder.to_string());
                call
            })
            .collect();
        let answers = self.connection.call(&self.release, &calls).await.map_err(|why| why.unavailable(""))?;
        self.read_of::<i64>(answers, locks.iter().map(|(task, _)| *task)).map(|_| ())
    }

    async fn server(&self) -> Result<ServerState, LockUnavailable> {
        let mut info = cmd("INFO");
        info.arg("server");
        let answers = self.connection.ask(&[info, cmd("TIME")]).await.map_err(|why| why.unavailable(""))?;
        let mut answers = answers.into_iter();
        let info: String = self.next(&mut answers, "INFO")?;
        let (seconds, micros): (u64, u64) = self.next(&mut answers, "TIME")?;
        let run_id = info.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap_or("unknown").trim();
        // Each sentinel is another one, by the server's own clock: whoever asks hears of a server that
        // has forgotten everything, also when somebody else has set its sentinel again meanwhile.
        let key = format!("{}task:sentinel:{run_id}", self.prefix);
        let (mut set, mut get, mut keep) = (cmd("SET"), cmd("GET"), cmd("EXPIRE"));
        set.arg(&key).arg(format!("{seconds}.{micros:06}")).arg("NX").arg("EX").arg(SENTINEL_S);
        get.arg(&key);
        keep.arg(&key).arg(SENTINEL_S);
        let answers = self.connection.ask(&[set, get, keep]).await.map_err(|why| why.unavailable(&key))?;
        let mut answers = answers.into_iter();
        let set: Option<String> = self.next(&mut answers, &key)?;
        let since: Option<String> = self.next(&mut answers, &key)?;
        let _kept: i64 = self.next(&mut answers, &key)?;
        Ok(ServerState { run_id: format!("{run_id}/{}", since.unwrap_or_default()), sentinel: set.is_none() })
    }

    fn read<'l, T: FromRedisValue>(
        &self,
        answers: Vec<RedisResult<Value>>,
        locks: impl IntoIterator<Item = &'l Lock>,
    ) -> Result<Vec<T>, LockUnavailable> {
        self.read_of(answers, locks.into_iter().map(|lock| lock.task))
    }

    // A server that refuses is told of before a key that is wrong.
    fn read_of<T: FromRedisValue>(
        &self,
        answers: Vec<RedisResult<Value>>,
        tasks: impl Iterator<Item = TaskId>,
    ) -> Result<Vec<T>, LockUnavailable> {
        let (mut read, mut wrong) = (Vec::with_capacity(answers.len()), None);
        for (answer, task) in answers.into_iter().zip(tasks) {
            match self.value(answer, &self.key(task)) {
                Ok(value) => read.push(value),
                Err(why) if why.is_server() => return Err(why),
                Err(why) => wrong = wrong.or(Some(why)),
            }
        }
        wrong.map_or(Ok(read), Err)
    }

    fn next<T: FromRedisValue>(
        &self,
        answers: &mut impl Iterator<Item = RedisResult<Value>>,
        key: &str,
    ) -> Result<T, LockUnavailable> {
        let missing = || LockUnavailable::Refused(format!("no answer to {key}"));
        answers.next().ok_or_else(missing).and_then(|answer| self.value(answer, key))
    }

    fn value<T: FromRedisValue>(&self, answer: RedisResult<Value>, key: &str) -> Result<T, LockUnavailable> {
        let value = answer.map_err(|why| self.connection.failure(&why).unavailable(key))?;
        from_redis_value(value).map_err(|why| LockUnavailable::Refused(format!("{key}: {why}")))
    }
}

impl AssignmentLock for RedisLock {
    fn take(&self, locks: Vec<Lock>) -> impl Future<Output = Result<Vec<Taken>, LockUnavailable>> + Send + 'static {
        let shared = self.shared.clone();
        async move { shared.take(&locks).await }.boxed()
    }

    fn renew(&self, locks: Vec<Lock>) -> impl Future<Output = Result<usize, LockUnavailable>> + Send + 'static {
        let shared = self.shared.clone();
        async move { shared.renew(&locks).await }.boxed()
    }

    fn release(
        &self,
        locks: Vec<(TaskId, Holder)>,
    ) -> impl Future<Output = Result<(), LockUnavailable>> + Send + 'static {
        let shared = self.shared.clone();
        async move { shared.release(&locks).await }.boxed()
    }

    fn server(&self) -> impl Future<Output = Result<ServerState, LockUnavailable>> + Send + 'static {
        let shared = self.shared.clone();
        async move { shared.server().await }.boxed()
    }
}
