//! The suite as separate processes on real Kafka, Cassandra and Redis: tasks flow, coordinators die and
//! are restarted, engines that are not as they must be are refused.

mod flow;
mod load;
mod proof;
mod restarts;
mod secured;
