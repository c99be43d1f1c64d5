//! Engines that want TLS, users and passwords: every program gets in by the same settings, and tells
//! nobody the password.

use std::process::Command;

use rest_client::Client;
use stack_control::{Member, program_beside};
use stack_tests::{Engine, Scene, Stack};

use crate::load::{Working, all_succeed, request};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_tls_and_passwords_tasks_flow_and_no_password_is_told() {
    let stack = tokio::task::spawn_blocking(Stack::secure).await.expect("the engines");
    let scene = Scene::on(&stack, 2, 1, &[]).await;
    let mut cluster = scene.start().await;
    let urls = cluster.urls();
    let worker = Working::start(&urls, &scene.plan.dir.join("outbox"));
    let client = Client::new(&urls[0]).expect("a URL");
    let created = client.create(&request("fail-once"), Some("secured")).await.expect("created");
    all_succeed(&urls[0], [created.task_id]).await;
    worker.stop().await;

    let password_of = |engine| {
        let file = stack.told(engine, "password_file");
        std::fs::read_to_string(file).expect("the password's file").trim().to_owned()
    };
    // A new node of Cassandra has a stock user whose password is the engine's name.
    let passwords = [Engine::Kafka, Engine::Redis].map(password_of);
    let mut said = Vec::new();
    for member in [Member::Coordinator(1), Member::TaskEngine, Member::AutoReplay] {
        let id = cluster.member(member).expect("it runs").id();
        said.push(std::fs::read_to_string(format!("/proc/{id}/cmdline")).expect("its arguments"));
        let program = program_beside(member.program()).expect("it is built");
        let printed = Command::new(program).arg("--print-config").envs(scene.plan.environment()).output();
        said.push(String::from_utf8_lossy(&printed.expect("it starts").stdout).into_owned());
    }
    cluster.stop().await.expect("a clean end");
    for entry in std::fs::read_dir(&scene.plan.dir).expect("what they said").flatten() {
        said.push(std::fs::read_to_string(entry.path()).unwrap_or_default());
    }
    for password in &passwords {
        assert!(password.len() > 16, "a password is there");
        assert!(said.iter().all(|text| !text.contains(password)), "a password was told");
    }
    assert!(said.iter().any(|text| text.contains("SCRAM-SHA-512")), "the log's client says how it gets in");
}
