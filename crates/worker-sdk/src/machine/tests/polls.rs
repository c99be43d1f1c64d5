use super::*;

#[test]
fn one_poll_at_a_time_for_as_many_slots_as_are_free() {
    let mut rig = Rig::new();
    assert_eq!(rig.polls()[0].1.free_slots, 2);
    rig.pass(4_000);
    assert_eq!(rig.polls().len(), 1);
    rig.work(vec![assignment(1, 1)]);
    let second = rig.polls().pop().unwrap().1;
    assert_eq!((second.free_slots, second.held), (1, vec![id(1, 1)]));
    rig.work(vec![assignment(2, 1)]);
    assert_eq!(rig.polls().len(), 2, "no slot is free");
    rig.answer(ReportAnswer::Accepted).end(id(2, 1), success());
    assert_eq!(rig.polls().len(), 3, "the handler is gone, its slot is free");
}

#[test]
fn an_empty_answer_pauses_and_a_lost_one_is_given_up() {
    let mut rig = Rig::new();
    rig.work(Vec::new());
    assert_eq!(rig.polls().len(), 1);
    rig.pass(10);
    assert_eq!(rig.polls().len(), 2);
    rig.pass(7_999);
    assert_eq!(rig.polls().len(), 2);
    rig.pass(101);
    assert_eq!(rig.polls().len(), 3, "given up after wait and slack, then a first back-off");
    let (request, _) = rig.polls().pop().unwrap();
    rig.give(Input::PollAnswered { request, answer: PollAnswer::Unavailable }).pass(199);
    assert_eq!(rig.polls().len(), 3);
    rig.pass(1);
    assert_eq!(rig.polls().len(), 4);
}

#[test]
fn work_in_a_late_or_doubled_answer_is_not_taken() {
    let mut rig = Rig::new();
    let (first, _) = rig.polls().pop().unwrap();
    let late = PollAnswer::Work { assignments: vec![optimistic(1, 1)], stop: Vec::new() };
    rig.give(Input::SendFailed { request: first }).pass(100);
    rig.give(Input::PollAnswered { request: first, answer: late });
    assert_eq!((rig.machine.held(), rig.starts()), (0, vec![]));
    rig.work(vec![assignment(2, 1)]);
    let (second, _) = rig.polls()[1].clone();
    let doubled = PollAnswer::Work { assignments: vec![assignment(3, 1)], stop: Vec::new() };
    rig.give(Input::PollAnswered { request: second, answer: doubled });
    assert_eq!(rig.machine.held(), 1);
}

#[test]
fn more_work_than_slots_is_declined() {
    let mut rig = Rig::new();
    rig.work(vec![assignment(1, 1), assignment(2, 1), assignment(3, 1)]);
    assert_eq!(rig.last_body(), ReportBody::Declined { draining: false });
    rig.answer(ReportAnswer::Unavailable).pass(100);
    assert_eq!(rig.reports().len(), 4, "sent again");
    rig.answer(ReportAnswer::Accepted);
    assert_eq!((rig.machine.held(), rig.machine.active()), (2, 2));
}

#[test]
fn an_attempt_is_taken_once() {
    let mut rig = Rig::inside();
    rig.work(vec![assignment(1, 1)]);
    rig.end(id(1, 1), success()).answer(ReportAnswer::Accepted);
    assert!(rig.machine.is_idle());
    rig.pass(10).work(vec![assignment(1, 1)]);
    assert!(rig.machine.is_idle());
    assert_eq!(rig.starts(), [id(1, 1)]);
}

#[test]
fn drain_finishes_what_runs_and_declines_the_rest() {
    let mut rig = Rig::inside();
    rig.give(Input::Drain).work(vec![assignment(2, 1)]);
    assert_eq!(rig.last_body(), ReportBody::Declined { draining: true });
    rig.answer(ReportAnswer::Accepted).end(id(1, 1), success());
    let polls = rig.polls().len();
    rig.pass(20_000);
    assert_eq!(rig.polls().len(), polls);
    rig.answer(ReportAnswer::Accepted);
    assert!(rig.machine.is_idle() && rig.machine.is_draining());
    assert_eq!(rig.machine.next_due(), None);
}

#[test]
fn a_superseded_process_finishes_and_drains() {
    let mut rig = Rig::inside();
    let (request, _) = rig.polls().pop().unwrap();
    rig.give(Input::PollAnswered { request, answer: PollAnswer::Superseded }).pass(1_999);
    assert!(rig.machine.is_draining() && rig.machine.may_write(id(1, 1), rig.now));
    rig.end(id(1, 1), success());
    assert!(matches!(rig.last_body(), ReportBody::Success { .. }));
    assert_eq!(rig.polls().len(), 2);
}

#[test]
fn after_as_many_attempts_as_it_may_take_it_drains() {
    let mut rig = Rig::with(Config { max_attempts: Some(3), ..config() }, Vec::new());
    rig.work(vec![assignment(1, 1)]).answer(ReportAnswer::Accepted).end(id(1, 1), success());
    rig.answer(ReportAnswer::Accepted).work(vec![assignment(2, 1)]);
    rig.answer(ReportAnswer::Accepted).end(id(2, 1), success()).pass(6_000);
    let (_, poll) = rig.polls().pop().unwrap();
    assert_eq!(poll.free_slots, 1, "two slots, but one attempt more");
    assert!(!rig.machine.is_draining());
    rig.work(vec![assignment(3, 1), assignment(4, 1)]);
    assert!(rig.machine.is_draining());
    assert_eq!(rig.last_body(), ReportBody::Declined { draining: true });
    assert_eq!(rig.machine.active(), 1);
    assert!(Machine::new(Config { max_attempts: Some(0), ..config() }, wall(0), Vec::new()).is_err());
}

#[test]
fn idle_is_who_was_answered_and_got_nothing() {
    let mut rig = Rig::with(Config { end_when_idle_ms: Some(1_000), resend_max_ms: 100, ..config() }, Vec::new());
    for _ in 0..20 {
        let (request, _) = rig.polls().pop().unwrap();
        rig.give(Input::PollAnswered { request, answer: PollAnswer::Unavailable }).pass(100);
    }
    assert!(!rig.machine.is_draining(), "nobody has said that there is no work");
    rig.work(Vec::new()).pass(500);
    rig.work(vec![assignment(1, 1)]).answer(ReportAnswer::Accepted).pass(3_000);
    assert!(!rig.machine.is_draining(), "it works");
    rig.end(id(1, 1), success()).answer(ReportAnswer::Accepted).work(Vec::new());
    let idle_from = rig.now;
    while !rig.machine.is_draining() {
        assert!(rig.now < idle_from + 10_000);
        rig.pass(10);
    }
    assert!(rig.machine.is_idle());
}
