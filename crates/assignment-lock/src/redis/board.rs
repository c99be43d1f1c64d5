//! The board in Redis: `task:board` is the set of names, `task:board:NAME` what one tells, JSON, with an
//! expiry of its own.

use std::future::Future;

use futures::FutureExt as _;
use redis::{Cmd, cmd};
use task_events::Text;

use super::{RedisLock, Shared};
use crate::{Board, Entry, LockUnavailable};

/// Names are forgotten when nobody has told anything for a day, ms.
const NAMES_MS: u64 = 86_400_000;

impl Shared {
    fn names(&self) -> String {
        format!("{}task:board", self.prefix)
    }

    fn entry_key(&self, instance: &str) -> String {
        format!("{}:{instance}", self.names())
    }

    // Requests about the board whose answers say nothing beyond that they were done.
    async fn done(&self, requests: &[Cmd]) -> Result<(), LockUnavailable> {
        let names = self.names();
        let answers = self.connection.ask(requests).await.map_err(|why| why.unavailable(&names))?;
        answers.into_iter().try_for_each(|answer| self.value::<redis::Value>(answer, &names).map(|_| ()))
    }

    async fn put_up(&self, entry: &Entry, ttl_ms: u64) -> Result<(), LockUnavailable> {
        let text = serde_json::to_string(entry).map_err(|why| LockUnavailable::Refused(why.to_string()))?;
        let (mut set, mut add, mut keep) = (cmd("SET"), cmd("SADD"), cmd("PEXPIRE"));
        set.arg(self.entry_key(&entry.instance)).arg(text).arg("PX").arg(ttl_ms.max(1));
        add.arg(self.names()).arg(entry.instance.as_str());
        keep.arg(self.names()).arg(NAMES_MS);
        self.done(&[set, add, keep]).await
    }

    async fn take_down(&self, instance: &str) -> Result<(), LockUnavailable> {
        let (mut delete, mut remove) = (cmd("DEL"), cmd("SREM"));
        delete.arg(self.entry_key(instance));
        remove.arg(self.names()).arg(instance);
        self.done(&[delete, remove]).await
    }

    async fn entries(&self) -> Result<Vec<Entry>, LockUnavailable> {
        let names = self.names();
        let mut members = cmd("SMEMBERS");
        members.arg(&names);
        let answers = self.connection.ask(&[members]).await.map_err(|why| why.unavailable(&names))?;
        let mut instances: Vec<String> = self.next(&mut answers.into_iter(), &names)?;
        instances.sort_unstable();
        let requests: Vec<Cmd> = instances
            .iter()
            .map(|instance| {
                let mut get = cmd("GET");
                get.arg(self.entry_key(instance));
                get
            })
            .collect();
        let mut answers = self.connection.ask(&requests).await.map_err(|why| why.unavailable(&names))?.into_iter();
        let mut entries = Vec::with_capacity(instances.len());
        for instance in &instances {
            let text: Option<Vec<u8>> = self.next(&mut answers, &self.entry_key(instance))?;
            entries.extend(text.and_then(|text| serde_json::from_slice(&text).ok()));
        }
        Ok(entries)
    }
}

impl Board for RedisLock {
    fn put_up(&self, entry: Entry, ttl_ms: u64) -> impl Future<Output = Result<(), LockUnavailable>> + Send + 'static {
        let shared = self.shared.clone();
        async move { shared.put_up(&entry, ttl_ms).await }.boxed()
    }

    fn take_down(&self, instance: Text) -> impl Future<Output = Result<(), LockUnavailable>> + Send + 'static {
        let shared = self.shared.clone();
        async move { shared.take_down(&instance).await }.boxed()
    }

    fn entries(&self) -> impl Future<Output = Result<Vec<Entry>, LockUnavailable>> + Send + 'static {
        let shared = self.shared.clone();
        async move { shared.entries().await }.boxed()
    }
}
