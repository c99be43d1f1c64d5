//! The one idempotent producer of a process.
//!
//! An error returned by send itself means not sent; every delivery error means unknown. After any
//! unknown outcome or fatal error the producer is replaced, and what the old one still had on its
//! way is purged: all of it becomes unknown at once instead of arriving behind the back of
//! whoever claims again. Nothing is ever sent twice by us.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rdkafka::ClientContext;
use rdkafka::config::{FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::error::KafkaError;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _, ProducerContext, PurgeConfig};
use rdkafka::types::RDKafkaErrorCode;
use task_events::PartitionId;
use tokio::sync::oneshot;

use super::batch::{Batch, InFlight};
use super::config::{self, KafkaConfig};
use super::context;
use super::convert::{error_of, headers_of};
use crate::{AppendOutcome, LogError, OutRecord};

/// How long one poll waits; also how late a broken producer is noticed at most.
const POLL: Duration = Duration::from_millis(50);
/// Protocol overhead that counts towards the size limit: the broker's limit is for the whole
/// record batch (61 bytes) with the record's lengths, and a record must fit on its own.
const RECORD_OVERHEAD: usize = 128;

/// Producer of a log, replaced when its outcome is in doubt.
pub(super) struct Producer {
    config: KafkaConfig,
    room: Arc<InFlight>,
    current: Mutex<Current>,
}

struct Current {
    client: Option<Arc<Client>>,
    generation: u64,
    closed: bool,
}

type Client = BaseProducer<Context>;

struct Context {
    broken: AtomicBool,
}

impl Producer {
    pub fn new(config: KafkaConfig) -> Result<Arc<Self>, LogError> {
        config::print("producer", &config.producer());
        let room = InFlight::new(config.max_in_flight, config.max_in_flight_bytes);
        let current = Mutex::new(Current { client: None, generation: 0, closed: false });
        let producer = Arc::new(Self { config, room, current });
        producer.replace(&mut producer.current.lock())?;
        Ok(producer)
    }

    /// Hands a batch over, in the order of the calls. The answer comes through the channel.
    pub fn append(self: &Arc<Self>, partition: PartitionId, batch: &[OutRecord], tx: oneshot::Sender<AppendOutcome>) {
        let refuse = |tx: oneshot::Sender<AppendOutcome>, reason| drop(tx.send(AppendOutcome::NotSent(reason)));
        let bytes = match self.size(batch) {
            Ok(bytes) => bytes,
            Err(reason) => return refuse(tx, reason),
        };
        let mut current = self.current.lock();
        if current.closed {
            return refuse(tx, "the log is closed".into());
        }
        if current.client.as_ref().is_none_or(|client| client.context().broken.load(Ordering::Acquire))
            && let Err(error) = self.replace(&mut current)
        {
            return refuse(tx, error.to_string());
        }
        let Some(client) = current.client.clone() else { return refuse(tx, "there is no producer".into()) };
        if let Err(reason) = self.room.take(batch.len(), bytes) {
            return refuse(tx, reason);
        }
        self.send(&client, partition, batch, &Batch::new(batch.len(), bytes, self.room.clone(), tx));
    }

    fn send(&self, client: &Client, partition: PartitionId, batch: &[OutRecord], state: &Arc<Batch>) {
        for (sent, record) in batch.iter().enumerate() {
            let out = BaseRecord::with_opaque_to(&self.config.topic, state.clone())
                .partition(i32::from(partition.0))
                .key(record.key.as_ref())
                .payload(record.value.as_ref())
                .headers(headers_of(record));
            let Err((error, _)) = client.send(out) else { continue };
            if error.rdkafka_error_code() == Some(RDKafkaErrorCode::Fatal) {
                client.context().broken.store(true, Ordering::Release);
            }
            if sent == 0 {
                return state.not_sent(format!("send: {error}"));
            }
            // The first part is on its way and the rest isn't: nobody knows which will arrive.
            client.context().broken.store(true, Ordering::Release);
            return state.settle(batch.len() - sent + 1, Some(format!("send after {sent} records: {error}")));
        }
        state.settle(1, None);
    }

    fn size(&self, batch: &[OutRecord]) -> Result<usize, String> {
        let mut total = 0;
        for record in batch {
            let headers: usize = record.headers.iter().map(|(name, value)| name.len() + value.len() + 8).sum();
            let bytes = record.key.len() + record.value.len() + headers + RECORD_OVERHEAD;
            if bytes > self.config.max_record_bytes {
                return Err(format!("record of {bytes} bytes exceeds the limit of {}", self.config.max_record_bytes));
            }
            total += bytes;
        }
        Ok(total)
    }

    /// Builds a new client and lets the old one go.
    fn replace(self: &Arc<Self>, current: &mut Current) -> Result<(), LogError> {
        let context = Context { broken: AtomicBool::new(false) };
        let client = Client::from_config_and_context(&self.config.producer(), context);
        let client = Arc::new(client.map_err(|e| error_of("cannot create the producer", &e))?);
        current.generation += 1;
        let (pool, polled, generation) = (Arc::downgrade(self), client.clone(), current.generation);
        let run = move || {
            while !polled.context().broken.load(Ordering::Acquire) {
                polled.poll(POLL);
            }
            // Replaced by the next append or here, whoever comes first; and always before the
            // purge answers those who wait, so that they claim again through the new one.
            if let Some(pool) = pool.upgrade() {
                pool.replace_if(generation);
            }
            retire(&polled);
        };
        let spawned = thread::Builder::new().name("kafka-producer".into()).spawn(run);
        spawned.map_err(|e| LogError::Unavailable(format!("cannot start the producer's thread: {e}")))?;
        if let Some(old) = current.client.replace(client) {
            old.context().broken.store(true, Ordering::Release);
            tracing::warn!(generation = current.generation, "kafka producer replaced");
        }
        Ok(())
    }

    fn replace_if(self: &Arc<Self>, generation: u64) {
        let mut current = self.current.lock();
        if current.generation == generation
            && !current.closed
            && let Err(error) = self.replace(&mut current)
        {
            tracing::error!(%error, "kafka producer not replaced, tried again with the next append");
            current.client = None;
        }
    }

    /// Takes no more appends and waits until all are answered; `false`: some are still open at
    /// the deadline and become unknown. Blocking.
    pub fn close(&self, deadline: Duration) -> bool {
        let client = {
            let mut current = self.current.lock();
            current.closed = true;
            current.client.take()
        };
        let Some(client) = client else { return self.room.records() == 0 };
        let flushed = client.flush(deadline).is_ok();
        client.context().broken.store(true, Ordering::Release);
        flushed
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        if let Some(client) = self.current.get_mut().client.take() {
            client.context().broken.store(true, Ordering::Release);
        }
    }
}

/// Gives up what is on its way and answers those who wait. Ends on the producer's own thread.
fn retire(client: &Client) {
    client.purge(PurgeConfig::default().queue().inflight());
    while client.in_flight_count() > 0 {
        client.poll(POLL);
    }
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        context::log("producer", level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(client = "producer", %error, reason, "kafka client error");
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::Fatal) {
            self.broken.store(true, Ordering::Release);
        }
    }
}

impl ProducerContext for Context {
    type DeliveryOpaque = Arc<Batch>;

    fn delivery(&self, result: &DeliveryResult<'_>, batch: Arc<Batch>) {
        let unknown = result.as_ref().err().map(|(error, _)| format!("delivery: {error}"));
        if unknown.is_some() {
            self.broken.store(true, Ordering::Release);
        }
        batch.settle(1, unknown);
    }
}
