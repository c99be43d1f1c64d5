//! Payloads as handlers use them: the port with patience. A store that is away is no failure of a
//! task, so calls are repeated for as long as the attempt may act.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _};
use task_events::TaskId;

use crate::context::Guard;
use crate::{HandlerError, PayloadKey, PayloadPort, PayloadUnavailable, WorkerClock};

const RETRY_MIN_MS: u64 = 50;
const RETRY_MAX_MS: u64 = 2_000;

type Put = dyn Fn(TaskId, PayloadKey, Bytes) -> BoxFuture<'static, Result<(), PayloadUnavailable>> + Send + Sync;
type Get = dyn Fn(TaskId, PayloadKey) -> BoxFuture<'static, Result<Option<Bytes>, PayloadUnavailable>> + Send + Sync;
type Pause = dyn Fn(u64) -> BoxFuture<'static, ()> + Send + Sync;

/// The port, without its type.
#[derive(Clone)]
pub(crate) struct Payloads {
    put: Arc<Put>,
    get: Arc<Get>,
    pause: Arc<Pause>,
}

impl Payloads {
    pub(crate) fn new(port: Arc<impl PayloadPort>, clock: impl WorkerClock) -> Self {
        let writer = port.clone();
        Self {
            put: Arc::new(move |task, key, bytes| writer.put(task, key, bytes).boxed()),
            get: Arc::new(move |task, key| port.get(task, key).boxed()),
            pause: Arc::new(move |ms| clock.sleep_until(clock.now().boot_ms.saturating_add(ms)).boxed()),
        }
    }

    /// Waits on the worker's clock.
    pub(crate) async fn pause(&self, ms: u64) {
        (self.pause)(ms).await;
    }

    pub(crate) async fn put(
        &self,
        task: TaskId,
        key: PayloadKey,
        bytes: Bytes,
        guard: &Guard,
    ) -> Result<(), HandlerError> {
        self.patiently(guard, || (self.put)(task, key.clone(), bytes.clone())).await
    }

    pub(crate) async fn get(
        &self,
        task: TaskId,
        key: PayloadKey,
        guard: &Guard,
    ) -> Result<Option<Bytes>, HandlerError> {
        self.patiently(guard, || (self.get)(task, key.clone())).await
    }

    async fn patiently<T>(
        &self,
        guard: &Guard,
        mut call: impl FnMut() -> BoxFuture<'static, Result<T, PayloadUnavailable>>,
    ) -> Result<T, HandlerError> {
        let mut wait = RETRY_MIN_MS;
        while guard.holds() {
            match call().await {
                Ok(answer) => return Ok(answer),
                Err(error) => {
                    tracing::warn!(%error, "payload call is repeated");
                    (self.pause)(wait).await;
                    wait = (wait * 2).min(RETRY_MAX_MS);
                }
            }
        }
        Err(HandlerError::stopped())
    }
}
