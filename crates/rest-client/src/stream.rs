//! The stream of events, message by message.

use std::time::Duration;

use futures::stream::{Stream, StreamExt as _, unfold};
use rest_contract::{END_MESSAGE, Problem, REACHED_MESSAGE, RECORD_MESSAGE, StreamMessage, StreamQuery};
use serde::de::DeserializeOwned;
use sse_stream::{Sse, SseStream};

use crate::ClientError;
use crate::client::{Answer, Client};
use crate::transport::{Call, innermost};

/// The server speaks at least this often, if only by a comment; twice as long without a word means
/// that nobody is there any more.
const SILENCE: Duration = Duration::from_secs(30);

/// Longest piece of a message that cannot be read, as it is shown, bytes.
const SHOWN_BYTES: usize = 200;

impl Client {
    /// Opens a stream of events. It ends after [`StreamMessage::End`] or [`StreamMessage::Reached`], or with an error when the
    /// connection breaks; either way the cursor of the last record goes on exactly behind it.
    pub async fn events_stream(
        &self,
        query: &StreamQuery,
    ) -> Answer<impl Stream<Item = Result<StreamMessage, ClientError>> + Send + use<>> {
        let mut call = Call::get("/api/v1/events/stream", &[]);
        call.query = query.parameters();
        let opened = self.transport().open(call, SILENCE).await?;
        let (url, what) = (self.url().to_owned(), opened.what);
        let messages = SseStream::new(reqwest::Body::from(opened.response)).boxed();
        Ok(unfold(Some(messages), move |messages| {
            let (url, what) = (url.clone(), what.clone());
            async move {
                let mut messages = messages?;
                loop {
                    let read = match messages.next().await? {
                        Ok(message) => match read(&url, &what, message) {
                            Some(read) => read,
                            None => continue,
                        },
                        Err(why) => Err(ClientError::Unreachable { url, why: innermost(&why) }),
                    };
                    let goes_on = matches!(read, Ok(StreamMessage::Record { .. }));
                    return Some((read, goes_on.then_some(messages)));
                }
            }
        }))
    }
}

// `None`: a message of a type that this client does not know, from a newer server.
fn read(url: &str, what: &str, message: Sse) -> Option<Result<StreamMessage, ClientError>> {
    let data = message.data.unwrap_or_default();
    match message.event.as_deref() {
        Some(RECORD_MESSAGE) => {
            let cursor = message.id.unwrap_or_default();
            let record = parse(url, what, &data);
            Some(record.map(|record| StreamMessage::Record { cursor, record: Box::new(record) }))
        }
        Some(REACHED_MESSAGE) => Some(Ok(StreamMessage::Reached { cursor: message.id.unwrap_or_default() })),
        Some(END_MESSAGE) => Some(parse::<Problem>(url, what, &data).map(|why| StreamMessage::End(Box::new(why)))),
        Some(_) | None => None,
    }
}

fn parse<T: DeserializeOwned>(url: &str, what: &str, data: &str) -> Result<T, ClientError> {
    serde_json::from_str(data).map_err(|why| {
        let shown = &data.as_bytes()[..data.len().min(SHOWN_BYTES)];
        ClientError::unreadable(url, what, 200, why.to_string(), shown, true)
    })
}
