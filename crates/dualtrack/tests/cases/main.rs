//! Cases from the field (what hurt users of systems like this one) against the whole product: `Dev`
//! in this process or the program itself, workers by the SDK over HTTP.
//!
//! Numbers are those of the cases; where one is scaled, the test says so.

#[allow(dead_code, reason = "shared by several targets, none of which needs all of it")]
mod book;
mod exec_children;
mod exec_codes;
mod exec_kit;
mod exec_limits;
mod exec_sizes;
mod exec_worker_gone;
mod frozen_coordinator;
mod frozen_worker;
mod http_worker;
#[allow(dead_code, reason = "shared by several targets, none of which needs all of it")]
mod kit;
mod long_handlers;
mod lost_workers;
mod one_death;
mod pages;
mod raw;
mod reviews;
mod slow_clients;
mod stale_worker;

/// Not a test: a worker process, when this binary was started as one.
#[test]
fn a_worker_process() {
    kit::work_if_told();
}
