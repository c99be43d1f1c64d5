//! Reading: one client with its own poll thread serves many tails, each partition at most once.
//! The thread polls and routes by partition; it never waits for a reader. A second tail of the
//! same partition gets a second lane.
//!
//! No stream consumers and no split queues: those can stall one partition for ever.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rdkafka::TopicPartitionList;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode;
use task_events::{Offset, PartitionId};

use super::config::{self, KafkaConfig};
use super::context::Quiet;
use super::convert::{error_of, record_of};
use super::positions;
use super::route::{Arrival, Route};
use crate::{LogError, OffsetRange};

/// How long one poll waits; closed tails are unassigned and lanes end within it, or so many records.
const POLL: Duration = Duration::from_millis(50);
const LOOK_EVERY: u32 = 64;

pub(super) type Client = BaseConsumer<Quiet>;

/// All lanes of a log.
pub(super) struct Lanes {
    config: KafkaConfig,
    lanes: Mutex<Vec<Arc<Lane>>>,
    stopped: Arc<AtomicBool>,
    /// The watchdog ends with its other end.
    _watchdog: std::sync::mpsc::Sender<()>,
}

/// One client and what it reads.
pub(super) struct Lane {
    pub client: Client,
    topic: String,
    routes: Mutex<BTreeMap<PartitionId, Arc<Route>>>,
    stopped: Arc<AtomicBool>,
    /// The client reported an offset out of range; which partition's it doesn't say.
    pub suspicious: AtomicBool,
}

impl Lanes {
    pub fn new(config: KafkaConfig) -> Arc<Self> {
        config::print("tail", &config.reader(config.fetch_wait));
        let (watchdog, stop) = std::sync::mpsc::channel();
        let lanes = Arc::new(Self { config, lanes: Mutex::default(), stopped: Arc::default(), _watchdog: watchdog });
        super::watch::start(Arc::downgrade(&lanes), stop);
        lanes
    }

    /// Opens a tail. Blocking.
    pub fn open(&self, partition: PartitionId, from: Offset) -> Result<(Arc<Lane>, Arc<Route>), LogError> {
        if self.stopped.load(Ordering::Acquire) {
            return Err(LogError::Unavailable("the log is closed".into()));
        }
        let (lane, route) = self.reserve(partition, from)?;
        let opened = lane.range(partition, self.config.request_timeout).and_then(|OffsetRange { start, end }| {
            if from < start || from > end {
                return Err(LogError::OutOfRange { partition, offset: from, start, end });
            }
            lane.assign(partition, from)
        });
        match opened {
            Ok(()) => Ok((lane, route)),
            Err(error) => {
                route.close();
                Err(error)
            }
        }
    }

    fn reserve(&self, partition: PartitionId, from: Offset) -> Result<(Arc<Lane>, Arc<Route>), LogError> {
        let route = Arc::new(Route::new(partition, from, self.config.tail_buffer_bytes));
        let mut lanes = self.lanes.lock();
        for lane in lanes.iter() {
            let mut routes = lane.routes.lock();
            if let std::collections::btree_map::Entry::Vacant(entry) = routes.entry(partition) {
                entry.insert(route.clone());
                return Ok((lane.clone(), route));
            }
        }
        let lane = Lane::start(&self.config, self.stopped.clone())?;
        lane.routes.lock().insert(partition, route.clone());
        lanes.push(lane.clone());
        Ok((lane, route))
    }

    pub fn all(&self) -> Vec<Arc<Lane>> {
        self.lanes.lock().clone()
    }

    pub fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Ends all readers; the threads close their clients by themselves.
    pub fn close(&self) {
        self.stopped.store(true, Ordering::Release);
        for lane in self.lanes.lock().drain(..) {
            for route in lane.routes() {
                route.fail(LogError::Unavailable("the log was closed".into()));
            }
        }
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.close();
    }
}

impl Lane {
    fn start(config: &KafkaConfig, stopped: Arc<AtomicBool>) -> Result<Arc<Self>, LogError> {
        let client = Client::from_config_and_context(&config.reader(config.fetch_wait), Quiet("tail"));
        let lane = Arc::new(Self {
            client: client.map_err(|e| error_of("cannot create a consumer", &e))?,
            topic: config.topic.clone(),
            routes: Mutex::default(),
            stopped,
            suspicious: AtomicBool::new(false),
        });
        let polled = lane.clone();
        let spawned = thread::Builder::new().name("kafka-tail".into()).spawn(move || {
            polled.run();
        });
        spawned.map_err(|e| LogError::Unavailable(format!("cannot start a tail's thread: {e}")))?;
        Ok(lane)
    }

    fn run(&self) {
        let mut taken = 0;
        while !self.stopped.load(Ordering::Acquire) {
            match self.client.poll(POLL) {
                Some(Ok(message)) => {
                    if let Some(record) = record_of(&message) {
                        self.deliver(record);
                    }
                    taken += 1;
                }
                Some(Err(error)) => {
                    self.failed(&error);
                    taken = LOOK_EVERY;
                }
                None => taken = LOOK_EVERY,
            }
            if taken >= LOOK_EVERY {
                self.drop_closed();
                taken = 0;
            }
        }
    }

    fn deliver(&self, record: crate::RawRecord) {
        let route = self.routes.lock().get(&record.partition).cloned();
        let Some(route) = route else { return };
        let (partition, offset) = (record.partition, record.offset);
        match route.push(record) {
            Arrival::Taken => {}
            Arrival::Full => self.pause(&route),
            Arrival::Again => {
                tracing::debug!(partition = partition.0, offset = offset.0, "record delivered twice, ignored");
            }
            Arrival::Gap { expected } => {
                tracing::warn!(
                    partition = partition.0,
                    offset = offset.0,
                    expected = expected.0,
                    "records left out by the client, read again"
                );
                if let Err(error) = self.reassign(partition, expected) {
                    route.fail(error);
                }
            }
        }
    }

    fn failed(&self, error: &KafkaError) {
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange) => {
                self.suspicious.store(true, Ordering::Release);
            }
            // Unknown topics and partitions too: the topic was proved when the log was opened, and
            // a broker that is starting says this of partitions it has.
            _ => tracing::warn!(client = "tail", %error, "kafka consumer error, reading goes on"),
        }
    }

    /// Takes partitions whose tail is gone off the client.
    fn drop_closed(&self) {
        let closed: Vec<PartitionId> =
            self.routes.lock().iter().filter(|(_, route)| route.is_closed()).map(|(partition, _)| *partition).collect();
        for partition in closed {
            // Not assigned at all is fine: opening may have been cut off before.
            let _ = self.client.incremental_unassign(&self.list(partition, None));
            self.routes.lock().remove(&partition);
        }
    }

    pub fn routes(&self) -> Vec<Arc<Route>> {
        self.routes.lock().values().cloned().collect()
    }

    fn assign(&self, partition: PartitionId, from: Offset) -> Result<(), LogError> {
        let list = self.list(partition, Some(from));
        self.client.incremental_assign(&list).map_err(|e| error_of("cannot assign", &e))
    }

    pub fn reassign(&self, partition: PartitionId, from: Offset) -> Result<(), LogError> {
        let _ = self.client.incremental_unassign(&self.list(partition, None));
        self.assign(partition, from)
    }

    fn pause(&self, route: &Route) {
        if let Err(error) = self.client.pause(&self.list(route.partition, None)) {
            tracing::warn!(partition = route.partition.0, %error, "partition not paused, its reader is slow");
        }
    }

    pub fn resume(&self, partition: PartitionId) {
        if let Err(error) = self.client.resume(&self.list(partition, None)) {
            tracing::warn!(partition = partition.0, %error, "partition not resumed");
        }
    }

    /// Start and end as of now. Blocking.
    pub fn range(&self, partition: PartitionId, timeout: Duration) -> Result<OffsetRange, LogError> {
        positions::range(&self.client, &self.topic, partition, timeout)
    }

    fn list(&self, partition: PartitionId, from: Option<Offset>) -> TopicPartitionList {
        positions::list(&self.topic, partition, from)
    }
}

/// For the watchdog.
pub(super) type WeakLanes = Weak<Lanes>;
