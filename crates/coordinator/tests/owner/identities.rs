//! schemas/decoding.md: what the identities of an owner's records hold.

use task_events::{Body, Kind, owner_event_id};

use crate::kit::{P, World};

#[test]
fn the_attempt_of_the_claim_that_counts_not_of_the_last_one_made() {
    let mut w = World::new();
    w.hold_log = true;
    w.step("submit t1");
    w.unknown();
    let first = w.unknown();
    w.wait(200);
    w.land_copy(&first);
    w.land();
    assert_eq!(w.count("claim http://a => rejected(claim_conflict)"), 1);
    let events: Vec<_> = w.log.iter().map(|raw| raw.event().expect("intact")).collect();
    let attempt = |body: &Body| if let Body::OwnershipClaimed(claim) = body { Some(claim.claim_attempt) } else { None };
    let attempts: Vec<_> = events.iter().filter_map(|event| attempt(&event.body)).collect();
    let created = events.last().expect("the create");
    assert_eq!(created.kind, Kind::TaskCreated);
    let (epoch, seq) = (created.partition_epoch.expect("an owner's"), created.owner_seq.expect("an owner's"));
    let producer = &created.producer;
    let id = |attempt| owner_event_id(P, epoch, seq, &producer.instance, producer.incarnation, attempt);
    let [.., counts, late] = attempts[..] else { panic!("{attempts:?}") };
    assert_eq!(created.event_id, id(counts));
    assert_ne!(counts, late);
}
