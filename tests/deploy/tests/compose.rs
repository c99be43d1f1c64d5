//! The compose file decodes into the specification's types, and names settings, images of ours and files
//! that exist.

use std::collections::BTreeSet;

use compose_spec::Compose;
use deploy_checks::{documents, lost, root, text, variables};
use serde_json::Value;

fn compose() -> Value {
    documents("docker-compose.yml").remove(0)
}

fn services(compose: &Value) -> impl Iterator<Item = (&String, &Value)> {
    compose["services"].as_object().expect("services").iter()
}

fn program(service: &Value) -> Option<&str> {
    let ours = service["image"] == "dualtrack:dev";
    ours.then(|| service["command"][0].as_str().expect("a command"))
}

#[test]
fn it_is_a_compose_file_and_nothing_in_it_is_unknown() {
    let document = compose();
    let typed: Compose = serde_json::from_value(document.clone()).expect("a compose file");
    typed.validate_all().expect("names that are used are defined");
    let again = serde_json::to_value(&typed).expect("JSON");
    // The types write some things in another of their forms; what counts is that no key is dropped.
    let dropped: Vec<String> = lost(&document, &again).into_iter().filter(|path| !path.contains(" became ")).collect();
    assert_eq!(dropped, Vec::<String>::new());
}

#[test]
fn every_setting_is_one_of_the_program_that_gets_it() {
    let (document, suite) = (compose(), variables("dualtrack"));
    // The engines' settings are one block for all; a service ignores the sections of the others.
    let shared = document["x-engines"].as_object().expect("settings");
    let mut seen = BTreeSet::new();
    for (name, service) in services(&document) {
        let Some(program) = program(service) else { continue };
        seen.insert(program);
        let known = variables(program);
        for variable in service["environment"].as_object().expect("settings").keys() {
            let fine = known.contains(variable) || shared.contains_key(variable) && suite.contains(variable);
            assert!(fine, "{name}: {program} knows nothing of {variable}; it knows {known:?}");
        }
    }
    let all = ["dualtrack", "dualtrack-auto-replay", "dualtrack-coordinator", "dualtrack-task-engine"];
    assert_eq!(seen, BTreeSet::from(all));
}

#[test]
fn ports_are_published_on_loopback_and_lead_to_where_the_program_listens() {
    let document = compose();
    for (name, service) in services(&document) {
        for port in service["ports"].as_array().into_iter().flatten() {
            let port = port.as_str().expect("a port");
            assert!(port.starts_with("127.0.0.1:"), "{name}: {port} is open to everybody");
            let listen = service["environment"]["DUALTRACK_SERVICE__LISTEN"].as_str();
            let to = port.rsplit(':').next();
            assert!(program(service).is_none() || listen.and_then(|at| at.rsplit(':').next()) == to, "{name}: {port}");
        }
    }
}

#[test]
fn files_it_mounts_are_there() {
    let document = compose();
    for (name, service) in services(&document) {
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let from = volume.as_str().and_then(|volume| volume.split(':').next()).expect("a volume");
            assert!(!from.starts_with('.') || root().join(from).exists(), "{name}: {from}");
        }
    }
    assert!(root().join(document["x-program"]["build"]["dockerfile"].as_str().expect("a path")).exists());
}

#[test]
fn prometheus_asks_services_that_exist() {
    let document = compose();
    let prometheus = documents("deploy/prometheus/prometheus.yml").remove(0);
    let mut asked = BTreeSet::new();
    for job in prometheus["scrape_configs"].as_array().expect("jobs") {
        for target in job["static_configs"][0]["targets"].as_array().expect("targets") {
            let (host, port) = target.as_str().and_then(|target| target.split_once(':')).expect("HOST:PORT");
            let service = &document["services"][host];
            let listen = service["environment"]["DUALTRACK_SERVICE__LISTEN"].as_str().expect("it listens");
            assert_eq!(listen.rsplit(':').next(), Some(port), "{host}");
            asked.insert(host.to_owned());
        }
    }
    let serving = services(&document).filter(|(_, service)| service["restart"] == "unless-stopped");
    let ours: BTreeSet<String> =
        serving.filter(|(_, service)| program(service).is_some()).map(|(name, _)| name.clone()).collect();
    assert_eq!(asked, ours);
}

#[test]
fn the_image_holds_every_program_and_no_root() {
    let document = compose();
    let dockerfile = text("deploy/Dockerfile");
    for program in services(&document).filter_map(|(_, service)| program(service)) {
        assert!(dockerfile.contains(&format!("-p {program}")), "{program} is not built");
        assert!(dockerfile.contains(&format!("-o /out/{program} {program}")), "{program} is not copied");
    }
    let user = dockerfile.lines().rev().find_map(|line| line.strip_prefix("USER ")).expect("a user");
    assert_ne!(user.split(':').next(), Some("0"));
    assert_ne!(user, "root");
}
