//! Any records at all: readers with rows, without, and from a checkpoint agree.

use proptest::prelude::*;
use task_events::{Body, EventSequence, ExecutionId, Kind, arbitrary};

use crate::kit::{play, task};
use crate::notation::{name_attempt, right};

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    // The world compares them after each record.
    #[test]
    fn readers_agree_on_records_nobody_would_write(
        records in proptest::collection::vec((arbitrary::event(), 1..4_u16, any::<u8>()), 1..40),
    ) {
        let mut world = play("claim | submit t1 max=2 | submit t2 | assign t1");
        world.honest = false;
        for (wild, n, twist) in records {
            let mut event = right(&world, wild.kind, task(n));
            let execution = ExecutionId::new(task(n), event.exec_epoch);
            event.body = wild.body;
            name_attempt(&mut event.body, execution);
            match twist {
                0..20 => event.event_sequence = wild.event_sequence,
                20..40 => event.run_no = wild.run_no,
                40..60 => event.exec_epoch = wild.exec_epoch,
                60..70 => event.task_id = wild.task_id,
                70..80 => (event.partition_epoch, event.owner_seq) = (wild.partition_epoch, wild.owner_seq),
                80..110 => {
                    if let Body::TaskReplayRequested(b) = &event.body {
                        event.event_sequence = EventSequence(b.carried.event_sequence.0.wrapping_add(1));
                        event.run_no.0 = b.carried.run_no.0.wrapping_add(1);
                    }
                }
                _ => {}
            }
            (event.event_time, event.trace_id) = (wild.event_time, wild.trace_id);
            world.append(&event);
        }
        world.replay_all();
    }
}

#[test]
fn all_kinds_are_accepted_in_one_log() {
    let w = play("seal | claim | renew | free | backlog | pause | resume | submit t1 max=2 | overdue t1 | assign t1 | release t1 | assign t1
                  start t1 | step t1 | analyse t1 | fail t1 | skip t1 | quarantine t1 | approve t1 | plan t1 | retry t1 | assign t1
                  lose t1 | approve t1 | plan t1 | retry t1 | timeout t1 | giveup t1 | review t1 | replay t1 | cancel t1 | cancelled t1
                  reject t1 e=3 | submit t2 | assign t2 | complete t2 | rules to=2");
    let text = include_str!("properties.rs");
    assert_eq!(w.state.counters.rejected_total(), 0);
    assert_eq!(w.state.counters.total(), w.state.next_offset.0);
    assert!(Kind::ALL.iter().all(|kind| text.contains(crate::notation::verb(*kind))));
}
