use super::*;

fn numbers(rig: &Rig) -> Vec<u32> {
    rig.persisted().iter().map(|e| e.key.number).collect()
}

#[test]
fn reports_go_out_in_order_one_at_a_time_and_persisted_first() {
    let mut rig = Rig::inside();
    rig.give(Input::StepDone { execution_id: id(1, 1), done: step(0) });
    rig.give(Input::StepDone { execution_id: id(1, 1), done: step(1) });
    rig.end(id(1, 1), success());
    assert_eq!((numbers(&rig), rig.reports().len()), (vec![0, 1, 2], 2));
    assert_eq!(rig.last_body(), ReportBody::Step(step(0)));
    rig.answer(ReportAnswer::Accepted);
    assert_eq!(rig.last_body(), ReportBody::Step(step(1)));
    rig.answer(ReportAnswer::Duplicate);
    assert!(matches!(rig.last_body(), ReportBody::Success { .. }));
    rig.answer(ReportAnswer::Accepted);
    assert_eq!(rig.forgotten().iter().map(|k| k.number).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(rig.machine.is_idle());
}

#[test]
fn without_an_answer_it_is_sent_again_and_any_copy_may_be_answered() {
    let mut rig = Rig::inside();
    rig.end(id(1, 1), success());
    let (first, _) = rig.reports().pop().unwrap();
    rig.pass(12_000);
    assert_eq!(rig.reports().len(), 3);
    let (second, _) = rig.reports().pop().unwrap();
    rig.give(Input::ReportAnswered { request: first, answer: ReportAnswer::OutcomeUnknown }).pass(1_000);
    assert_eq!(rig.reports().len(), 3, "only the newest copy's failure sends another");
    rig.give(Input::ReportAnswered { request: second, answer: ReportAnswer::OutcomeUnknown }).pass(100);
    assert_eq!(rig.reports().len(), 4);
    let (third, _) = rig.reports().pop().unwrap();
    rig.give(Input::SendFailed { request: third });
    rig.give(Input::ReportAnswered { request: third, answer: ReportAnswer::Accepted });
    assert!(rig.machine.is_idle(), "it had arrived after all");
    assert_eq!(rig.forgotten().len(), 1);
}

#[test]
fn retries_back_off() {
    let mut rig = Rig::inside();
    rig.end(id(1, 1), success());
    for wait in [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000] {
        let sent = rig.reports().len();
        rig.answer(ReportAnswer::Unavailable).pass(wait - 1);
        assert_eq!(rig.reports().len(), sent, "before {wait}");
        rig.pass(1);
        assert_eq!(rig.reports().len(), sent + 1, "after {wait}");
    }
}

#[test]
fn a_step_that_is_too_early_repeats_starting_without_spinning() {
    let mut rig = Rig::inside();
    rig.give(Input::StepDone { execution_id: id(1, 1), done: step(0) });
    for wait in [100, 200, 400] {
        rig.answer(ReportAnswer::TooEarly).pass(wait);
        assert!(matches!(rig.last_body(), ReportBody::Starting { .. }), "after {wait}");
        rig.answer(ReportAnswer::Duplicate);
        assert_eq!(rig.last_body(), ReportBody::Step(step(0)));
    }
    rig.answer(ReportAnswer::Accepted);
    assert_eq!((rig.starts().len(), rig.forgotten().len()), (1, 1));
}

#[test]
fn heartbeats_go_on_until_the_result_is_on_record() {
    let mut rig = Rig::inside();
    rig.end(id(1, 1), success()).pass(2_000).beat(accepted()).pass(2_000);
    assert_eq!(rig.beats().len(), 2);
    rig.answer(ReportAnswer::Accepted);
    assert!(rig.machine.is_idle());
}

#[test]
fn a_complete_result_outlives_a_fenced_heartbeat_but_not_its_own_fence() {
    let mut rig = Rig::inside();
    rig.give(Input::StepDone { execution_id: id(1, 1), done: step(0) });
    rig.end(id(1, 1), success()).pass(2_000).beat(HeartbeatAnswer::Fenced);
    assert_eq!(rig.forgotten().iter().map(|k| k.number).collect::<Vec<_>>(), [0], "the step is dropped");
    assert!(matches!(rig.last_body(), ReportBody::Success { .. }));
    rig.answer(ReportAnswer::Fenced);
    assert!(rig.machine.is_idle());
    assert_eq!(rig.forgotten().len(), 2);
}

#[test]
fn a_failure_is_dropped_with_its_attempt() {
    let mut rig = Rig::inside();
    rig.end(id(1, 1), HandlerEnd::Panicked { message: "x".into() }).pass(2_000).beat(HeartbeatAnswer::Fenced);
    assert!(rig.machine.is_idle());
    assert_eq!(rig.forgotten().len(), 1);
}

#[test]
fn what_an_earlier_process_could_not_deliver_is_delivered_in_order() {
    let mut earlier = Rig::inside();
    earlier.give(Input::StepDone { execution_id: id(1, 1), done: step(0) });
    earlier.end(id(1, 1), success());
    let mut rig = Rig::with(config(), earlier.persisted());
    assert_eq!((rig.machine.active(), rig.machine.held()), (0, 1));
    assert_eq!(rig.polls()[0].1.held, []);
    assert_eq!(rig.last_body(), ReportBody::Step(step(0)));
    rig.answer(ReportAnswer::Duplicate).answer(ReportAnswer::Accepted);
    assert_eq!(rig.forgotten().len(), 2);
    assert!(rig.machine.is_idle());
    assert!(rig.beats().is_empty());
}

#[test]
fn undelivered_reports_stop_new_work_in_the_end() {
    let mut rig = Rig::with(Config { max_undelivered: 2, ..config() }, Vec::new());
    for n in 1..=2 {
        rig.work(vec![optimistic(n, 1)]).end(id(n, 1), success());
    }
    let polls = rig.polls().len();
    rig.pass(1_000);
    assert_eq!((rig.machine.active(), rig.polls().len()), (0, polls));
    rig.answer(ReportAnswer::Accepted).pass(0);
    assert_eq!(rig.machine.held(), 2, "STARTING first");
    rig.answer(ReportAnswer::Accepted);
    assert_eq!((rig.machine.held(), rig.polls().len()), (1, polls + 1));
}
