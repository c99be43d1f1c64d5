//! What the probes of a program say as its folds go on, stand still and are handed over.

use std::collections::BTreeMap;

use service_kit::Standing;
use task_events::{Offset, PartitionId};

use super::Seen;

fn at(owning: bool, applied: u64) -> Standing {
    Standing { owning, applied: Offset(applied) }
}

fn ends(end: u64) -> BTreeMap<PartitionId, Offset> {
    BTreeMap::from([(PartitionId(0), Offset(end))])
}

#[test]
fn an_instance_is_ready_while_its_partitions_move() {
    let seen = Seen::default();
    let judge = |now, standing: Option<Standing>, end, leaving| {
        let standings = standing.into_iter().map(|at| (PartitionId(0), at)).collect();
        let ready = seen.judge("i", now, &standings, &ends(end), leaving);
        (ready.ready, ready.reasons.join("; "))
    };
    assert_eq!(judge(0, None, 5, false), (false, "no partition is assigned to this instance".to_owned()));
    assert_eq!(judge(0, Some(at(false, 1)), 5, false), (false, "no partition is owned yet".to_owned()));
    assert!(judge(1, Some(at(true, 2)), 5, false).0, "behind, but on its way");
    assert!(judge(10_000, Some(at(true, 2)), 5, false).0, "it moved 9,999 ms ago");
    let (ready, why) = judge(10_001, Some(at(true, 2)), 5, false);
    assert!(!ready && why == "partition 0 stands still: at offset 2 for 10000 ms", "{why}");
    assert!(judge(10_002, Some(at(true, 5)), 5, false).0, "it went on");
    assert!(judge(90_000, Some(at(true, 5)), 5, false).0, "nothing to do is no standstill");
    let (ready, why) = judge(90_001, Some(at(true, 5)), 5, true);
    assert!(!ready && why.contains("hands its partitions over"), "{why}");
}

#[test]
fn a_log_that_does_not_answer_is_a_reason() {
    let standings = BTreeMap::from([(PartitionId(0), at(true, 5))]);
    let ready = Seen::default().judge("i", 0, &standings, &BTreeMap::new(), false);
    assert_eq!((ready.ready, ready.partitions[&0].lag), (false, None));
    assert!(ready.reasons[0].contains("did not answer"), "{:?}", ready.reasons);
}
