use super::*;

#[test]
fn the_first_lease_runs_from_the_sending_of_the_poll() {
    let mut rig = Rig::new();
    rig.pass(3_000).work(vec![assignment(1, 1)]).answer(ReportAnswer::Duplicate);
    assert_eq!(rig.machine.write_until(id(1, 1)), Some(7_000));
    assert_eq!(rig.beats().len(), 1, "the poll took longer than a heartbeat interval");
    rig.pass(2_999);
    assert!(rig.machine.may_write(id(1, 1), rig.now));
    assert!(!rig.machine.may_write(id(1, 1), rig.now + 1));
    rig.pass(1);
    assert_eq!(rig.stops(), [(id(1, 1), Stop::LeaseEnd)]);
}

#[test]
fn accepted_heartbeats_renew_it_from_their_own_sending() {
    let mut rig = Rig::inside();
    rig.pass(2_000);
    let (first, beat) = rig.beats()[0].clone();
    assert_eq!(beat.attempt, assignment(1, 1).attempt);
    rig.pass(2_000);
    let (second, _) = rig.beats()[1].clone();
    rig.give(Input::HeartbeatAnswered { request: second, answer: accepted() });
    assert_eq!(rig.machine.write_until(id(1, 1)), Some(11_000));
    rig.give(Input::HeartbeatAnswered { request: first, answer: accepted() });
    assert_eq!(rig.machine.write_until(id(1, 1)), Some(11_000));
    rig.give(Input::HeartbeatAnswered { request: second, answer: accepted() });
    rig.pass(1_000).give(Input::HeartbeatAnswered { request: first, answer: accepted() });
    assert_eq!(rig.machine.write_until(id(1, 1)), Some(11_000), "doubled answers say nothing");
}

#[test]
fn an_answer_after_the_lease_does_not_revive_a_handler() {
    let mut rig = Rig::inside();
    rig.pass(5_900);
    let (request, _) = rig.beats().pop().unwrap();
    rig.now += 100;
    rig.give(Input::HeartbeatAnswered { request, answer: accepted() });
    assert_eq!(rig.stops(), [(id(1, 1), Stop::LeaseEnd)]);
    assert!(!rig.machine.may_write(id(1, 1), rig.now));
    let beats = rig.beats().len();
    rig.pass(10_000).end(id(1, 1), success());
    assert_eq!(rig.beats().len(), beats, "the owner shall take it for lost");
    assert!(rig.machine.is_idle(), "nothing is reported");
    assert_eq!(rig.machine.active(), 0);
}

#[test]
fn unanswered_heartbeats_are_repeated_in_time() {
    let mut rig = Rig::inside();
    rig.pass(2_000).beat(HeartbeatAnswer::Unavailable).pass(500);
    assert_eq!(rig.beats().len(), 2);
    let (request, _) = rig.beats().pop().unwrap();
    rig.give(Input::SendFailed { request }).pass(499);
    assert_eq!(rig.beats().len(), 2);
    rig.pass(1).beat(accepted());
    assert_eq!(rig.machine.write_until(id(1, 1)), Some(10_000));
}

#[test]
fn a_confirmed_start_after_the_lease_waits_for_a_new_one() {
    let mut rig = Rig::new();
    rig.work(vec![assignment(1, 1)]).pass(6_500).answer(ReportAnswer::Accepted);
    assert!(rig.starts().is_empty());
    rig.beat(accepted());
    assert_eq!((rig.starts(), rig.machine.write_until(id(1, 1))), (vec![id(1, 1)], Some(13_000)));
}

#[test]
fn an_attempt_that_never_gets_going_is_given_up() {
    let mut rig = Rig::new();
    rig.work(vec![assignment(1, 1)]).pass(36_000);
    assert!(rig.machine.is_idle());
    let starting = rig.reports().pop().unwrap().0;
    rig.give(Input::ReportAnswered { request: starting, answer: ReportAnswer::Accepted });
    assert!(rig.starts().is_empty());
}

#[test]
fn fenced_stops_at_once_and_drops_reports() {
    let mut rig = Rig::inside();
    rig.give(Input::StepDone { execution_id: id(1, 1), done: step(0) }).pass(2_000).beat(HeartbeatAnswer::Fenced);
    assert_eq!(rig.stops(), [(id(1, 1), Stop::Fenced)]);
    assert_eq!(rig.forgotten().len(), 1);
    assert!(!rig.machine.may_write(id(1, 1), rig.now));
    assert_eq!(rig.machine.active(), 1, "the handler may still be inside");
    rig.end(id(1, 1), success());
    assert!(rig.machine.is_idle());
    assert!(!rig.reports().iter().any(|(_, r)| r.body.is_terminal()));
}

#[test]
fn the_next_attempt_of_a_task_waits_until_the_last_one_is_gone() {
    let mut rig = Rig::inside();
    rig.pass(6_000);
    rig.work(vec![]).pass(10).work(vec![assignment(1, 2)]).answer(ReportAnswer::Accepted);
    assert_eq!(rig.starts(), [id(1, 1)]);
    rig.end(id(1, 1), HandlerEnd::Stopped);
    assert_eq!(rig.starts(), [id(1, 1), id(1, 2)]);
}

#[test]
fn what_a_stopped_handler_left_behind_may_go_on_until_the_lease_is_over_and_never_when_fenced() {
    let mut rig = Rig::inside();
    assert_eq!(rig.machine.lease_until(id(1, 1)), rig.machine.write_until(id(1, 1)));
    while rig.stops().is_empty() {
        rig.pass(1_000);
        if !rig.beats().is_empty() {
            rig.beat(accepted());
        }
    }
    assert_eq!(rig.stops(), [(id(1, 1), Stop::StartToClose)]);
    assert_eq!(rig.machine.write_until(id(1, 1)), None);
    assert!(rig.machine.lease_until(id(1, 1)).is_some_and(|until| until > rig.now));
    rig.pass(2_000).beat(HeartbeatAnswer::Fenced);
    assert_eq!(rig.machine.lease_until(id(1, 1)), None);
}

#[test]
fn a_checkpoint_inside_a_step_does_not_end_it() {
    let mut rig = Rig::inside();
    let id = id(1, 1);
    rig.give(Input::StepStarted { execution_id: id, step: "pay".into(), is_idempotent: true });
    rig.give(Input::StepDone { execution_id: id, done: step(1) });
    rig.end(id, HandlerEnd::Stopped).answer(ReportAnswer::Accepted);
    let ReportBody::Failure { failed_step, .. } = rig.last_body() else { panic!("no failure") };
    assert_eq!(failed_step.as_deref(), Some("pay"));
}
