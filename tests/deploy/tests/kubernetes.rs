//! The manifests decode into the API's own types and lose nothing on the way, fit each other, and name
//! settings, commands and paths that the programs have.

use std::collections::{BTreeMap, BTreeSet};

use deploy_checks::{documents, lost, root, text, variables};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Container, Namespace, PodSpec, PodTemplateSpec, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const FOLDER: &str = "deploy/kubernetes";

#[derive(Default)]
struct Manifests {
    pods: BTreeMap<String, PodTemplateSpec>,
    services: Vec<Service>,
    budgets: Vec<PodDisruptionBudget>,
    policies: Vec<NetworkPolicy>,
    settings: BTreeMap<String, BTreeMap<String, String>>,
}

fn typed<T: Serialize + DeserializeOwned>(file: &str, document: &Value) -> T {
    let object: T = serde_json::from_value(document.clone()).unwrap_or_else(|error| panic!("{file}: {error}"));
    let again = serde_json::to_value(&object).expect("JSON");
    assert_eq!(lost(document, &again), Vec::<String>::new(), "{file} has fields that Kubernetes does not know");
    object
}

fn name(meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> String {
    meta.name.clone().expect("a name")
}

fn files() -> Vec<String> {
    let kustomization = documents(format!("{FOLDER}/kustomization.yaml")).remove(0);
    let listed = kustomization["resources"].as_array().expect("resources");
    listed.iter().map(|file| file.as_str().expect("a file").to_owned()).collect()
}

fn manifests() -> Manifests {
    let mut all = Manifests::default();
    for file in files() {
        for document in documents(format!("{FOLDER}/{file}")) {
            let kind = (document["apiVersion"].as_str().unwrap_or(""), document["kind"].as_str().unwrap_or(""));
            match kind {
                ("v1", "Namespace") => drop(typed::<Namespace>(&file, &document)),
                ("v1", "ConfigMap") => {
                    let map: ConfigMap = typed(&file, &document);
                    all.settings.insert(name(&map.metadata), map.data.unwrap_or_default());
                }
                ("v1", "Service") => all.services.push(typed(&file, &document)),
                ("apps/v1", "StatefulSet") => {
                    let set: StatefulSet = typed(&file, &document);
                    all.pods.insert(name(&set.metadata), set.spec.expect("a spec").template);
                }
                ("apps/v1", "Deployment") => {
                    let deployment: Deployment = typed(&file, &document);
                    all.pods.insert(name(&deployment.metadata), deployment.spec.expect("a spec").template);
                }
                ("batch/v1", "Job") => {
                    let job: Job = typed(&file, &document);
                    all.pods.insert(name(&job.metadata), job.spec.expect("a spec").template);
                }
                ("policy/v1", "PodDisruptionBudget") => all.budgets.push(typed(&file, &document)),
                ("networking.k8s.io/v1", "NetworkPolicy") => all.policies.push(typed(&file, &document)),
                (version, kind) => panic!("{file}: nobody checks {version} {kind} yet"),
            }
        }
    }
    all
}

fn spec(pod: &PodTemplateSpec) -> &PodSpec {
    pod.spec.as_ref().expect("a pod has a spec")
}

fn containers(pod: &PodTemplateSpec) -> impl Iterator<Item = &Container> {
    spec(pod).init_containers.iter().flatten().chain(&spec(pod).containers)
}

fn labels(pod: &PodTemplateSpec) -> BTreeMap<String, String> {
    pod.metadata.as_ref().and_then(|meta| meta.labels.clone()).unwrap_or_default()
}

fn selects(selector: &BTreeMap<String, String>, pod: &PodTemplateSpec) -> bool {
    let labels = labels(pod);
    selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

fn matched(selector: Option<&LabelSelector>) -> BTreeMap<String, String> {
    selector.and_then(|selector| selector.match_labels.clone()).unwrap_or_default()
}

#[test]
fn every_file_of_the_folder_is_applied() {
    let there: BTreeSet<String> = std::fs::read_dir(root().join(FOLDER))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .filter(|file| file != "kustomization.yaml")
        .collect();
    assert_eq!(files().into_iter().collect::<BTreeSet<_>>(), there);
}

#[test]
fn settings_are_settings_of_the_program_that_gets_them() {
    let (all, suite) = (manifests(), variables("dualtrack"));
    for (owner, pod) in &all.pods {
        for container in containers(pod) {
            let program = container.command.as_ref().and_then(|words| words.first()).expect("a command");
            let known = variables(program);
            let mut given: Vec<&String> = container.env.iter().flatten().map(|env| &env.name).collect();
            for source in container.env_from.iter().flatten() {
                let map = &source.config_map_ref.as_ref().expect("a map").name;
                let shared = all.settings.get(map).unwrap_or_else(|| panic!("{owner}: no map {map}"));
                // A map is for all services; each ignores the sections of the others.
                given.extend(shared.keys().filter(|variable| !suite.contains(*variable) || known.contains(*variable)));
            }
            let unknown: Vec<&&String> = given.iter().filter(|variable| !known.contains(**variable)).collect();
            assert!(unknown.is_empty(), "{owner}: {program} knows nothing of {unknown:?}; it knows {known:?}");
        }
    }
}

#[test]
fn ports_and_probes_are_those_of_the_programs() {
    let served: Value = serde_json::from_str(&text("schemas/openapi/dualtrack.json")).expect("JSON");
    for (owner, pod) in manifests().pods {
        for container in &spec(&pod).containers {
            let listen = container.env.iter().flatten().find(|env| env.name == "DUALTRACK_SERVICE__LISTEN");
            let Some(listen) = listen.and_then(|env| env.value.as_deref()) else {
                assert!(container.ports.is_none(), "{owner} has ports and listens nowhere");
                continue;
            };
            let port = listen.rsplit(':').next().and_then(|port| port.parse::<i32>().ok()).expect("a port");
            let named = container.ports.iter().flatten().next().expect("a port");
            assert_eq!((named.container_port, named.name.as_deref()), (port, Some("http")), "{owner}");
            let probes = [&container.startup_probe, &container.liveness_probe, &container.readiness_probe];
            for probe in probes {
                let get = probe.as_ref().and_then(|probe| probe.http_get.as_ref()).expect("an HTTP probe");
                assert_eq!(get.port, IntOrString::String("http".into()), "{owner}");
                let path = get.path.as_deref().expect("a path");
                assert!(served["paths"].get(path).is_some(), "{owner}: nothing answers {path}");
            }
        }
    }
}

#[test]
fn no_pod_has_rights_it_does_not_need() {
    for (owner, pod) in manifests().pods {
        let security = spec(&pod).security_context.as_ref().expect("a context");
        assert_eq!(security.run_as_non_root, Some(true), "{owner}");
        assert_eq!(spec(&pod).automount_service_account_token, Some(false), "{owner}");
        for container in containers(&pod) {
            let own = container.security_context.as_ref().expect("a context");
            let dropped = own.capabilities.as_ref().and_then(|rights| rights.drop.clone()).unwrap_or_default();
            assert_eq!(dropped, ["ALL"], "{owner}");
            assert_eq!(own.allow_privilege_escalation, Some(false), "{owner}");
            assert_eq!(own.read_only_root_filesystem, Some(true), "{owner}");
            let resources = container.resources.as_ref().expect("resources");
            assert!(resources.requests.as_ref().is_some_and(|r| r.contains_key("cpu") && r.contains_key("memory")));
            assert!(resources.limits.as_ref().is_some_and(|limits| limits.contains_key("memory")), "{owner}");
            for env in container.env.iter().flatten() {
                let secret = env.name.ends_with("PASSWORD") || env.name.ends_with("USER");
                assert!(!secret || env.value.is_none(), "{owner}: {} stands in the manifest", env.name);
            }
            let volumes: BTreeSet<&str> =
                spec(&pod).volumes.iter().flatten().map(|volume| volume.name.as_str()).collect();
            for mount in container.volume_mounts.iter().flatten() {
                assert!(volumes.contains(mount.name.as_str()), "{owner}: no volume {}", mount.name);
            }
        }
    }
}

#[test]
fn secrets_are_those_the_runbook_makes() {
    let runbook = text("deploy/runbook.md");
    for (owner, pod) in manifests().pods {
        for env in containers(&pod).flat_map(|container| container.env.iter().flatten()) {
            let from = env.value_from.as_ref().and_then(|source| source.secret_key_ref.as_ref());
            let Some(from) = from else { continue };
            assert!(runbook.contains(&format!("secret generic {}", from.name)), "{owner}: {}", from.name);
            assert!(runbook.contains(&format!("--from-file={}", from.key)), "{owner}: {}", from.key);
        }
        for volume in spec(&pod).volumes.iter().flatten().filter_map(|volume| volume.secret.as_ref()) {
            let name = volume.secret_name.as_deref().expect("a name");
            assert!(runbook.contains(&format!("secret generic {name}")), "{owner}: {name}");
        }
    }
}

#[test]
fn selectors_find_what_they_are_for() {
    let all = manifests();
    let finds = |selector: &BTreeMap<String, String>| all.pods.values().filter(|pod| selects(selector, pod)).count();
    for service in &all.services {
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.clone()).expect("a selector");
        assert_eq!(finds(&selector), 1, "{}", name(&service.metadata));
    }
    for budget in &all.budgets {
        let spec = budget.spec.as_ref().expect("a spec");
        assert_eq!(finds(&matched(spec.selector.as_ref())), 1, "{}", name(&budget.metadata));
        assert_eq!(spec.max_unavailable, Some(IntOrString::Int(1)));
    }
    // Every service that stays has one.
    let staying = all.pods.values().filter(|pod| spec(pod).restart_policy.is_none()).count();
    assert_eq!(all.budgets.len(), staying);
    for policy in &all.policies {
        let selector = policy.spec.as_ref().map(|spec| matched(spec.pod_selector.as_ref())).unwrap_or_default();
        assert!(finds(&selector) > 0, "{} is for nobody", name(&policy.metadata));
    }
}

#[test]
fn the_network_lets_through_what_the_settings_name() {
    let all = manifests();
    let engines = all.policies.iter().find(|policy| name(&policy.metadata) == "dualtrack-engines").expect("a policy");
    let open: BTreeSet<i32> = engines
        .spec
        .iter()
        .flat_map(|spec| spec.egress.iter().flatten())
        .flat_map(|rule| rule.ports.iter().flatten())
        .filter_map(|port| match &port.port {
            Some(IntOrString::Int(number)) => Some(*number),
            Some(IntOrString::String(_)) | None => None,
        })
        .collect();
    for (key, value) in all.settings.values().flatten() {
        let address = ["BOOTSTRAP", "CONTACT_POINTS", "URL", "ENDPOINT"].iter().any(|end| key.ends_with(end));
        for one in value.split(',').filter(|_| address) {
            let port: i32 = one.rsplit(':').next().and_then(|port| port.parse().ok()).expect("an address with a port");
            assert!(open.contains(&port), "{key}: no policy lets {one} through");
        }
    }
}
