//! Engines that are not as they must be: every program refuses to start, and says what to set.

use std::process::{Command, Output};

use stack_control::{Member, Plan, program_beside};
use stack_tests::{Engine, Scene, Stack};

const MEMBERS: [Member; 3] = [Member::Coordinator(1), Member::TaskEngine, Member::AutoReplay];

fn ran(program: &str, arguments: &[&str], plan: &Plan) -> Output {
    let program = program_beside(program).expect("it is built");
    Command::new(program).args(arguments).envs(plan.environment()).output().expect("it starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn refuses(program: &str, plan: &Plan, words: &[&str]) {
    for arguments in [&["--listen", "127.0.0.1:0"][..], &["--check-config", "--live"]] {
        let output = ran(program, arguments, plan);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(3), "{program} {arguments:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{program} {arguments:?} does not say {word:?}: {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_against_the_contract_is_refused_with_what_to_set() {
    let scene = Scene::new(4, 1, &[]).await;
    scene.prepare().await;
    let topic = |verb: &str, more: &[(&str, &str)]| {
        let mut plan = scene.plan.clone();
        plan.more.extend(more.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        let output = ran("dualtrack", &["topic", verb], &plan);
        (output.status.code(), said(&output))
    };
    let (code, said) = topic("check", &[]);
    assert!(code == Some(0) && said.contains("as it must be, 4 partitions"), "{said}");
    let other = [("log.retention_days", "365")];
    for verb in ["check", "ensure"] {
        let (code, said) = topic(verb, &other);
        let wanted = "retention.ms = 7776000000 must be at least 31536000000";
        assert!(code == Some(3) && said.contains(wanted), "{verb}: {code:?} {said}");
    }
    let mut plan = scene.plan.clone();
    plan.more.insert("log.retention_days".to_owned(), "365".to_owned());
    plan.partitions = 8;
    for member in MEMBERS {
        let words = ["retention.ms = 7776000000", "at least 31536000000", "partitions = 4", "set it to 8"];
        refuses(member.program(), &plan, &words);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_topic_or_tables_nothing_starts() {
    let scene = Scene::new(2, 1, &[]).await;
    for member in MEMBERS {
        refuses(member.program(), &scene.plan, &[&scene.plan.topic]);
    }
    let made = ran("dualtrack", &["topic", "ensure"], &scene.plan);
    assert!(made.status.success() && said(&made).contains("made, 2 partitions"), "{}", said(&made));
    for member in MEMBERS {
        refuses(member.program(), &scene.plan, &["dualtrack store migrate"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_server_that_evicts_is_refused() {
    let scene = Scene::new(2, 1, &[]).await;
    scene.prepare().await;
    let policy = |policy: &str| {
        let url = Stack::shared().told(Engine::Redis, "url");
        let set = Command::new("redis-cli").args(["-u", &url, "config", "set", "maxmemory-policy", policy]).output();
        assert!(set.expect("redis-cli runs").status.success());
    };
    policy("allkeys-lru");
    let output = ran("dualtrack-coordinator", &["--check-config", "--live"], &scene.plan);
    policy("noeviction");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("maxmemory-policy = allkeys-lru") && said.contains("set it to noeviction"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_server_that_is_away_is_an_alarm_only() {
    let scene = Scene::new(2, 1, &[("lock.url", "redis://127.0.0.1:1")]).await;
    scene.prepare().await;
    let output = ran("dualtrack-coordinator", &["--check-config", "--live"], &scene.plan);
    let said = said(&output);
    assert!(output.status.success() && said.contains("ALARM") && said.contains("fenced by the log"), "{said}");
}
