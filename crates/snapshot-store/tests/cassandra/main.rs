//! The Cassandra adapter against a real node, which `scripts/cassandra.sh` starts for this test process.

mod kit;

mod chunks;
mod faults;
mod migrations;
mod mutations;
mod secure;
mod tables;

use kit::Cassandra;

snapshot_store::conformance_suite!(Cassandra);
snapshot_store::durability_suite!(Cassandra);
