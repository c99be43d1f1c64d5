//! What every service program does with its arguments, for the tests of each of them.

use std::path::Path;
use std::process::{Command, Output};

fn run(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("DUALTRACK_")) {
            command.env_remove(name);
        }
    }
    let Output { status, stdout, stderr } =
        command.args(arguments).envs(environment.iter().copied()).output().expect("it starts");
    (status.code(), String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr))
}

/// Settings, secrets, exit codes.
pub fn takes_its_settings(program: &str) {
    let (code, said) = run(program, &["--print-config"], &[("DUALTRACK_LOG__PASSWORD", "obviously-fake")]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("# variable DUALTRACK_LOG__PASSWORD") && !said.contains("obviously-fake"), "{said}");

    let (code, said) = run(program, &["--set", "store.password=obviously-fake"], &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("store.password_file") && !said.contains("obviously-fake"), "{said}");

    let (code, said) = run(program, &["--check-config", "--set", "log.min_insync=4"], &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("BROKEN  log.min_insync = 4, log.replication = 3") && said.contains("1 of "), "{said}");

    let (code, said) = run(program, &["--listen", "0.0.0.0:0"], &[]);
    assert!(code == Some(2) && said.contains("service.insecure"), "{said}");

    // Variables of other programs' sections are no errors, those of none are.
    let (code, said) = run(program, &["--check-config"], &[("DUALTRACK_DEV__PARTITIONS", "3")]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(program, &["--check-config"], &[("DUALTRACK_LOGG__TOPIC", "t")]);
    assert!(code == Some(2) && said.contains("logg"), "{said}");

    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let (code, said) = run(program, &["--listen", &address], &[]);
    assert!(code == Some(1) && said.contains(&address) && said.contains("service.listen"), "{said}");
}

/// A password's file that others can read stops it before anything is connected.
pub fn refuses_an_open_password_file(program: &str, dir: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let file = dir.join("password");
    std::fs::write(&file, "obviously-fake\n").expect("a file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("its mode");
    let file = file.to_str().expect("UTF-8");
    let set = [format!("log.password_file={file}"), "log.user=u".to_owned(), "log.bootstrap=127.0.0.1:1".to_owned()];
    let mut arguments = vec!["--listen", "127.0.0.1:0"];
    arguments.extend(set.iter().flat_map(|set| ["--set", set]));
    let (code, said) = run(program, &arguments, &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(file) && said.contains("chmod 600") && !said.contains("obviously-fake"), "{said}");
}
