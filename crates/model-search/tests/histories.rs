//! The notation and its player: what is printed plays again, what is wrong is said, and records of
//! another log are told in it.

use model_search::history::{Trouble, play, tell};
use model_search::notation::{parse, verb};
use model_search::{Audit, Carried, Fold, Lab, Rec, Retelling, STANDARD, World};
use task_core::{PartitionState, Reason, Record, Verdict};
use task_events::{Kind, PartitionEpoch, PartitionId, RecordKey, TaskId, TaskState};

/// Each as it is printed: with every number that must be said and none that goes without saying.
const HISTORIES: &[&str] = &[
    "claim | submit t1 max=3 | submit t2 max=0 key=K | assign t1 e=1 | start t1 e=1 | step t1 e=1 | analyse t1 e=1 \
     | fail t1 e=1 | approve t1 | plan t1 | retry t1 | assign t1 e=2 | release t1 e=2 | overdue t1 | timeout t2 e=0",
    "claim | claim p=1.0 by=2 => rejected(claim_conflict) | renew | pause | submit t1 max=1 | claim \
     | submit t2 max=1 p=1.4 => rejected(stale_epoch) | renew p=2.0 => rejected(stale_owner_seq) | resume p=2.7 \
     | free | backlog | seal | rules | rules => rejected(rules_not_forward)",
    "claim | submit t1 max=1 | assign t1 e=1 | start t1 e=1 | lose t1 e=1 | approve t1 | complete t1 e=1 \
     | complete t1 e=1 => rejected(unknown_task) | reject t1 e=1",
    "claim | submit t1 max=1 | assign t1 e=1 | complete t1 e=1 | review t1 \
     | replay t1 c=FAILED/1/3/1/1 => rejected(carried_state) | replay t1 | replay t1 => rejected(task_open) | plan t1 \
     | retry t1 | assign t1 e=2 | cancel t1 | cancelled t1 | replay t1",
    "submit t1 max=1 => rejected(stale_epoch) | claim | submit t2 max=1 | submit t1 max=1 => rejected(id_order) \
     | submit tX max=1 => rejected(wrong_partition) | submit t1 max=1 key=- => rejected(wrong_key)",
    "claim | submit t1 max=0 | start t1 e=0 => rejected(wrong_attempt) | assign t1 s=3 e=1 => rejected(stale_sequence) \
     | assign t1 r=2 e=1 => rejected(wrong_run) | assign t1 e=1 | start t1 e=1 x=0 => rejected(wrong_attempt) \
     | approve t1 => rejected(not_allowed) | cancelled t1 => rejected(cancel_requested) | fail t1 e=1 \
     | approve t1 => rejected(retries_exhausted) | skip t1 | quarantine t1 | giveup t1",
];

fn start(lab: &mut Lab) -> World {
    World::new(lab.fold_id(&Fold::default()), lab.audit_id(&Audit::default()), Default::default())
}

fn played(text: &str) -> Result<(), Trouble> {
    let mut lab = Lab::new(&STANDARD);
    let world = start(&mut lab);
    play(&mut lab, world, text).map(drop)
}

/// What is printed of a history, the records it means, and where it ends.
fn told(lab: &mut Lab, text: &str) -> (String, Vec<u32>, World) {
    let (mut world, mut said, mut records) = (start(lab), Vec::new(), Vec::new());
    for step in text.split(" | ") {
        let (rec, _) = parse(step, lab.fold(world.fold), lab.audit(world.audit)).unwrap();
        let record = lab.record_id(&rec.record());
        said.push(tell(lab, world.fold, world.audit, record, 0));
        records.push(record);
        world = play(lab, world, step).unwrap();
    }
    (said.join(" | "), records, world)
}

#[test]
fn the_histories_have_every_kind_and_every_reason() {
    let all = HISTORIES.join(" | ");
    for kind in Kind::ALL {
        assert!(all.split(" | ").any(|step| step.split(' ').next() == Some(verb(*kind))), "{kind}");
    }
    for reason in Reason::ALL {
        assert!(all.contains(&format!("=> rejected({reason})")), "{reason}");
    }
}

#[test]
fn a_history_is_printed_as_it_is_written() {
    for text in HISTORIES {
        assert_eq!(told(&mut Lab::new(&STANDARD), text).0, *text);
    }
}

#[test]
fn numbers_that_go_without_saying_are_not_printed_and_mean_the_same_records() {
    let text = "claim p=1.0 by=1 | submit max=1 s=1 r=1 p=1.1 key=t1 | assign x=1 => ASSIGNED | lose s=3 r=1 => LOST \
        | complete e=1 p=1.4 => SUCCESS | replay s=5 r=2 c=SUCCESS/1/4/1/1 => RETRY_APPROVED";
    let mut lab = Lab::new(&STANDARD);
    let (printed, records, end) = told(&mut lab, text);
    let short = "claim | submit t1 max=1 | assign t1 e=1 | lose t1 e=1 | complete t1 e=1 | replay t1";
    assert_eq!(printed, short);
    assert_eq!(told(&mut lab, &printed), (short.to_owned(), records, end));
}

#[test]
fn another_fate_than_the_one_written_is_unexpected() {
    for (history, got) in [
        ("claim => rejected(claim_conflict)", "accepted"),
        ("claim | submit t1 max=1 => FAILED", "CREATED"),
        ("claim | submit t1 max=1 => rejected(id_order)", "CREATED"),
        ("claim | submit t1 max=1 | complete t1 e=0 => SUCCESS", "rejected(wrong_attempt)"),
        ("claim | claim p=1.0", "rejected(claim_conflict)"),
        ("claim | claim p=1.0 => rejected(stale_epoch)", "rejected(claim_conflict)"),
        ("claim | submit t1 max=1 | assign t1 e=1 | complete t1 e=1 => LOST", "SUCCESS"),
    ] {
        let unexpected = Trouble::Unexpected { history: history.to_owned(), got: got.to_owned() };
        assert_eq!(played(&format!("{history} | renew")), Err(unexpected));
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    for (step, named) in [
        ("sbmit t1", "\"sbmit\""),
        ("submit t1 mx=1", "\"mx=1\""),
        ("submit t1 max=one", "\"max=one\""),
        ("submit t1 max", "\"max\""),
        ("submit t1 p=1", "\"p=1\""),
        ("replay t1 c=SUCCESS/1/2", "\"c=SUCCESS/1/2\""),
        ("submit t1 => BORN", "\"BORN\""),
        ("submit t1 => rejected(late)", "\"rejected(late)\""),
    ] {
        let trouble = played(&format!("claim | {step} | renew"));
        assert!(matches!(&trouble, Err(Trouble::Unreadable(text)) if text.contains(named)), "{step}: {trouble:?}");
    }
}

/// Tells records of a partition at epoch 8 with the verdicts they met there; those of other tasks
/// of the partition are part of that log, not of the history.
fn retold(partition: PartitionId, task: TaskId, log: &[Rec]) -> String {
    let mut there = PartitionState::with_rules(partition, true, &STANDARD);
    there.epoch = PartitionEpoch(8);
    let mut retelling = Retelling::new(&STANDARD, partition, Some(task));
    let mut said = Vec::new();
    for record in log.iter().map(Rec::record) {
        let rejected = match there.apply(&record) {
            Verdict::Rejected(reason) => Some(reason),
            Verdict::Accepted(_) => None,
        };
        let told =
            |Record { event, .. }: &Record| event.task_id.is_none_or(|id| id == task || id.partition() != partition);
        if told(&record) {
            said.push(retelling.tell(&record, rejected));
        }
    }
    said.join(" | ")
}

fn claim(partition: PartitionId, epoch: u32, by: u8) -> Rec {
    let key = RecordKey::Control(partition);
    Rec { key, p: Some(epoch), o: Some(0), by, ..Rec::bare(Kind::OwnershipClaimed) }
}

/// An owner's record of a first run; `e` is the attempt it names.
fn owner(kind: Kind, task: TaskId, (epoch, owner_seq): (u32, u64), seq: u32, e: u32) -> Rec {
    let (key, fence) = (RecordKey::Task(task), (Some(epoch), Some(owner_seq)));
    Rec { task: Some(task), key, p: fence.0, o: fence.1, seq, run: 1, e, x: Some(e), max: 2, ..Rec::bare(kind) }
}

fn verdict(kind: Kind, task: TaskId, seq: u32, run: u32) -> Rec {
    Rec { p: None, o: None, run, ..owner(kind, task, (0, 0), seq, 0) }
}

#[test]
fn records_with_foreign_ids_epochs_and_owner_seqs_are_told_as_a_history_that_plays() {
    use Kind::*;
    for partition in [PartitionId(0), PartitionId(3)] {
        let task = TaskId::from_parts(987_654_321, partition, 17).unwrap();
        let astray = TaskId::from_parts(987_654_322, PartitionId(5), 0).unwrap();
        let carried = Some(Carried { state: TaskState::Success, run: 1, seq: 6, e: 1, x: 1 });
        let log = [
            claim(partition, 9, 4),
            claim(partition, 9, 7),
            owner(TaskCreated, task, (9, 4), 1, 0),
            owner(TaskAssigned, task, (9, 9), 2, 1),
            owner(TaskStarted, task, (9, 7), 3, 1),
            owner(TaskStarted, task, (9, 12), 3, 1),
            claim(partition, 10, 7),
            owner(TaskStepCompleted, task, (9, 13), 4, 1),
            owner(TaskLost, task, (10, 6), 4, 1),
            verdict(TaskRetryApproved, task, 5, 1),
            verdict(TaskRetryApproved, task, 5, 1),
            owner(TaskCompleted, task, (10, 30), 6, 1),
            owner(TaskCompleted, task, (10, 31), 7, 1),
            owner(TaskCreated, astray, (10, 40), 1, 0),
            owner(TaskCreated, task, (10, 41), 1, 0),
            Rec { run: 2, carried, ..owner(TaskReplayRequested, task, (10, 50), 7, 0) },
            verdict(TaskReplayPlanned, task, 8, 2),
        ];
        let history = retold(partition, task, &log);
        let expected = "claim | claim p=1.0 => rejected(claim_conflict) | submit t1 max=2 | assign t1 e=1 \
            | start t1 e=1 p=1.2 => rejected(stale_owner_seq) | start t1 e=1 | claim \
            | step t1 e=1 p=1.1 => rejected(stale_epoch) | lose t1 e=1 | approve t1 \
            | approve t1 s=5 => rejected(stale_sequence) | complete t1 e=1 | complete t1 e=1 => rejected(unknown_task) \
            | submit tX max=2 => rejected(wrong_partition) | submit t1 max=2 => rejected(id_order) | replay t1 | plan t1";
        assert_eq!(history, expected);
        assert_eq!(played(&history), Ok(()), "{history}");
    }
}

#[test]
fn a_birth_refused_for_the_order_of_ids_is_told_behind_the_birth_it_came_after() {
    let partition = PartitionId(0);
    let [task, later] = [17, 18].map(|n| TaskId::from_parts(987_654_321, partition, n).unwrap());
    let log = [
        claim(partition, 9, 1),
        owner(Kind::TaskCreated, later, (9, 1), 1, 0),
        owner(Kind::TaskCreated, task, (9, 2), 1, 0),
    ];
    let history = retold(partition, task, &log);
    assert_eq!(history, "claim | submit t2 max=1 | submit t1 max=2 => rejected(id_order)");
    assert_eq!(played(&history), Ok(()));
}
