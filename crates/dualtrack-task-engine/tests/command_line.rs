//! The program by its command line; what it does on real engines is in tests/stack.

#[path = "../../service-host/tests/shared/program.rs"]
mod program;

const PROGRAM: &str = env!("CARGO_BIN_EXE_dualtrack-task-engine");

#[test]
fn it_takes_its_settings() {
    program::takes_its_settings(PROGRAM);
}

#[test]
fn it_refuses_a_password_that_others_can_read() {
    let dir = tempfile::tempdir().expect("a folder");
    program::refuses_an_open_password_file(PROGRAM, dir.path());
}
