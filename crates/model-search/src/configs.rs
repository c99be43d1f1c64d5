//! The configurations searched. Budgets are chosen so that all of them together end within a test
//! run; [`bigger`] is for an evening.

use crate::config::Config;
use crate::world::B::{self, *};

/// A new task.
const BORN: &str = "claim | submit t1 max=1";
/// Its first attempt in its handler.
const LIVE: &str = "claim | submit t1 max=1 | assign t1 e=1 | start t1 e=1";
/// Its first attempt lost.
const LOST: &str = "claim | submit t1 max=1 | assign t1 e=1 | start t1 e=1 | lose t1 e=1 => LOST";
/// A closed task, its row still owed.
const DONE: &str = "claim | submit t1 max=1 | assign t1 e=1 | start t1 e=1 | complete t1 e=1 => SUCCESS";
/// The last loss the engine may forgive.
const OFTEN_LOST: &str = "claim | submit t1 max=1 \
    | assign t1 e=1 | lose t1 e=1 | approve t1 | plan t1 | retry t1 | assign t1 e=2 | lose t1 e=2 | approve t1 | plan t1 | retry t1 \
    | assign t1 e=3 | lose t1 e=3 | approve t1 | plan t1 | retry t1 | assign t1 e=4 | lose t1 e=4 | approve t1 | plan t1 | retry t1 \
    | assign t1 e=5 | lose t1 e=5 => LOST";

/// One task in every open state, without and after a failure, a loss, a replay and a cancel request.
const EVERYWHERE: &[&str] = &[
    "",
    "claim",
    BORN,
    "claim | submit t1 max=1 | cancel t1",
    "claim | submit t1 max=1 | assign t1 e=1",
    "claim | submit t1 max=1 | assign t1 e=1 | cancel t1",
    LIVE,
    "claim | submit t1 max=1 | assign t1 e=1 | start t1 e=1 | cancel t1",
    "claim | submit t1 max=1 | assign t1 e=1 | start t1 e=1 | fail t1 e=1 => FAILED",
    "claim | submit t1 max=1 | assign t1 e=1 | fail t1 e=1 | approve t1 => RETRY_APPROVED",
    "claim | submit t1 max=1 | assign t1 e=1 | fail t1 e=1 | approve t1 | plan t1 => REPLAY_PLANNED",
    "claim | submit t1 max=1 | assign t1 e=1 | fail t1 e=1 | approve t1 | plan t1 | retry t1 => RETRYING",
    "claim | submit t1 max=1 | assign t1 e=1 | fail t1 e=1 | approve t1 | plan t1 | retry t1 | assign t1 e=2 | start t1 e=2 | fail t1 e=2 => FAILED",
    LOST,
    "claim | submit t1 max=1 | assign t1 e=1 | lose t1 e=1 | approve t1 => RETRY_APPROVED",
    "claim | submit t1 max=1 | assign t1 e=1 | lose t1 e=1 | approve t1 | plan t1 => REPLAY_PLANNED",
    "claim | submit t1 max=1 | assign t1 e=1 | lose t1 e=1 | approve t1 | plan t1 | cancel t1 => REPLAY_PLANNED",
    "claim | submit t1 max=1 | assign t1 e=1 | lose t1 e=1 | approve t1 | plan t1 | retry t1 => RETRYING",
    DONE,
    "claim | submit t1 max=1 | assign t1 e=1 | complete t1 e=1 | replay t1 => RETRY_APPROVED",
    "claim | submit t1 max=1 | assign t1 e=1 | complete t1 e=1 | replay t1 | plan t1 | retry t1 | assign t1 e=2 => ASSIGNED",
    OFTEN_LOST,
];

/// Searched under the standard rules by `cargo test`.
pub fn standard() -> Vec<Config> {
    vec![
        Config::new("birth", &["claim"], &[(Create, 2), (Claim, 1), (Drop, 1)]),
        Config::new("birth and copies", &["claim"], &[(Create, 2), (Dup, 2), (Cancel, 1)]),
        Config::new("stale owner", &[BORN], &[(Claim, 1), (Freeze, 1), (Zombie, 2), (Fail, 1), (Complete, 1)]),
        Config::new("rival claims", &[BORN, LIVE], &[(Claim, 3), (Freeze, 1), (Zombie, 1), (Renew, 1)]),
        Config::new("duplicates", &[BORN], &[(Dup, 2), (Fail, 1), (Complete, 1), (Step, 1), (Lost, 1)]),
        Config::new("annotations", &[BORN], &[(Dup, 1), (Drop, 1), (Fail, 1), (Annotate, 1), (Overdue, 1)]),
        Config::new("late completion", &[BORN], &[(Fail, 1), (Complete, 2), (Lost, 1), (Freeze, 1), (Zombie, 1)]),
        Config::new("timeouts", &[BORN], &[(Timeout, 2), (Complete, 1), (Release, 1), (Overdue, 1), (Dup, 1)]),
        Config::new(
            "cancel",
            &[BORN],
            &[(Cancel, 1), (Fail, 1), (Complete, 1), (Lost, 1), (Timeout, 1), (Dup, 1), (Takeover, 1)],
        ),
        Config::new("losses", &[OFTEN_LOST], &[(Lost, 2), (Complete, 1), (Dup, 1), (Takeover, 1), (Claim, 1)]),
        Config::new(
            "lagging engine",
            &[BORN, LOST],
            &[(Freeze, 1), (Zombie, 2), (Fail, 1), (Takeover, 1), (Complete, 1)],
        ),
        Config::new("replay", &[DONE], &[(Replay, 2), (Freeze, 1), (Zombie, 1), (Complete, 1), (Claim, 1), (Dup, 1)]),
        Config::new("replay and review", &[DONE], &[(Replay, 2), (Review, 2), (Complete, 1), (Dup, 1), (Cancel, 1)]),
        Config::new("answers", &[BORN], &[(Fence, 1), (Claim, 1), (Freeze, 1), (Zombie, 2), (Lost, 1), (Complete, 1)]),
        Config::new(
            "answers and copies",
            &[LIVE],
            &[(Fence, 2), (Dup, 1), (Drop, 1), (Lost, 1), (Complete, 1), (Fail, 1)],
        ),
        Config::new("keys", &["claim"], &[(Create, 3), (Claim, 2), (Dup, 1), (Complete, 2)]).keyed(),
        Config::new(
            "keys and old states",
            &["claim"],
            &[(Create, 3), (Claim, 1), (Freeze, 1), (Zombie, 2), (Cancel, 1)],
        )
        .keyed(),
        Config::new("two tasks", &["claim"], &[(Create, 2), (Cancel, 1), (Complete, 2), (Drop, 1)]),
        Config::new("anyone", &["claim"], &[(Rogue, 8)]).rogue_only(),
        Config::new("anyone, anything wrong", EVERYWHERE, &[(Rogue, 2)]).rogue_only().twisted(),
        Config::new("anyone beside", EVERYWHERE, &[(Rogue, 1), (Complete, 1), (Replay, 1)]),
    ]
}

/// Where mutants are looked for: the standard ones, the quickest to catch something first.
pub fn mutation() -> Vec<Config> {
    let mut all = vec![abilities(), Config::new("one wrong record", EVERYWHERE, &[(Rogue, 1)]).rogue_only().twisted()];
    all.extend(standard());
    all
}

/// Everything an honest writer can do in every state, once: what must be accepted.
fn abilities() -> Config {
    let each: Vec<_> = B::ALL.iter().filter(|b| **b != Rogue).map(|b| (*b, 1)).collect();
    Config::new("every ability", EVERYWHERE, &each).deep(1)
}

/// Where writers without one of their duties are looked for: each has what one duty is about.
pub fn duties() -> Vec<Config> {
    vec![
        Config::new("duty: closed tasks", &[DONE], &[(Replay, 2), (Review, 1), (Complete, 1)]),
        Config::new("duty: closed tasks and claims", &[DONE], &[(Replay, 2), (Claim, 1), (Complete, 1)]),
        Config::new("duty: own claims", &[DONE], &[(Claim, 2), (Zombie, 1), (Renew, 1), (Replay, 1), (Review, 1)]),
        Config::new("duty: keys", &["claim"], &[(Create, 2), (Claim, 1), (Complete, 1)]).keyed(),
        Config::new(
            "duty: answers",
            &[LIVE],
            &[(Fence, 1), (Claim, 1), (Freeze, 1), (Zombie, 1), (Lost, 1), (Complete, 1)],
        ),
        Config::new("duty: late answers", &[LIVE], &[(Fence, 1), (Complete, 2), (Lost, 1), (Fail, 1)]),
    ]
}

/// Where it is asked what honest writers need among themselves: the smaller searches without a rogue.
pub fn honest() -> Vec<Config> {
    let small = ["birth", "stale owner", "rival claims", "duplicates", "annotations", "late completion", "timeouts"];
    let more = ["losses", "lagging engine", "replay and review", "two tasks"];
    standard().into_iter().filter(|c| small.contains(&c.name) || more.contains(&c.name)).collect()
}

/// Where it is asked what stands before a cell of the matrix.
pub fn probes() -> Vec<Config> {
    vec![Config::new("one wrong record", EVERYWHERE, &[(Rogue, 1)]).rogue_only().twisted()]
}

/// Searched by hand: `make search`. Minutes, and some gigabytes.
pub fn bigger() -> Vec<Config> {
    vec![
        Config::new("birth, two claims", &["claim"], &[(Create, 2), (Claim, 2), (Drop, 1), (Dup, 1)]),
        Config::new("stale owners", &[BORN], &[(Claim, 1), (Freeze, 2), (Zombie, 2), (Fail, 1), (Complete, 1)]),
        Config::new(
            "rival claims and copies",
            &[BORN, LIVE],
            &[(Claim, 3), (Freeze, 1), (Zombie, 1), (Dup, 1), (Complete, 1)],
        ),
        Config::new("duplicates", &[BORN], &[(Dup, 3), (Fail, 1), (Complete, 1), (Step, 1), (Lost, 1)]),
        Config::new(
            "annotations",
            &[BORN],
            &[(Dup, 1), (Drop, 1), (Fail, 1), (Annotate, 1), (Overdue, 2), (Takeover, 1)],
        ),
        Config::new(
            "late completion",
            &[BORN],
            &[(Fail, 1), (Complete, 2), (Lost, 2), (Claim, 1), (Freeze, 1), (Zombie, 1)],
        ),
        Config::new(
            "timeouts",
            &[BORN],
            &[(Timeout, 3), (Complete, 1), (Release, 2), (Overdue, 1), (Dup, 1), (Claim, 1)],
        ),
        Config::new(
            "cancel",
            &[BORN],
            &[(Cancel, 1), (Fail, 1), (Lost, 1), (Timeout, 1), (Claim, 1), (Freeze, 1), (Zombie, 1)],
        ),
        Config::new(
            "lagging engine",
            &[BORN, LOST],
            &[(Freeze, 2), (Zombie, 2), (Fail, 1), (Fatal, 1), (Takeover, 2), (Complete, 1), (Dup, 1)],
        ),
        Config::new("replays", &[DONE], &[(Replay, 3), (Freeze, 1), (Zombie, 1), (Complete, 2), (Claim, 1), (Dup, 1)]),
        Config::new(
            "replay, review, cancel",
            &[DONE],
            &[(Replay, 2), (Review, 2), (Complete, 1), (Dup, 1), (Cancel, 1), (Claim, 1)],
        ),
        Config::new(
            "answers",
            &[BORN],
            &[(Fence, 2), (Claim, 1), (Freeze, 1), (Zombie, 1), (Lost, 1), (Complete, 1), (Fail, 1)],
        ),
        Config::new(
            "keys",
            &["claim"],
            &[(Create, 3), (Claim, 2), (Dup, 1), (Drop, 1), (Complete, 2), (Freeze, 1), (Zombie, 1)],
        )
        .keyed(),
        Config::new("two tasks", &["claim"], &[(Create, 2), (Cancel, 1), (Complete, 2), (Drop, 1), (Claim, 1)]),
        Config::new("anyone", &["claim"], &[(Rogue, 10)]).rogue_only(),
        Config::new("anyone, anything wrong", EVERYWHERE, &[(Rogue, 4)]).rogue_only().twisted(),
        Config::new("anyone beside", EVERYWHERE, &[(Rogue, 1), (Complete, 2), (Replay, 2)]),
        // Both at once from everywhere are more than 60 million worlds.
        Config::new("anyone twice, reports", EVERYWHERE, &[(Rogue, 2), (Complete, 1)]),
        Config::new("anyone twice, replays", EVERYWHERE, &[(Rogue, 2), (Replay, 1)]),
        Config::new("anyone twice", &[BORN, DONE], &[(Rogue, 2), (Complete, 1), (Replay, 1)]),
    ]
}
