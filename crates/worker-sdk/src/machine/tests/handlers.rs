use super::*;

fn cancel() -> HeartbeatAnswer {
    HeartbeatAnswer::Accepted { lease_ms: 60_000, cancel_requested: true }
}

#[test]
fn entered_only_when_starting_is_on_record() {
    let mut rig = Rig::new();
    rig.work(vec![assignment(1, 1)]);
    for answer in [ReportAnswer::OutcomeUnknown, ReportAnswer::Unavailable, ReportAnswer::TooEarly] {
        rig.answer(answer).pass(400);
        assert!(rig.starts().is_empty(), "{answer:?}");
    }
    assert_eq!(rig.reports().len(), 4);
    assert!(rig.reports().iter().all(|(_, r)| matches!(r.body, ReportBody::Starting { .. })));
    rig.answer(ReportAnswer::Duplicate);
    assert_eq!(rig.starts(), [id(1, 1)]);
    let (first, _) = rig.reports()[0].clone();
    rig.give(Input::ReportAnswered { request: first, answer: ReportAnswer::Accepted });
    assert_eq!(rig.starts().len(), 1);
}

#[test]
fn optimistic_start_enters_at_once_and_is_fenced_by_the_answer() {
    let mut rig = Rig::new();
    rig.work(vec![optimistic(1, 1)]);
    assert_eq!(rig.starts(), [id(1, 1)]);
    rig.answer(ReportAnswer::Fenced);
    assert_eq!(rig.stops(), [(id(1, 1), Stop::Fenced)]);
}

#[test]
fn start_to_close_ends_a_handler_that_is_alive() {
    let mut rig = Rig::inside();
    for _ in 0..29 {
        rig.pass(2_000).beat(accepted());
    }
    rig.pass(2_000);
    assert_eq!(rig.stops(), [(id(1, 1), Stop::StartToClose)]);
    rig.beat(accepted()).end(id(1, 1), success());
    assert_eq!(code(&rig.last_body()), ("TIMEOUT_START_TO_CLOSE", ErrorCategory::Timeout));
}

#[test]
fn a_cancel_raises_the_token_then_stops() {
    let mut rig = Rig::inside();
    rig.pass(2_000).beat(cancel()).pass(2_000).beat(cancel());
    assert_eq!((rig.cancels(), rig.stops().len()), (1, 0));
    rig.pass(7_999);
    assert!(rig.stops().is_empty());
    rig.pass(1);
    assert_eq!(rig.stops(), [(id(1, 1), Stop::CancelGrace)]);
    rig.end(id(1, 1), HandlerEnd::Stopped);
    assert_eq!(code(&rig.last_body()).0, "CANCELLED");
}

#[test]
fn a_cancelled_handler_may_still_succeed_or_give_up() {
    let failed =
        HandlerEnd::Failed { error_code: "X".into(), error_message: "x".into(), category: ErrorCategory::Transient };
    for (end, expected) in [(success(), None), (failed, Some("CANCELLED")), (HandlerEnd::Stopped, Some("CANCELLED"))] {
        let mut rig = Rig::inside();
        rig.pass(2_000).beat(cancel()).end(id(1, 1), end);
        match expected {
            None => assert!(matches!(rig.last_body(), ReportBody::Success { .. })),
            Some(expected) => assert_eq!(code(&rig.last_body()).0, expected),
        }
    }
}

#[test]
fn a_cancel_before_the_start_never_enters() {
    let mut rig = Rig::new();
    rig.work(vec![assignment(1, 1)]).pass(2_000).beat(cancel());
    let starting = rig.reports()[0].0;
    rig.give(Input::ReportAnswered { request: starting, answer: ReportAnswer::Accepted });
    assert!(rig.starts().is_empty());
    assert_eq!(code(&rig.last_body()).0, "CANCELLED");
    rig.answer(ReportAnswer::Accepted);
    assert!(rig.machine.is_idle());
}

#[test]
fn a_poll_that_says_stop_asks_by_heartbeat_which_kind_it_is() {
    let mut rig = Rig::inside();
    let (request, _) = rig.polls().pop().unwrap();
    rig.give(Input::PollAnswered {
        request,
        answer: PollAnswer::Work { assignments: Vec::new(), stop: vec![id(1, 1), id(7, 7)] },
    });
    assert_eq!((rig.cancels(), rig.beats().len()), (1, 1));
    rig.beat(HeartbeatAnswer::Fenced);
    assert_eq!(rig.stops(), [(id(1, 1), Stop::Fenced)]);
}

#[test]
fn a_broken_off_step_that_is_not_idempotent_needs_people() {
    for (idempotent, expected) in [(false, ErrorCategory::OutcomeUnknown), (true, ErrorCategory::Transient)] {
        let mut rig = Rig::inside();
        rig.give(Input::StepStarted { execution_id: id(1, 1), step: "pay".into(), is_idempotent: idempotent });
        rig.pass(2_000);
        assert_eq!(rig.beats().pop().unwrap().1.step_in_progress, Some(("pay".into(), idempotent)));
        rig.end(id(1, 1), HandlerEnd::Panicked { message: "boom".into() });
        assert_eq!(code(&rig.last_body()), ("HANDLER_PANICKED", expected));
        let ReportBody::Failure { failed_step, is_idempotent, execution_time_ms, .. } = rig.last_body() else {
            panic!("no failure")
        };
        assert_eq!((failed_step, is_idempotent), (Some("pay".into()), Some(idempotent)));
        assert_eq!(execution_time_ms, 2_000);
    }
}

#[test]
fn a_step_that_must_not_run_twice_is_announced_first() {
    let mut rig = Rig::inside();
    let started =
        |step: &str, is_idempotent| Input::StepStarted { execution_id: id(1, 1), step: step.into(), is_idempotent };
    rig.give(started("count", true));
    assert!(rig.machine.is_step_announced(id(1, 1)) && rig.beats().is_empty());
    rig.pass(2_000);
    rig.give(started("pay", false));
    assert_eq!(rig.beats().len(), 2, "at once");
    let (before, _) = rig.beats()[0].clone();
    rig.give(Input::HeartbeatAnswered { request: before, answer: accepted() });
    assert!(!rig.machine.is_step_announced(id(1, 1)), "that one named another step");
    rig.beat(accepted());
    assert!(rig.machine.is_step_announced(id(1, 1)));
    rig.give(Input::StepDone { execution_id: id(1, 1), done: StepDone { step: "pay".into(), ..step(0) } });
    assert!(!rig.machine.is_step_announced(id(1, 1)));
}
