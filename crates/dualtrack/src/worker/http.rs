//! `dualtrack worker http`: a POST for each attempt. docs/guide/workers.md is what users read.

mod answer;
mod signing;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::{Certificate, Client, Url, header};
use rest_client::contract::MAX_PAYLOAD_BYTES;
use service_kit::{Clock as _, SystemClock};
use task_events::ErrorCategory;
use worker_sdk::http::with_causes;
use worker_sdk::{Context, HandlerError};

use super::serve::Ending;
use answer::{Answer, MAX_ERROR_BYTES};
pub use signing::{Secret, SecretError};

/// Step under which a request is recorded: whether it may be sent twice is this step's declaration.
const STEP: &str = "request";

/// Whom to call, and how.
#[derive(Debug)]
pub struct Settings {
    /// Where to.
    pub url: Url,
    /// Authorities that are trusted besides the system's, for https.
    pub authorities: Vec<Certificate>,
    /// Signs requests, if there is one.
    pub secret: Option<Secret>,
    /// Longest wait for a connection, ms.
    pub connect_timeout_ms: u64,
    /// Longest wait for the whole answer, ms.
    pub timeout_ms: u64,
    /// Whether a request may be sent again when it is not known what became of it.
    pub idempotent: bool,
    /// A failure with a Retry-After is held back so long at most, ms.
    pub max_hold_ms: u64,
}

/// Calls a URL. Clones are the same.
#[derive(Clone)]
pub struct Http {
    client: Client,
    settings: Arc<Settings>,
    ending: Ending,
}

impl Http {
    /// # Errors
    /// There can be no client.
    pub fn new(settings: Settings, ending: Ending) -> reqwest::Result<Self> {
        let mut client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_millis(settings.connect_timeout_ms))
            .tls_certs_merge(settings.authorities.iter().cloned())
            .user_agent(concat!("dualtrack/", env!("CARGO_PKG_VERSION")));
        if !settings.idempotent {
            // A request on a connection that is just being closed may or may not have arrived.
            client = client.pool_max_idle_per_host(0);
        }
        Ok(Self { client: client.build()?, settings: Arc::new(settings), ending })
    }

    /// The handler.
    pub async fn run(self, context: Context) -> Result<Bytes, HandlerError> {
        let mut retry_after_ms = None;
        let step = context.step(STEP).idempotent(self.settings.idempotent);
        let outcome = step.run(|| self.call(&context, &mut retry_after_ms)).await;
        if let (Err(_), Some(ms)) = (&outcome, retry_after_ms) {
            self.hold_back(&context, ms).await?;
        }
        outcome
    }

    async fn call(&self, context: &Context, retry_after_ms: &mut Option<u64>) -> Result<Bytes, HandlerError> {
        let request = self.request(context)?;
        tokio::select! {
            answered = self.send(request) => {
                let answer = answered?;
                *retry_after_ms = answer.retry_after_ms(SystemClock.wall_ms());
                answer.outcome()
            }
            () = self.ending.ended() => {
                Err(self.unknown("WORKER_STOPPED", "the worker was stopped before the answer".to_owned()))
            }
        }
    }

    fn request(&self, context: &Context) -> Result<reqwest::RequestBuilder, HandlerError> {
        let now_ms = SystemClock.wall_ms();
        // The same for every attempt of a run: by it a receiver knows what it has had already.
        let id = format!("{}-{}", context.task_id(), context.run_no());
        let deadline = now_ms.saturating_add_unsigned(self.settings.timeout_ms);
        let body = context.params().clone();
        let mut request = self
            .client
            .post(self.settings.url.clone())
            .timeout(Duration::from_millis(self.settings.timeout_ms))
            .header(header::CONTENT_TYPE, "application/json")
            .header("dualtrack-task-id", context.task_id().to_string())
            .header("dualtrack-task-type", context.task_type())
            .header("dualtrack-run", context.run_no().to_string())
            .header("dualtrack-exec-epoch", context.exec_epoch().to_string())
            .header("dualtrack-execution-id", context.execution_id().to_string())
            .header("dualtrack-deadline", deadline.to_string())
            .header("idempotency-key", &id)
            .header("webhook-id", &id)
            .header("webhook-timestamp", now_ms.div_euclid(1000).to_string());
        if let Some(parent) = context.traceparent() {
            request = request.header("traceparent", parent.to_string());
        }
        if let Some(at) = context.payload_ref() {
            request = request
                .header("dualtrack-payload-ref", at)
                .header("dualtrack-payload-sha256", context.payload_hash().to_string());
        }
        if let Some(secret) = &self.settings.secret {
            let signature = secret.sign(&id, now_ms.div_euclid(1000), &body);
            let signature = signature.map_err(|why| HandlerError::permanent("HTTP_UNSIGNED", why))?;
            request = request.header("webhook-signature", signature);
        }
        Ok(request.body(body))
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Answer, HandlerError> {
        let mut response = request.send().await.map_err(|why| self.no_answer(&why))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let limit = if status.is_success() { MAX_PAYLOAD_BYTES } else { MAX_ERROR_BYTES };
        let (mut body, mut total) = (Vec::new(), 0u64);
        while let Some(chunk) = response.chunk().await.map_err(|why| self.no_answer(&why))? {
            total += chunk.len() as u64;
            let room = limit.saturating_sub(body.len()).min(chunk.len());
            body.extend_from_slice(&chunk[..room]);
            // Of an error the beginning tells enough; of a result that is too large the size is told.
            if !status.is_success() && total > MAX_ERROR_BYTES as u64 {
                break;
            }
        }
        Ok(Answer { status, headers, body: body.into(), total })
    }

    fn no_answer(&self, why: &reqwest::Error) -> HandlerError {
        let text = with_causes(why);
        if why.is_connect() {
            return HandlerError::transient("HTTP_CONNECT", text);
        }
        if why.is_builder() {
            return HandlerError::permanent("HTTP_REQUEST_INVALID", text);
        }
        if why.is_timeout() {
            let ms = self.settings.timeout_ms;
            return self
                .unknown("HTTP_TIMEOUT", format!("no whole answer within {ms} ms: what became of it is not known"));
        }
        self.unknown("OUTCOME_UNKNOWN", format!("the answer was cut off: {text}"))
    }

    // What was declared harmless is tried again, the rest is for people.
    fn unknown(&self, code: &'static str, text: String) -> HandlerError {
        let category = if self.settings.idempotent { ErrorCategory::Transient } else { ErrorCategory::OutcomeUnknown };
        HandlerError::new(code, text, category)
    }

    // The contract has no place for the earliest next attempt, so the failure is reported when that is
    // due: docs/adr/070-ready-made-workers.md. Heartbeats renew the lease meanwhile.
    async fn hold_back(&self, context: &Context, ms: u64) -> Result<(), HandlerError> {
        let due = SystemClock.boot_ms().saturating_add(ms.min(self.settings.max_hold_ms));
        tokio::select! {
            () = SystemClock.sleep_until(due) => Ok(()),
            () = context.cancelled() => Err(context.give_up()),
            () = self.ending.ended() => Ok(()),
        }
    }
}
