//! `dualtrack task watch`: a task's records as they come, until it ends; the exit code tells how.

use std::pin::pin;

use futures::StreamExt as _;
use futures::future::{Either, select};
use rest_client::Client;
use rest_client::contract::{EventView, EventsView, StreamFrom, StreamMessage, StreamQuery, StreamRecord};
use task_events::TaskId;

use super::create::{ended, judge};
use super::events::line;
use super::screen::Screen;
use super::{Common, Failure, Output, print_line, unwritten};

/// Follows a task to its end, or for so long.
pub async fn run(task: TaskId, wait_ms: Option<u64>, common: &Common) -> Result<(), Failure> {
    let client = common.client()?;
    let past = client.events(task).await.map_err(|error| Failure::call(error, ""))?;
    let mut watch = Watch { common, partition: past.as_of.partition, next: 0 };
    if let Err(why) = watch.history(&past) {
        return unwritten(why);
    }
    let from = StreamFrom::Offset { partition: past.as_of.partition, offset: past.as_of.offset };
    let query = StreamQuery { from, task: Some(task), all_verdicts: true, ..StreamQuery::default() };
    // The stream only shows; whether the task has ended is the task's own word.
    let view = {
        let end = Box::pin(ended(&client, task, wait_ms));
        match select(end, Box::pin(watch.live(&client, &query))).await {
            Either::Left((view, _)) => view?,
            Either::Right((Ok(()), end)) => end.await?,
            Either::Right((Err(why), _)) => return unwritten(why),
        }
    };
    let all = client.events(task).await.map_err(|error| Failure::call(error, ""))?;
    if let Err(why) = watch.history(&all) {
        return unwritten(why);
    }
    judge(&view)
}

struct Watch<'a> {
    common: &'a Common,
    partition: u16,
    next: u64,
}

impl Watch<'_> {
    fn history(&mut self, events: &EventsView) -> std::io::Result<()> {
        for EventView { offset, broker_time, verdict, reason, event } in events.events.clone() {
            let (partition, offset) = (self.partition, offset);
            self.show(&StreamRecord { partition, offset, broker_time, verdict, reason, event })?;
        }
        Ok(())
    }

    // Until the stream ends, for whatever reason; an error only if what it says cannot be written.
    async fn live(&mut self, client: &Client, query: &StreamQuery) -> std::io::Result<()> {
        let Ok(messages) = client.events_stream(query).await else { return Ok(()) };
        let mut messages = pin!(messages);
        while let Some(Ok(StreamMessage::Record { record, .. })) = messages.next().await {
            self.show(&record)?;
        }
        Ok(())
    }

    fn show(&mut self, record: &StreamRecord) -> std::io::Result<()> {
        if record.offset < self.next {
            return Ok(());
        }
        self.next = record.offset + 1;
        match self.common.output {
            Output::Table => print_line(&line(record, true, &Screen::here())),
            Output::Json => print_line(&serde_json::to_string(record)?),
        }
    }
}
