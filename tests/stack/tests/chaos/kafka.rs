//! The event track goes away in five ways. Nothing can be decided then; what was promised is kept, and
//! what is unknown is called so (faults.md rows 2, 21 to 23, 25; case 9 from the field).

use std::time::Duration;

use event_log::fault_proxy::Fault;
use service_kit::{Clock as _, SystemClock};
use stack_tests::{Drill, Engine, Way, until};

use crate::{PARTITIONS, tell};

const UNKNOWN: &str = "outcome_unknown";

/// An append without an answer is unknown before the session is over: its owner is still there to claim anew.
const SOONER: [(&str, &str); 2] = [("log.delivery_timeout_ms", "2000"), ("log.session_timeout_ms", "8000")];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_to_kafka_what_was_answered_is_there_and_goes_on() {
    let mut drill = Drill::start(PARTITIONS, Way::Proxied, &SOONER).await;
    killed(&mut drill).await;
    frozen(&mut drill).await;
    answers_lost(&mut drill).await;
    slow(&mut drill).await;
    reset(&mut drill).await;
    drill.end().await;
}

async fn killed(drill: &mut Drill) {
    let load = drill.load();
    drill.answered(40).await;
    let before = drill.alarms(UNKNOWN).await;
    drill.stack.kill(Engine::Kafka).await;
    drill.felt(UNKNOWN, before).await;
    let stack = drill.stack;
    tokio::task::spawn_blocking(move || stack.restart(Engine::Kafka)).await.expect("it is back");
    drill.answered(40).await;
    let took = drill.finish(load).await;
    tell("Kafka killed", drill, took);
}

async fn frozen(drill: &mut Drill) {
    let load = drill.load();
    for _ in 0..2 {
        drill.answered(30).await;
        let before = drill.alarms(UNKNOWN).await;
        drill.stack.freeze(Engine::Kafka);
        drill.felt(UNKNOWN, before).await;
        drill.stack.thaw(Engine::Kafka);
    }
    drill.answered(30).await;
    let took = drill.finish(load).await;
    tell("Kafka frozen twice", drill, took);
}

// The broker has every record, nobody is told: no record may be accepted twice.
async fn answers_lost(drill: &mut Drill) {
    let load = drill.load();
    drill.answered(30).await;
    let before = drill.alarms(UNKNOWN).await;
    let proxy = drill.stack.proxy(Engine::Kafka);
    let swallowed = proxy.swallowed();
    proxy.set(Fault::DropResponses);
    drill.felt(UNKNOWN, before).await;
    proxy.set(Fault::None);
    assert!(proxy.swallowed() > swallowed, "nothing was lost");
    drill.answered(30).await;
    let took = drill.finish(load).await;
    tell("answers of Kafka lost", drill, took);
}

async fn slow(drill: &mut Drill) {
    const BY: Duration = Duration::from_millis(100);
    let proxy = drill.stack.proxy(Engine::Kafka);
    let load = drill.load();
    proxy.set(Fault::Delay { by: BY, jitter: BY });
    let held_up = proxy.held_up();
    drill.answered(10).await;
    // There and back of an append: it is felt in the answer.
    let began = SystemClock.boot_ms();
    drill.answered(1).await;
    drill.answered(20).await;
    let took = SystemClock.boot_ms() - began;
    assert!(proxy.held_up() > held_up && took >= 2 * BY.as_millis() as u64, "20 creates within {took} ms");
    proxy.set(Fault::None);
    let took = drill.finish(load).await;
    tell("Kafka slow", drill, took);
}

// Connections are reset again and again, never for long.
async fn reset(drill: &mut Drill) {
    let proxy = drill.stack.proxy(Engine::Kafka);
    let load = drill.load();
    for _ in 0..5 {
        let torn = proxy.torn();
        proxy.set(Fault::Reset);
        until("connections are reset", || async { (proxy.torn() > torn + 3).then_some(()) }).await;
        proxy.set(Fault::None);
        drill.answered(8).await;
    }
    let took = drill.finish(load).await;
    tell("connections to Kafka reset", drill, took);
}
