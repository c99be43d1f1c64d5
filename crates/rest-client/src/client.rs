//! One method per endpoint.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue};
use rest_contract::{
    BatchCreated, CancelAccepted, CancelRequest, CreateBatch, CreateRequest, Created, EventsView, FoundView, MAX_PAGE,
    ReplayRequest, Replayed, ResultView, TaskView, WhyView,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use task_events::TaskId;

use crate::ClientError;
use crate::transport::{Call, Timeouts, Transport};

/// Header of the key that makes a create safe to repeat.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Where a task is found by its id.
const TASK: &str = "/api/v1/task";

/// A client of one server. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Client {
    transport: Transport,
}

/// What `/healthz` or `/readyz` says: the body is for people, so it is kept as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    /// HTTP status: 200 when all is well.
    pub status: u16,
    /// Its words.
    pub body: Value,
}

pub(crate) type Answer<T> = Result<T, ClientError>;

impl Client {
    /// A client of the server at `url` (`http://HOST:PORT`, or `HOST:PORT`). Nothing is sent yet.
    ///
    /// # Errors
    /// [`ClientError::Unsendable`] names what is wrong with the URL.
    pub fn new(url: &str) -> Answer<Self> {
        Self::with_timeouts(url, Timeouts::default())
    }

    /// The same with other timeouts.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn with_timeouts(url: &str, timeouts: Timeouts) -> Answer<Self> {
        Ok(Self { transport: Transport::new(url, timeouts)? })
    }

    /// The server.
    pub fn url(&self) -> &str {
        self.transport.url()
    }

    /// Creates a task. With a key, sending the same again yields the first task, `duplicate` set.
    pub async fn create(&self, request: &CreateRequest, key: Option<&str>) -> Answer<Created> {
        self.post("/api/v1/task/create", &[], request, key, &[200, 201]).await
    }

    /// Creates up to 1,000 tasks; the answer says item by item what became of each. Item `i` has the
    /// key `key#i` unless it brings its own.
    pub async fn create_batch(&self, batch: &CreateBatch, key: Option<&str>) -> Answer<BatchCreated> {
        self.post("/api/v1/task/create-batch", &[], batch, key, &[200, 201, 207]).await
    }

    /// The task as it is; with `wait`, once it is terminal or as it is after that time (60 s at most).
    pub async fn get(&self, task: TaskId, wait: Option<Duration>) -> Answer<TaskView> {
        let mut call = Call::get(TASK, &[&task.to_string()]);
        if let Some(wait) = wait {
            call.query.push(("wait", format!("{}ms", wait.as_millis())));
            call.wait = wait;
        }
        self.call(call, &[200]).await
    }

    /// Every record of the task, with the verdict on each: all pages, as of the last one.
    pub async fn events(&self, task: TaskId) -> Answer<EventsView> {
        let mut all = self.events_page(task, MAX_PAGE, None).await?;
        while let Some(cursor) = all.next_cursor.take() {
            let page = self.events_page(task, MAX_PAGE, Some(cursor)).await?;
            all.events.extend(page.events);
            all.deleted.extend(page.deleted);
            (all.as_of, all.next_cursor) = (page.as_of, page.next_cursor);
        }
        Ok(all)
    }

    /// A page of its records, at most `limit` of them (1 to [`MAX_PAGE`]), from `next_cursor` of the page before on.
    pub async fn events_page(&self, task: TaskId, limit: u32, cursor: Option<String>) -> Answer<EventsView> {
        let mut call = Call::get(TASK, &[&task.to_string(), "events"]);
        call.query.push(("limit", limit.to_string()));
        call.query.extend(cursor.map(|cursor| ("cursor", cursor)));
        self.call(call, &[200]).await
    }

    /// The one fact that keeps the task where it is.
    pub async fn why(&self, task: TaskId) -> Answer<WhyView> {
        self.about(task, "why").await
    }

    /// The result of its last run.
    pub async fn result(&self, task: TaskId) -> Answer<ResultView> {
        self.about(task, "result").await
    }

    /// Asks for a task to be cancelled.
    pub async fn cancel(&self, task: TaskId, request: &CancelRequest) -> Answer<CancelAccepted> {
        self.post(TASK, &[&task.to_string(), "cancel"], request, None, &[200, 202]).await
    }

    /// Opens a closed task again.
    pub async fn replay(&self, task: TaskId, request: &ReplayRequest) -> Answer<Replayed> {
        self.post(TASK, &[&task.to_string(), "replay"], request, None, &[200, 202]).await
    }

    /// Tasks of a trace.
    pub async fn trace(&self, trace_id: &str) -> Answer<FoundView> {
        self.call(Call::get("/api/v1/trace", &[trace_id]), &[200, 207]).await
    }

    /// Tasks by the key their creator calls them by; the creator is `default` without one.
    pub async fn business(&self, key: &str, creator: Option<&str>) -> Answer<FoundView> {
        let mut call = Call::get("/api/v1/business", &[key]);
        call.query.extend(creator.map(|creator| ("creator", creator.to_owned())));
        self.call(call, &[200, 207]).await
    }

    /// What the server says of its health; an answer of any status is one.
    pub async fn health(&self) -> Answer<Health> {
        self.probe("/healthz").await
    }

    /// Whether the server makes progress (`/readyz`): 200 once it can take requests.
    pub async fn ready(&self) -> Answer<Health> {
        self.probe("/readyz").await
    }

    async fn probe(&self, path: &'static str) -> Answer<Health> {
        let reply = self.transport.send(Call::get(path, &[])).await?;
        let body = self.transport.read(&reply, &[reply.status])?;
        Ok(Health { status: reply.status, body })
    }

    async fn about<T: DeserializeOwned>(&self, task: TaskId, what: &str) -> Answer<T> {
        self.call(Call::get(TASK, &[&task.to_string(), what]), &[200]).await
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    pub(crate) async fn call<T: DeserializeOwned>(&self, call: Call, good: &[u16]) -> Answer<T> {
        let reply = self.transport.send(call).await?;
        self.transport.read(&reply, good)
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &'static str,
        parts: &[&str],
        body: &impl Serialize,
        key: Option<&str>,
        good: &[u16],
    ) -> Answer<T> {
        let unsendable = |what, value: &str, why: String| ClientError::Unsendable { what, value: value.into(), why };
        let body = serde_json::to_vec(body).map_err(|e| unsendable("the body", "", e.to_string()))?;
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            let why = "an idempotency key is visible ASCII, 1 to 256 characters";
            let visible = !key.is_empty() && key.len() <= rest_contract::MAX_NAME_BYTES;
            let value = HeaderValue::from_str(key).ok().filter(|_| visible && key.is_ascii());
            let value = value.ok_or_else(|| unsendable("the idempotency key", key, why.to_owned()))?;
            headers.insert(IDEMPOTENCY_KEY, value);
        }
        self.call(Call { headers, ..Call::post(path, parts, body) }, good).await
    }
}
