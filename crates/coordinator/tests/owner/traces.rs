//! design.md §3: each record of a task bears its trace, whoever writes it and whatever happens between.

use coordinator::owner::{Answer, Command, CreateTask};
use task_events::{EventSequence, ExecEpoch, ExecutionId, Sampling, SpanId, TraceId, TraceParent};
use worker_protocol::PollAnswer;

use crate::kit::{World, poll, task};

fn traced(sampling: Sampling) -> (CreateTask, TraceId) {
    let trace = TraceId::parse(b"4bf92f3577b34da6a3ce929d0e0e4736").expect("a trace");
    let mut create = task("t1");
    create.task.trace_id = trace.to_string().into();
    create.task.sampling = sampling;
    (create, trace)
}

fn world(sampling: Sampling) -> (World, TraceId) {
    let mut w = World::new();
    let (create, trace) = traced(sampling);
    let token = w.ask(Command::Create(Box::new(create)));
    assert!(matches!(w.answer(token), Some(Answer::Created { .. })));
    (w, trace)
}

// Every record of a task, and what its header says.
fn parents(w: &World) -> Vec<(task_events::Event, TraceParent)> {
    let of = |raw: &event_log::RawRecord| {
        let event = raw.event().expect("well-formed");
        let parent = raw.trace_parent();
        assert_eq!(parent.is_some(), event.task_id.is_some(), "{event:?}");
        Some((event, parent?))
    };
    w.log.iter().filter_map(of).collect()
}

#[test]
fn what_the_caller_said_of_its_trace_holds_for_all_records_and_attempts() {
    for sampling in [Sampling::Recorded, Sampling::NotRecorded] {
        let (mut w, trace) = world(sampling);
        w.play("crash");
        let token = w.ask(Command::Poll(poll("w1")));
        let Some(Answer::Poll(PollAnswer::Work { assignments, .. })) = w.answer(token) else { panic!("no work") };
        let execution = ExecutionId::new(w.id("t1"), ExecEpoch(1));
        let attempt = TraceParent { trace_id: trace, span_id: SpanId::of_attempt(execution), sampling };
        assert_eq!(assignments[0].traceparent, Some(attempt));
        w.play(
            "start t1 e=1 | fail t1 e=1 | crash | approve t1 | plan t1 | poll w2 => t1 e=2 | complete t1 e=1 => fenced",
        );
        w.play("start t1 e=2 | complete t1 e=2 => accepted | replay t1 => run 2 | cancel t1");
        let all = parents(&w);
        assert!(all.len() >= 12, "{all:?}");
        for (event, parent) in all {
            assert_eq!((parent.trace_id, parent.sampling), (trace, sampling), "{event:?}");
            assert_eq!(Some(parent.span_id), SpanId::of_event(&event), "{event:?}");
        }
    }
}

#[test]
fn a_header_of_another_trace_changes_nothing() {
    let (mut w, trace) = world(Sampling::NotRecorded);
    let forged = TraceParent {
        trace_id: TraceId::new([7; 16]).expect("a trace"),
        span_id: SpanId::of_record(w.id("t1"), EventSequence(1)),
        sampling: Sampling::Recorded,
    };
    let opening = w.log.iter().position(|raw| raw.trace_parent().is_some()).expect("the create");
    for (name, value) in &mut w.log[opening].headers {
        if name == "traceparent" {
            *value = forged.to_bytes();
        }
    }
    // The next owner folds the log from its start.
    w.play("crash | poll w1 => t1 e=1");
    let (_, last) = parents(&w).pop().expect("an assignment");
    assert_eq!((last.trace_id, last.sampling), (trace, Sampling::Recorded), "nobody says otherwise any more");
}

#[test]
fn records_of_tasks_without_a_trace_bear_none() {
    let mut w = World::new();
    w.play("submit t1 | poll w1 => t1 e=1 | complete t1 e=1 => accepted");
    assert!(w.log.iter().all(|raw| raw.trace_parent().is_none()));
}

// Spans told so far: name, parent's name or `-`, and what went wrong.
fn told(w: &World) -> Vec<String> {
    let name = |id: SpanId| w.spans.iter().find(|span| span.span_id == id).map_or("?", |span| span.name.as_str());
    let line = |span: &spans::Span| {
        let parent = span.parent.map_or("-", name);
        format!("{} < {parent}{}", span.name, span.error.as_ref().map_or(String::new(), |why| format!(" !{why}")))
    };
    w.spans.iter().map(line).collect()
}

#[test]
fn the_spans_of_a_retried_task_are_one_tree_across_take_overs() {
    let (mut w, trace) = world(Sampling::Recorded);
    w.play("poll w1 => t1 e=1 | crash | start t1 e=1 | fail t1 e=1 | crash | approve t1 | plan t1");
    w.play("poll w2 => t1 e=2 | start t1 e=2 | complete t1 e=2 => accepted");
    assert!(w.spans.iter().all(|span| span.trace_id == trace && span.start_us <= span.end_us));
    assert_eq!(
        told(&w),
        [
            "TaskCreated < -",
            "TaskAssigned < attempt",
            "hand-out < attempt",
            "TaskStarted < attempt",
            "TaskFailureAnalysis < attempt",
            "TaskFailed < attempt !BROKEN",
            "attempt < TaskCreated !BROKEN",
            "TaskRetried < TaskCreated",
            "TaskAssigned < attempt",
            "hand-out < attempt",
            "TaskStarted < attempt",
            "TaskCompleted < attempt",
            "attempt < TaskCreated",
        ]
    );
    let mut ids: Vec<_> = w.spans.iter().map(|span| span.span_id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), w.spans.len(), "no two spans share an id");
}

#[test]
fn a_create_is_part_of_who_asked_or_linked_to_it() {
    for same in [true, false] {
        let mut w = World::new();
        let (mut create, trace) = traced(Sampling::Recorded);
        let other = TraceId::new([7; 16]).expect("a trace");
        let asked = TraceParent {
            trace_id: if same { trace } else { other },
            span_id: SpanId::new([9; 8]).expect("a span"),
            sampling: Sampling::Recorded,
        };
        create.parent = Some(asked);
        w.ask(Command::Create(Box::new(create)));
        let [span] = &w.spans[..] else { panic!("{:?}", told(&w)) };
        let expected = if same { (Some(asked.span_id), vec![]) } else { (None, vec![asked]) };
        assert_eq!((span.parent, span.links.clone()), expected);
    }
}

#[test]
fn of_a_trace_that_is_not_recorded_nothing_is_told() {
    let (mut w, _) = world(Sampling::NotRecorded);
    w.play("poll w1 => t1 e=1 | crash | start t1 e=1 | complete t1 e=1 => accepted");
    assert_eq!(told(&w), [""; 0]);
}
