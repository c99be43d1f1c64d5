//! The completed steps of a run: one entry per name, in the order of the indices.
//!
//! The name is what a handler knows a step by; its index moves when another handler version brings
//! a step more. A step reported again (a resumed attempt lists the earlier ones too) keeps its
//! first evidence.

use task_events::{EventSequence, StepDone};

use super::StepEntry;

// From here on sorting is cheaper than inserting one by one, which a record of 2 MiB with its steps
// in descending order would turn into minutes.
const MANY: usize = 32;

fn order(a: &StepDone, b: &StepDone) -> std::cmp::Ordering {
    (a.index, &a.step).cmp(&(b.index, &b.step))
}

/// Takes in one step.
pub(super) fn note(steps: &mut Vec<StepEntry>, done: &StepDone, evidence: EventSequence) {
    if let Some(at) = steps.iter().position(|s| s.done.step == done.step) {
        if steps[at].done == *done {
            return;
        }
        steps.remove(at);
    }
    let at = steps.partition_point(|s| order(&s.done, done).is_lt());
    steps.insert(at, StepEntry { done: done.clone(), evidence });
}

/// Takes in the steps of a report.
pub(super) fn merge(steps: &mut Vec<StepEntry>, done: &[StepDone], evidence: EventSequence) {
    if done.len() < MANY {
        return done.iter().for_each(|d| note(steps, d, evidence));
    }
    steps.extend(done.iter().map(|d| StepEntry { done: d.clone(), evidence }));
    // Stable: of one name the earliest entry stays in front.
    steps.sort_by(|a, b| a.done.step.cmp(&b.done.step));
    steps.dedup_by(|later, first| {
        let again = later.done.step == first.done.step;
        if again && later.done != first.done {
            std::mem::swap(later, first);
        }
        again
    });
    steps.sort_by(|a, b| order(&a.done, &b.done));
    steps.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use task_events::Sha256Hash;

    use super::*;

    fn step(name: &str, index: u32) -> StepDone {
        StepDone { step: name.into(), index, output_hash: Sha256Hash::default(), is_idempotent: false }
    }

    fn shown(steps: &[StepEntry]) -> Vec<(&str, u32, u32)> {
        steps.iter().map(|s| (s.done.step.as_str(), s.done.index, s.evidence.0)).collect()
    }

    #[test]
    fn a_step_keeps_its_first_evidence_and_loses_no_neighbour_to_a_new_handler_version() {
        let mut steps = Vec::new();
        note(&mut steps, &step("b", 1), EventSequence(5));
        merge(&mut steps, &[step("a", 0), step("b", 1)], EventSequence(6));
        assert_eq!(shown(&steps), [("a", 0, 6), ("b", 1, 5)]);
        note(&mut steps, &step("x", 1), EventSequence(9));
        assert_eq!(shown(&steps), [("a", 0, 6), ("b", 1, 5), ("x", 1, 9)]);
        note(&mut steps, &step("b", 2), EventSequence(10));
        assert_eq!(shown(&steps), [("a", 0, 6), ("x", 1, 9), ("b", 2, 10)]);
    }

    #[test]
    fn many_at_once_end_as_one_by_one_do() {
        let some = [step("b", 1), step("c", 2)];
        let many: Vec<_> = (0..200).rev().map(|n| step(["a", "b", "c", "d", "e"][n % 5], (n % 7) as u32)).collect();
        let (mut once, mut each) = (Vec::new(), Vec::new());
        merge(&mut once, &some, EventSequence(1));
        merge(&mut each, &some, EventSequence(1));
        merge(&mut once, &many, EventSequence(2));
        many.iter().for_each(|d| note(&mut each, d, EventSequence(2)));
        assert_eq!(shown(&once), shown(&each));
    }

    #[test]
    fn a_whole_record_of_steps_takes_no_time() {
        let many: Vec<_> = (0..60_000).rev().map(|n| step(&n.to_string(), n)).collect();
        let mut steps = Vec::new();
        merge(&mut steps, &many, EventSequence(2));
        assert_eq!((steps.len(), steps[7].done.index), (60_000, 7));
    }
}
