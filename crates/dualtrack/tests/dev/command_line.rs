//! The command line as a whole: help, completions, profiles, settings, readers that go away.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use crate::kit::{Dev, Said, program};

fn said(command: &mut Command) -> Said {
    command.output().expect("the program starts").into()
}

/// Every command below this one, by its help.
fn commands(path: &[String], all: &mut Vec<(Vec<String>, String)>) {
    let help = said(program().args(path).arg("--help")).ended(0).out;
    let mut names = Vec::new();
    let below = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    for line in below.take_while(|line| !line.is_empty()) {
        // Two blanks before a name; the lines of a description go on further to the right.
        if let Some(name) = line.strip_prefix("  ").filter(|line| !line.starts_with(' ')) {
            names.push(name.split(' ').next().expect("a name").to_owned());
        }
    }
    for name in names.iter().filter(|name| *name != "help") {
        commands(&[path, std::slice::from_ref(name)].concat(), all);
    }
    if names.is_empty() {
        all.push((path.to_vec(), help));
    }
}

#[test]
fn every_command_has_an_example_and_completions_know_it() {
    let mut all = Vec::new();
    commands(&[], &mut all);
    assert!(all.len() > 20, "{all:?}");
    let shells = ["bash", "zsh", "fish", "elvish", "powershell"];
    let scripts = shells.map(|shell| said(program().args(["completions", shell])).ended(0).out);
    for (path, help) in &all {
        assert!(help.contains("Example"), "dualtrack {} has no example:\n{help}", path.join(" "));
        let name = path.last().expect("a name");
        assert!(scripts.iter().all(|script| script.contains(name.as_str())), "{name} is missing in completions");
    }
}

#[test]
fn profiles_name_servers_and_errors_name_profiles() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("dualtrack/profiles.toml");
    let ask = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = program();
        command.env("XDG_CONFIG_HOME", home.path()).args(["task", "show", "4194304"]).args(args);
        said(command.envs(variables.iter().copied()))
    };
    let none = ask(&["--profile", "prod"], &[]).ended(2);
    assert!(none.err.contains("profiles.toml") && none.err.contains("[profile.prod]"), "{}", none.err);
    std::fs::create_dir(home.path().join("dualtrack")).expect("a folder");
    std::fs::write(&file, "[profile.staging]\nurl = 'http://127.0.0.1:1'\n[profile.bad]\nurl = 'ftp://x'\n")
        .expect("a file");
    let wrong = ask(&["--profile", "prod"], &[]).ended(2);
    assert!(wrong.err.contains("there are: bad, staging"), "{}", wrong.err);
    let away = ask(&[], &[("DUALTRACK_PROFILE", "staging")]).ended(4);
    for word in ["http://127.0.0.1:1", "\"staging\"", "profiles.toml", "DUALTRACK_PROFILE", "dualtrack dev"] {
        assert!(away.err.contains(word), "{word} is missing in {}", away.err);
    }
    let flag = ask(&["--url", "http://127.0.0.1:2"], &[("DUALTRACK_URL", "http://127.0.0.1:3")]).ended(4);
    assert!(flag.err.contains(":2") && flag.err.contains("--url"), "{}", flag.err);
    let variable = ask(&[], &[("DUALTRACK_URL", "http://127.0.0.1:3")]).ended(4);
    assert!(variable.err.contains(":3") && variable.err.contains("variable DUALTRACK_URL"), "{}", variable.err);
    let bad = ask(&["--profile", "bad"], &[]).ended(2);
    assert!(bad.err.contains("ftp://x") && bad.err.contains("\"bad\""), "{}", bad.err);
}

#[test]
fn settings_are_checked_and_say_where_they_came_from() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("c.toml");
    std::fs::write(&file, "[coordinator]\nheartbeat_ms = 30000\n[lock]\nttl_ms = 70000\n").expect("a file");
    let file = file.to_str().expect("UTF-8");
    let config =
        |args: &[&str]| said(program().arg("config").args(args).env("DUALTRACK_COORDINATOR__LEASE_MS", "59000"));
    let check = config(&["check", "--config", file]).ended(2);
    for words in [
        "BROKEN  coordinator.lease_ms = 59000, coordinator.heartbeat_ms = 30000",
        "BROKEN  lock.ttl_ms = 70000, coordinator.lease_ms = 59000",
        "holds   coordinator.renew_ms",
    ] {
        assert!(check.out.contains(words), "{words} is missing in\n{}", check.out);
    }
    assert!(check.err.contains("2 of"), "{}", check.err);
    let set = ["--set", "coordinator.lease_ms=90000"];
    config(&[&["check", "--config", file][..], &set].concat()).ended(0);
    let print = config(&["print", "--config", file]).ended(0).out;
    for (key, from) in [
        ("lease_ms = 59000", "# variable DUALTRACK_COORDINATOR__LEASE_MS"),
        ("heartbeat_ms = 30000", file),
        ("proof_ms = 2000", "# default"),
    ] {
        let line = print.lines().find(|line| line.starts_with(key)).expect(key);
        assert!(line.contains(from), "{line}");
    }
    // What it prints is a file that says the same.
    let printed = dir.path().join("printed.toml");
    std::fs::write(&printed, &print).expect("a file");
    let again = config(&["print", "--json", "--config", printed.to_str().expect("UTF-8")]).ended(0).out;
    let again: serde_json::Value = serde_json::from_str(&again).expect("JSON");
    assert_eq!(
        (again["lock.ttl_ms"]["value"].as_u64(), again.as_object().map(|all| all.len() > 25)),
        (Some(70_000), Some(true))
    );
    assert!(config(&["print", "--set", "lock.ttl=1"]).ended(2).err.contains("ttl"));
    assert!(config(&["check", "--config", "/no/such.toml"]).ended(2).err.contains("/no/such.toml"));
}

/// Reads one line and goes away, as `head -1` does; the exit code and what was said.
fn head(command: &mut Command) -> (Option<i32>, String) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut out = BufReader::with_capacity(1, child.stdout.take().expect("piped"));
    out.read_line(&mut String::new()).expect("UTF-8");
    drop(out);
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("UTF-8");
    (child.wait().expect("it ended").code(), said)
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let dir = tempfile::tempdir().expect("a folder");
    let dev = Dev::start(&dir.path().join("data"), &["--partitions", "2"]);
    let task = dev.task(&["create", "--type", "t"]).ended(0).out;
    let tasks = dir.path().join("tasks.jsonl");
    std::fs::write(&tasks, "{\"task_type\":\"t\"}\n").expect("a file");
    let tasks = tasks.to_str().expect("UTF-8");
    for args in [
        &["completions", "bash"][..],
        &["--help"],
        &["task", "create", "--help"],
        &["config", "print"],
        &["config", "check"],
        &["dev", "--print-config"],
        &["version", "--url", &dev.url],
        &["task", "list", "--url", &dev.url],
        &["task", "list", "--all", "--output", "json", "--url", &dev.url],
        &["task", "show", &task, "--url", &dev.url],
        &["task", "watch", &task, "--url", &dev.url],
        &["task", "create", "--from", tasks, "--url", &dev.url],
        &["task", "create", "--from", tasks, "--output", "json", "--url", &dev.url],
        &["events", "tail", "--from", "start", "--url", &dev.url],
        &["queue", "list", "--url", &dev.url],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let said = said(program().args(args).stdout(full)).ended(1);
        assert!(said.err.contains("cannot write to standard output"), "{args:?}: {}", said.err);
    }
}

#[test]
fn numbers_below_zero_are_values_that_are_out_of_range() {
    for (args, words) in [
        (&["task", "create", "--type", "t", "--priority", "-1"][..], "0..=9"),
        (&["task", "create", "--type", "t", "--priority", "10"], "0..=9"),
        (&["task", "create", "--type", "t", "--max-retries", "-1"], "'-1' for '--max-retries"),
        (&["task", "create", "--type", "t", "--start-to-close", "-5s"], "no duration"),
        (&["task", "list", "--limit", "-1"], "1..=1000"),
        (&["worker", "exec", "--slots", "-1", "--", "true"], "'-1' for '--slots"),
        (&["worker", "http", "--url", "http://x", "--timeout", "-1s"], "no duration"),
    ] {
        let said = said(program().args(args)).ended(2);
        assert!(said.err.contains(words) && !said.err.contains("unexpected"), "{args:?}: {}", said.err);
    }
}

#[test]
fn what_a_newcomer_gets_wrong_is_told_with_the_remedy() {
    let bare = said(program().args(["task", "create", "--type", "t", "--payload", "Ada"])).ended(2);
    assert!(bare.err.contains(r#"--payload '"Ada"'"#), "{}", bare.err);
    let dir = tempfile::tempdir().expect("a folder");
    let dev = Dev::start(&dir.path().join("data"), &["--partitions", "2"]);
    let idle = ["--url", &dev.url, "--until-idle", "100ms", "--", "no-such-program"];
    let absent = said(program().args(["worker", "exec", "--type", "t"]).args(idle)).ended(0);
    assert!(absent.err.contains("no-such-program") && absent.err.contains("tasks fail until"), "{}", absent.err);
}

#[test]
fn a_program_without_a_server_says_its_own_version() {
    let none = said(program().args(["version", "--url", "http://127.0.0.1:1"])).ended(4);
    assert_eq!(none.out, format!("client {}", env!("CARGO_PKG_VERSION")));
    assert!(none.err.contains("127.0.0.1:1") && none.err.contains("dualtrack dev"), "{}", none.err);
    let json = said(program().args(["version", "--output", "json", "--url", "http://127.0.0.1:1"])).ended(4).out;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((json["client"].as_str(), json["server"].is_null()), (Some(env!("CARGO_PKG_VERSION")), true));
    let help = said(program().arg("--help")).ended(0).out;
    assert!(help.starts_with("Event-sourced, resumable, auditable task execution"), "{help}");
}

#[test]
fn a_reader_that_goes_away_is_nobodys_error() {
    let dir = tempfile::tempdir().expect("a folder");
    let dev = Dev::start(&dir.path().join("data"), &["--partitions", "2"]);
    let tasks = dir.path().join("tasks.jsonl");
    std::fs::write(&tasks, "{\"task_type\":\"t\"}\n".repeat(2_000)).expect("a file");
    let tasks = tasks.to_str().expect("UTF-8");
    for args in [
        &["completions", "bash"][..],
        &["config", "print"],
        &["task", "create", "--help"],
        &["task", "create", "--from", tasks, "--output", "json", "--url", &dev.url],
    ] {
        assert_eq!(head(program().args(args)), (Some(0), String::new()), "{args:?}");
    }
    // The import went on without its reader.
    let again = dev.task(&["create", "--from", tasks]).ended(0);
    assert!(again.out.starts_with("0 created, 2000 duplicate"), "{}", again.out);
}
