//! Two releases of the program, the second of which knows rules 2: on one topic at the same time, and
//! on one folder in turn. Rules are activated only when nobody is left who does not know them, and the
//! older release stops where they begin.
//!
//! This target is built with the feature `rules-next`; `DUALTRACK_RULES_1` names the program built
//! without it, which `scripts/two-releases.sh` keeps.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use event_log::conformance::broker::Broker;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use patience::until;

#[path = "../dev/patience.rs"]
mod patience;

fn newer() -> Command {
    clean(Command::new(env!("CARGO_BIN_EXE_dualtrack")))
}

#[expect(clippy::disallowed_methods, reason = "two programs cannot be built by one call of cargo")]
fn older() -> Command {
    let path = std::env::var_os("DUALTRACK_RULES_1");
    let path = path.expect("DUALTRACK_RULES_1 must name the program of this release: see scripts/two-releases.sh");
    clean(Command::new(path))
}

fn clean(mut program: Command) -> Command {
    program
        .env_remove("DUALTRACK_RULES_1")
        .env_remove("DUALTRACK_URL")
        .env_remove("DUALTRACK_PROFILE")
        .env_remove("DUALTRACK_LOG");
    program
}

/// A process of `dualtrack dev`; killed when it is dropped.
struct Dev {
    child: Child,
    url: String,
    errors: PathBuf,
}

impl Dev {
    /// Starts one and waits until it listens.
    fn start(mut program: Command, data: &Path, settings: &[String]) -> Self {
        let errors = data.with_extension("stderr");
        program.args(["dev", "--listen", "127.0.0.1:0", "--partitions", "4", "--data"]).arg(data);
        settings.iter().for_each(|setting| {
            program.args(["--set", setting.as_str()]);
        });
        let file = File::create(&errors).expect("a file");
        let mut child = program.stdout(Stdio::piped()).stderr(file).spawn().expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let said = lines.next().and_then(Result::ok).unwrap_or_default();
        let url = said.split([' ', ',']).find(|word| word.starts_with("http://")).map(str::to_owned);
        // It goes on talking, and must find somebody who listens.
        std::thread::spawn(move || lines.for_each(drop));
        let mut dev = Self { child, url: String::new(), errors };
        dev.url = url.unwrap_or_else(|| panic!("it did not start: {}", dev.log()));
        dev
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.errors).expect("readable")
    }

    fn end(mut self, signal: Signal) -> Option<i32> {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a pid")).expect("not 0");
        kill_process(pid, signal).expect("it is there");
        self.child.wait().expect("it ended").code()
    }

    /// Waits until it ends by itself; its exit code and what it said.
    fn stopped(mut self) -> (Option<i32>, String) {
        let ended = until("its end", || self.child.try_wait().expect("a child"));
        (ended.code(), self.log())
    }

    /// `dualtrack ARGS` of the newer release against it: exit code, output, errors.
    fn ask(&self, args: &[&str]) -> (i32, String, String) {
        let output = newer().args(args).args(["--url", &self.url]).output().expect("the program starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        (output.status.code().expect("no signal"), text(&output.stdout), text(&output.stderr))
    }

    /// The newest rules that the members of a group know.
    fn known_by(&self, group: &str) -> Vec<u64> {
        let (_, out, _) = self.ask(&["rules", "show", "--output", "json"]);
        let view: Value = serde_json::from_str(&out).unwrap_or_default();
        let members = view["members"].as_array().cloned().unwrap_or_default();
        let of_group = members.iter().filter(|member| member["group"] == group);
        let mut known: Vec<u64> = of_group.filter_map(|member| member["rules_to"].as_u64()).collect();
        known.sort_unstable();
        known
    }

    // Partitions may still be on their way to it.
    fn works(&self) {
        until("a task", || {
            let (code, _, err) = self.ask(&["task", "create", "--type", "t", "--payload", "1"]);
            assert!(code == 0 || code == 4, "{err}");
            (code == 0).then_some(())
        });
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// Waits until nobody else is a member of any group.
fn alone(new: &Dev) {
    for group in ["coordinator", "task-engine", "auto-replay"] {
        until(group, || (new.known_by(group) == [2]).then_some(()));
    }
}

// Partitions may be on their way from one owner to the next: asking again does no harm.
fn activate(dev: &Dev, version: &str) {
    until("active rules", || {
        let (code, out, err) = dev.ask(&["rules", "activate", version]);
        assert!(!err.contains("rules_"), "{err}");
        (code == 0).then(|| assert_eq!(out, format!("rules {version}: active")))
    });
}

fn stops_where_rules_2_begin(dev: Dev) {
    let (code, said) = dev.stopped();
    assert_eq!(code, Some(1), "{said}");
    // Whichever of its readers comes there first.
    assert!(said.contains("reader_stopped") || said.contains("unknown_rules"), "{said}");
    assert!(said.contains("rules 2 are active") && said.contains("install a "), "{said}");
}

#[test]
fn on_one_topic_they_are_activated_when_nobody_is_left_who_does_not_know_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let bootstrap = &Broker::shared().bootstrap;
    let kafka =
        ["log.kind=kafka".to_owned(), format!("log.bootstrap={bootstrap}"), "log.topic=two-releases".to_owned()];
    let new = Dev::start(newer(), &folder.path().join("new"), &kafka);
    until("a member", || (new.known_by("coordinator") == [2]).then_some(()));
    let old = Dev::start(older(), &folder.path().join("old"), &kafka);
    for group in ["coordinator", "task-engine", "auto-replay"] {
        until(group, || (new.known_by(group) == [1, 2]).then_some(()));
    }
    let (code, _, err) = new.ask(&["rules", "activate", "2"]);
    assert_ne!(code, 0);
    for part in
        ["rules_unsupported", "coordinator-1 of coordinator (up to 1)", "task-engine-1 of task-engine (up to 1)"]
    {
        assert!(err.contains(part), "{part:?} is not in {err}");
    }

    assert_eq!(old.end(Signal::TERM), Some(0));
    alone(&new);
    activate(&new, "2");
    let (_, out, _) = new.ask(&["rules", "show"]);
    assert!(out.starts_with("rules 2 are active\nthe server knows rules up to 2"), "{out}");

    stops_where_rules_2_begin(Dev::start(older(), &folder.path().join("old"), &kafka));
    // Who ends so stays a member until its session is over, in each group for itself.
    alone(&new);
    new.works();

    activate(&new, "2");
    assert!(new.ask(&["rules", "activate", "1"]).2.contains("rules_not_forward"), "there is no way back");
    assert!(new.ask(&["rules", "activate", "3"]).2.contains("knows rules up to 2"), "nor one into the unknown");
    assert_eq!(new.end(Signal::TERM), Some(0));
}

// After a clean end the newest checkpoint stands behind the record that activates the rules; after a
// crash the record itself is met.
#[test]
fn on_one_folder_the_older_release_stops_by_checkpoint_and_by_record() {
    for signal in [Signal::TERM, Signal::KILL] {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let new = Dev::start(newer(), &data, &[]);
        activate(&new, "2");
        new.works();
        new.end(signal);
        stops_where_rules_2_begin(Dev::start(older(), &data, &[]));
        let new = Dev::start(newer(), &data, &[]);
        new.works();
        let (_, out, _) = new.ask(&["rules", "show"]);
        assert!(out.starts_with("rules 2 are active"), "{out}");
    }
}
