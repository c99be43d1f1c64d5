//! One attempt's handler, from its parameters to its result.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use rest_contract::{MAX_NAME_BYTES, MAX_PAYLOAD_BYTES};
use task_events::{Sha256Hash, Text};
use tokio::task::JoinError;

use crate::machine::HandlerEnd;
use crate::{Context, HandlerError, PayloadKey};

/// Longest error message in a report; the whole text is stored as a payload.
const MAX_MESSAGE_CHARS: usize = 256;

/// Pauses between two looks for parameters that are not as they should be, ms.
const LOOK_MIN_MS: u64 = 250;
const LOOK_MAX_MS: u64 = 15_000;

type Handler = Arc<dyn Fn(Context) -> BoxFuture<'static, Result<Bytes, HandlerError>> + Send + Sync>;

/// Runs the handler and stores its result before it says that there is one.
pub(super) async fn execute(handler: Option<Handler>, context: Context) -> HandlerEnd {
    let doing = context.traced.execute(&context.assignment);
    let outcome = try_execute(handler, context.clone()).await;
    if let Some(doing) = doing {
        doing.ended(outcome.as_ref().err().map(|error| error.code.clone()));
    }
    match outcome {
        Ok(result_data_hash) => HandlerEnd::Success { result_data_hash },
        Err(mut error) => {
            error.code = Text::from(cut_to(&error.code, MAX_NAME_BYTES));
            let too_long = error.message.char_indices().nth(MAX_MESSAGE_CHARS).map(|(cut, _)| cut);
            let text = error.text.take().or_else(|| too_long.is_some().then(|| error.message.clone()));
            if let Some(text) = text.filter(|_| !error.stopped) {
                let text = Bytes::from(cut_to(&text, MAX_PAYLOAD_BYTES).to_owned());
                // Without the whole text the report's beginning must do.
                let _ = context.payloads.put(context.task_id(), PayloadKey::ErrorText, text, &context.guard).await;
            }
            error.message.truncate(too_long.unwrap_or(usize::MAX));
            error.into_end()
        }
    }
}

async fn try_execute(handler: Option<Handler>, mut context: Context) -> Result<Sha256Hash, HandlerError> {
    let Some(handler) = handler else {
        let message = format!("this worker has no handler for {}", context.assignment.task_type);
        return Err(HandlerError::transient("NO_HANDLER", message));
    };
    if context.payload_ref().is_none() {
        context.params = parameters(&context).await?;
    }
    // The lease may have run out since the machine said start.
    if !context.may_write() {
        return Err(HandlerError::stopped());
    }
    let (task, payloads, guard) = (context.task_id(), context.payloads.clone(), context.guard.clone());
    let result = handler(context).await?;
    if result.len() > MAX_PAYLOAD_BYTES {
        let text = format!("the result has {} bytes, the limit is {MAX_PAYLOAD_BYTES}", result.len());
        return Err(HandlerError::permanent("RESULT_TOO_LARGE", text));
    }
    let hash = Sha256Hash::of(&result);
    payloads.put(task, PayloadKey::Result, result, &guard).await?;
    Ok(hash)
}

// The longest beginning of at most so many bytes, cut on a character.
fn cut_to(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

// Parameters that are missing are a fault of the infrastructure, not of the task (design.md §7): they are
// waited for as long as the attempt lasts, and people are told.
async fn parameters(context: &Context) -> Result<Bytes, HandlerError> {
    let mut wait = LOOK_MIN_MS;
    let key = PayloadKey::Parameters { payload_hash: context.payload_hash() };
    while context.guard.holds() {
        let stored = context.payloads.get(context.task_id(), key.clone(), &context.guard).await?;
        let why = match stored {
            Some(bytes) if Sha256Hash::of(&bytes) == context.payload_hash() => return Ok(bytes),
            Some(_) => "the stored parameters do not match their recorded hash",
            None => "the parameters are not in the store",
        };
        tracing::error!(task_id = %context.task_id(), "{why}: restore the store, or cancel the task");
        tokio::select! {
            () = context.payloads.pause(wait) => {}
            () = context.cancelled() => return Err(context.give_up()),
        }
        wait = (wait * 2).min(LOOK_MAX_MS);
    }
    Err(HandlerError::stopped())
}

/// How the task of a handler ended; when this is known, nothing of it acts any more.
pub(super) fn how_it_ended(joined: Result<HandlerEnd, JoinError>) -> HandlerEnd {
    match joined {
        Ok(end) => end,
        Err(error) if error.is_panic() => {
            let panic = error.into_panic();
            let text = panic.downcast_ref::<&str>().copied().map(Text::from);
            let text = text.or_else(|| panic.downcast_ref::<String>().map(Text::from));
            HandlerEnd::Panicked { message: text.unwrap_or_else(|| Text::const_new("panic without a text")) }
        }
        Err(_) => HandlerEnd::Stopped,
    }
}
