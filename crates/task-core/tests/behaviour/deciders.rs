//! Deciders and fold agree: whatever is proposed is accepted, and where a decider refuses, the fold
//! would not have accepted it either.

use proptest::prelude::*;
use task_core::decide::{self, Fate, Report, View};
use task_core::{Pen, pen_of, pending_work};
use task_events::{ExecEpoch, ExecutionId, Kind, KindClass, RunNo};

use crate::kit::{World, play, task};
use crate::notation::right;
use crate::walk::{OPS, Op, propose, report_of, stamped, verdict, walk};

const TASKS: u16 = 3;

fn steps() -> impl Strategy<Value = Vec<(Op, u16, u16)>> {
    // Endings are rare, else nothing grows old.
    let op = prop_oneof![
        6 => proptest::sample::select(&OPS[..]),
        4 => proptest::sample::select(&[Op::Create, Op::Assign, Op::Verdict, Op::Plan, Op::Retried, Op::Failure, Op::Lost][..]),
        2 => proptest::sample::select(&[Op::Start, Op::Step, Op::Release][..]),
    ];
    proptest::collection::vec((op, 1..=TASKS, any::<u16>()), 0..60)
}

fn walked(steps: &[(Op, u16, u16)]) -> World {
    let mut world = play("claim");
    steps.iter().for_each(|(op, n, arg)| walk(&mut world, *op, *n, *arg));
    world.replay_all();
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_decider_proposes_exactly_what_the_fold_accepts(steps in steps(), arg: u16) {
        let world = walked(&steps);
        for n in 1..=TASKS {
            for op in OPS {
                let Some(proposed) = propose(&world, op, n, arg) else { continue };
                let event = right(&world, op.kind(), task(n));
                let accepted = verdict(&world.state, &event).rejected().is_none();
                let known = op == Op::Step && proposed.is_err() && accepted || op == Op::Overdue;
                prop_assert!(known || proposed.is_ok() == accepted, "{op:?} {proposed:?} {:?}", verdict(&world.state, &event));
                // Its drafts one after the other, as they lie in one batch.
                let mut next = world.state.clone();
                for draft in proposed.unwrap_or_default() {
                    let event = stamped(draft, &next);
                    prop_assert_eq!(verdict(&next, &event).rejected(), None);
                    let key = task_events::RecordKey::of(&event, next.partition);
                    next.apply(&task_core::Record { offset: next.next_offset, broker_ms: 0, key, event });
                }
            }
        }
    }

    #[test]
    fn a_report_of_another_attempt_is_fenced_and_the_fold_agrees(steps in steps(), arg: u16) {
        let world = walked(&steps);
        for slot in world.state.tasks.iter() {
            let view = View { core: &slot.core, row: slot.row.as_deref().unwrap() };
            let own = slot.core.attempt();
            let other = ExecEpoch(own.exec_epoch.0 + 1);
            let others = [
                task_core::Attempt { run_no: RunNo(own.run_no.0 + 1), ..own },
                task_core::Attempt { exec_epoch: other, ..own },
                task_core::Attempt { execution_id: ExecutionId::new(slot.core.id, other), ..own },
            ];
            for (op, attempt) in OPS.into_iter().flat_map(|op| others.map(|a| (op, a))) {
                let Some(body) = report_of(op, arg) else { continue };
                let report = Report { attempt, worker_id: "w".into(), body };
                prop_assert_eq!(decide::classify(view, &report), Fate::Fenced);
                let mut event = right(&world, op.kind(), slot.core.id);
                (event.run_no, event.exec_epoch) = (attempt.run_no, attempt.exec_epoch);
                crate::notation::name_attempt(&mut event.body, attempt.execution_id);
                prop_assert!(verdict(&world.state, &event).rejected().is_some());
            }
        }
    }

    #[test]
    fn what_was_reported_is_a_duplicate(steps in steps(), arg: u16) {
        let world = walked(&steps);
        for n in 1..=TASKS {
            let Some(slot) = world.state.tasks.get(task(n)) else { continue };
            for op in [Op::Start, Op::Step, Op::Failure] {
                let Some(Ok(drafts)) = propose(&world, op, n, arg) else { continue };
                let report = Report { attempt: slot.core.attempt(), worker_id: "w".into(), body: report_of(op, arg).unwrap() };
                let mut state = world.state.clone();
                for draft in drafts {
                    let event = stamped(draft, &state);
                    let key = task_events::RecordKey::of(&event, state.partition);
                    state.apply(&task_core::Record { offset: state.next_offset, broker_ms: 0, key, event });
                }
                let after = state.tasks.get(task(n)).unwrap();
                let view = View { core: &after.core, row: after.row.as_deref().unwrap() };
                prop_assert_eq!(decide::classify(view, &report), Fate::Duplicate);
            }
        }
    }

    #[test]
    fn the_pen_can_move_what_waits_for_it(steps in steps(), arg: u16) {
        let world = walked(&steps);
        for n in 1..=TASKS {
            let Some(slot) = world.state.tasks.get(task(n)) else { continue };
            let pen = pen_of(&slot.core);
            let moves = match pen {
                Pen::Engine => &[Op::Verdict][..],
                Pen::Replayer => &[Op::Plan],
                Pen::Owner if slot.core.cancel_requested => &[Op::Cancelled],
                Pen::Owner => &[Op::Assign, Op::Lost, Op::Retried],
            };
            let can = moves.iter().any(|op| matches!(propose(&world, *op, n, arg), Some(Ok(_))));
            prop_assert!(can, "{:?} is stuck", slot.core);
            if pending_work(&slot.core, pen) {
                prop_assert!(!slot.core.state.is_live());
            }
        }
    }
}

#[test]
fn control_records_have_no_task() {
    for &kind in Kind::ALL.iter().filter(|k| k.class() == KindClass::Control) {
        let draft = decide::Draft::control(task_events::samples::minimal(kind).body);
        let event = stamped(draft, &play("claim").state);
        assert_eq!((event.task_id, event.event_sequence.0, event.kind), (None, 0, kind));
    }
}
