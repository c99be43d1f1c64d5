//! What the deciders decide, beyond what the fold checks: retries, timeouts, plans.

use task_core::decide::{self, RetryPolicy, View};
use task_events::*;

use crate::kit::{World, play, task};

/// The first task as a decider sees it.
pub fn view<R>(world: &World, f: impl FnOnce(View<'_>) -> R) -> R {
    let slot = world.state.tasks.get(task(1)).unwrap();
    f(View { core: &slot.core, row: slot.row.as_deref().unwrap() })
}

fn verdict(text: &str, now_ms: i64) -> String {
    let w = play(&format!("claim | {text}"));
    let draft = view(&w, |v| decide::retry_verdict(v, RetryPolicy::default(), now_ms, 0)).unwrap();
    match draft.body {
        Body::TaskRetryApproved(b) => format!("approve r={} l={}", b.retry_count, b.lost_count),
        Body::TaskFailedPermanently(b) => format!("{}{}", b.reason, if b.review { ", review" } else { "" }),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_retried_and_what_is_not() {
    let twice = "| approve t1 | plan t1 | retry t1 | assign t1 | start t1";
    for (text, expected) in [
        ("fail t1", "approve r=1 l=0"),
        ("fail t1 cat=RESOURCE", "approve r=1 l=0"),
        ("fail t1 cat=TIMEOUT", "approve r=1 l=0"),
        ("fail t1 cat=NON_RETRYABLE", "non_retryable, review"),
        ("fail t1 cat=OUTCOME_UNKNOWN", "outcome_unknown, review"),
        ("fail t1 TIMEOUT_DEADLINE", "deadline"),
        // The handler saw the step fail, so its outcome is known; if it is not, it says OUTCOME_UNKNOWN.
        ("fail t1 in=pay idem=false", "approve r=1 l=0"),
        ("fail t1 cat=TIMEOUT in=pay idem=false", "outcome_unknown, review"),
        ("timeout t1 START_TO_CLOSE", "approve r=1 l=0"),
        ("timeout t1 START_TO_CLOSE in=pay idem=true", "approve r=1 l=0"),
        ("timeout t1 START_TO_CLOSE in=pay idem=false", "outcome_unknown, review"),
        ("timeout t1 DEADLINE in=pay idem=false", "deadline, review"),
        ("timeout t1 SCHEDULE_TO_START", "approve r=1 l=0"),
        ("timeout t1 DEADLINE", "deadline"),
        ("lose t1", "approve r=0 l=1"),
        ("lose t1 in=pay idem=true", "approve r=0 l=1"),
        ("lose t1 in=pay idem=false", "outcome_unknown, review"),
    ] {
        assert_eq!(verdict(&format!("submit t1 max=1 | assign t1 | start t1 | {text}"), 0), expected, "{text}");
    }
    let failed = format!("submit t1 max=1 | assign t1 | fail t1 {twice} | fail t1");
    assert_eq!(verdict(&failed, 0), "retries_exhausted, review");
    assert_eq!(
        verdict("submit t1 max=0 | assign t1 | lose t1", 0),
        "approve r=0 l=1",
        "losses are not the task's fault"
    );
    assert_eq!(
        verdict(&format!("submit t1 | assign t1 {} | lose t1", format!("| lose t1 {twice}").repeat(5)), 0),
        "lost_too_often, review"
    );
    let mixed = format!(
        "submit t1 max=1 | assign t1 | lose t1 in=pay {} | fail t1",
        "| approve t1 | plan t1 | retry t1 | assign t1"
    );
    assert_eq!(verdict(&mixed, 0), "approve r=1 l=1", "what an earlier attempt was lost in does not matter any more");
}

#[test]
fn a_step_on_record_is_not_the_one_that_was_cut_off() {
    for (end, expected) in [
        ("timeout t1 START_TO_CLOSE in=pay idem=false", "approve r=1 l=0"),
        ("lose t1 in=pay idem=false", "approve r=0 l=1"),
    ] {
        let text = format!("submit t1 max=1 | assign t1 | start t1 | step t1 pay#0 | {end}");
        assert_eq!(verdict(&text, 0), expected, "{end}");
    }
}

#[test]
fn a_step_on_record_beyond_a_gap_runs_again_so_its_outcome_matters() {
    let gap = "submit t1 max=1 | assign t1 | start t1 | step t1 pay#1";
    for end in ["timeout t1 START_TO_CLOSE in=pay idem=false", "lose t1 in=pay idem=false"] {
        let planned = play(&format!("claim | {gap} | {end} | approve t1"));
        let plan = view(&planned, |v| decide::replay_plan(v, Witness::LogOnly)).unwrap();
        let Body::TaskReplayPlanned(plan) = plan.body else { panic!("no plan") };
        assert_eq!((plan.skip.len(), plan.resume_from_step.as_deref()), (0, Some("pay")), "the plan runs it again");
        assert_eq!(verdict(&format!("{gap} | {end}"), 0), "outcome_unknown, review", "{end}");
    }
}

#[test]
fn no_retry_once_the_deadline_passed() {
    for end in ["fail t1", "lose t1"] {
        let text = format!("submit t1 deadline=900 | assign t1 | {end}");
        assert!(verdict(&text, 899).starts_with("approve"));
        assert_eq!(verdict(&text, 900), "deadline");
    }
    assert_eq!(verdict("submit t1 deadline=-9223372036854775808 | assign t1 | fail t1", i64::MIN), "deadline");
    assert!(verdict("submit t1 deadline=9223372036854775807 | assign t1 | fail t1", 5).starts_with("approve"));
}

#[test]
fn backoff_grows_with_each_counter_and_the_lost_worker_is_avoided() {
    let policy = RetryPolicy { version: 7, base_ms: 100, cap_ms: 1_000 };
    let approved = |text: &str| {
        let draft = view(&play(text), |v| decide::retry_verdict(v, policy, 5_000, u64::MAX)).unwrap();
        let Body::TaskRetryApproved(b) = draft.body else { panic!("{draft:?}") };
        (b.backoff_ms, b.not_before, b.avoid_workers, b.policy_version)
    };
    let again = "| approve t1 | plan t1 | retry t1 | assign t1 w2";
    let fail = format!("claim | submit t1 max=9 | assign t1 w1 | fail t1 {again} | fail t1");
    assert_eq!(approved(&fail), (200, Some(5_200), vec![], 7));
    let lose = format!("claim | submit t1 max=9 | assign t1 w1 | fail t1 {again} | lose t1");
    assert_eq!(approved(&lose), (100, Some(5_100), vec![Text::from("w2")], 7));
}

fn due(text: &str) -> Option<(i64, TimeoutKind)> {
    view(&play(&format!("claim | {text}")), decide::due_timeout)
}

#[test]
fn schedule_to_start_counts_from_when_the_task_could_be_handed_out() {
    let s2s = |at| Some((at, TimeoutKind::ScheduleToStart));
    let again = "| approve t1 nb=7000 | plan t1 | retry t1 at=6000";
    assert_eq!(due("submit t1 s2s=100 at=1000"), s2s(1_100));
    assert_eq!(due("submit t1 s2s=100 at=1000 nb=5000"), s2s(5_100));
    assert_eq!(due("submit t1 s2s=100 at=1000 | assign t1 at=1050 | release t1 at=1090"), s2s(1_100), "it goes on");
    assert_eq!(due(&format!("submit t1 s2s=100 at=1000 | assign t1 | fail t1 {again}")), s2s(7_100));
    assert_eq!(
        due("submit t1 s2s=100 at=1000 | assign t1 | fail t1 at=1500 | approve t1 | plan t1 | retry t1 at=9000"),
        s2s(9_100)
    );
    let released = format!("submit t1 s2s=100 at=1000 | assign t1 | fail t1 {again} | assign t1 | release t1 at=9900");
    assert_eq!(due(&released), s2s(7_100));
    let replayed =
        "submit t1 s2s=100 at=1000 | assign t1 | complete t1 at=1200 | replay t1 | plan t1 | retry t1 at=90000";
    assert_eq!(due(replayed), s2s(90_100), "not from the end of the run before");
    assert_eq!(due("submit t1 s2s=100 nb=9223372036854775807"), s2s(i64::MAX));
    assert_eq!(due("submit t1"), None);
}

#[test]
fn start_to_close_and_deadline() {
    assert_eq!(due("submit t1 s2c=50 s2s=1 | assign t1"), None, "assigned, but not started");
    assert_eq!(due("submit t1 s2c=50 | assign t1 | start t1 at=3000"), Some((3_050, TimeoutKind::StartToClose)));
    let deadline = |at| Some((at, TimeoutKind::Deadline));
    assert_eq!(due("submit t1 s2s=100 at=1000 deadline=1100"), deadline(1_100), "it wins a tie: it is never retried");
    assert_eq!(due("submit t1 s2s=100 at=1000 deadline=1101"), Some((1_100, TimeoutKind::ScheduleToStart)));
    assert_eq!(due("submit t1 deadline=5 | assign t1"), deadline(5));
    assert_eq!(due("submit t1 deadline=5 | assign t1 | start t1"), deadline(5));
    assert_eq!(due("submit t1 deadline=-9223372036854775808"), deadline(i64::MIN));
    assert_eq!(due("submit t1 deadline=9223372036854775807"), deadline(i64::MAX));
    for rests in ["fail t1", "lose t1", "fail t1 | approve t1", "fail t1 | approve t1 | plan t1"] {
        assert_eq!(due(&format!("submit t1 s2s=1 deadline=5 | assign t1 | {rests}")), None, "nothing runs: {rests}");
    }
}

fn plan(text: &str) -> (Option<String>, u32, Vec<String>, Vec<u32>) {
    let draft = view(&play(&format!("claim | submit t1 | assign t1 | start t1 | {text}")), |v| {
        decide::replay_plan(v, Witness::LogOnly)
    });
    let Body::TaskReplayPlanned(b) = draft.unwrap().body else { panic!("no plan") };
    let skip = b.skip.iter().map(|s| format!("{}@{}", s.step, s.evidence[0])).collect();
    (b.resume_from_step.map(|s| s.to_string()), b.resume_index, skip, b.based_on.iter().map(|e| e.0).collect())
}

#[test]
fn a_plan_skips_what_is_done_without_a_gap() {
    let strings = |names: &[&str]| names.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    assert_eq!(plan("fail t1 | approve t1"), (None, 0, vec![], vec![5]));
    assert_eq!(
        plan("step t1 a#0 | step t1 b#1 | fail t1 in=c | approve t1"),
        (Some("c".into()), 2, strings(&["a@4", "b@5"]), vec![4, 5, 7])
    );
    assert_eq!(plan("step t1 b#1 | fail t1 in=a | approve t1"), (Some("a".into()), 0, vec![], vec![6]));
    let (_, index, skip, _) = plan("step t1 a#0 | step t1 c#2 | fail t1 in=b | approve t1");
    assert_eq!((index, skip), (1, strings(&["a@4"])), "c may rest on b");
    let (_, _, skip, _) = plan("step t1 a#0 | step t1 b#1 | step t1 x#1 | fail t1 in=y | approve t1");
    assert_eq!(skip, strings(&["a@4", "b@5", "x@6"]), "two handler versions, no gap");
    let (resume, ..) = plan("step t1 a#0 | fail t1 in=a | approve t1");
    assert_eq!(resume, None, "a step on record is not where it resumes");
}

#[test]
fn a_plan_of_a_replay_begins_where_it_was_asked_to() {
    let done = "step t1 a#0 | step t1 b#1 | fail t1 in=c | giveup t1";
    assert_eq!(
        plan(&format!("{done} | replay t1 from=FAILURE")),
        (Some("c".into()), 2, vec!["a@8".into(), "b@8".into()], vec![8])
    );
    assert_eq!(plan(&format!("{done} | replay t1 from=STEP:b")), (Some("b".into()), 1, vec!["a@8".into()], vec![8]));
    assert_eq!(plan(&format!("{done} | replay t1 from=START")), (None, 0, vec![], vec![8]));
}
