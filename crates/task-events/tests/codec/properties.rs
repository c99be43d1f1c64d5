//! What holds for every event, and for every mutation of its bytes.

use proptest::prelude::*;
use task_events::{Event, Kind, Malformed, arbitrary, encode, samples, to_json};

use crate::second_opinion::{self, PUBLISHED};
use crate::{read, read_back};

/// Headers that belong to these bytes as far as they can be told without decoding them.
fn reread(event: &Event, value: &[u8]) -> Result<Event, Malformed> {
    let crc = format!("{:08x}", crc32c::crc32c(value));
    let kind = value.get(21).map_or(event.kind, |b| Kind::ALL.get(usize::from(b >> 1)).copied().unwrap_or(event.kind));
    let rules = event.rule_version.to_string();
    read(&[("kind", kind.as_str().as_bytes()), ("rule-version", rules.as_bytes()), ("crc32c", crc.as_bytes())], value)
}

fn agrees(event: &Event, datum: &[u8]) -> Result<(), TestCaseError> {
    let other = second_opinion::to_json(&PUBLISHED, datum);
    prop_assert_eq!(other, Some(to_json(event)));
    Ok(())
}

/// One change of some bytes.
#[derive(Clone, Debug)]
enum Change {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (any::<prop::sample::Index>(), 0..8_u8).prop_map(|(at, bit)| Change::Flip(at, 1 << bit)),
        (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, mask)| Change::Flip(at, mask)),
        any::<prop::sample::Index>().prop_map(Change::Cut),
        (any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 1..12))
            .prop_map(|(at, b)| Change::Insert(at, b)),
        any::<prop::sample::Index>().prop_map(Change::Remove),
    ]
}

fn apply(change: &Change, bytes: &mut Vec<u8>) {
    match change {
        _ if bytes.is_empty() => {}
        Change::Flip(at, mask) => {
            let at = at.index(bytes.len());
            bytes[at] ^= mask;
        }
        Change::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Change::Insert(at, more) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, more.iter().copied());
        }
        Change::Remove(at) => drop(bytes.remove(at.index(bytes.len()))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_event_comes_back_and_apache_avro_agrees(event in arbitrary::event()) {
        let record = encode(&event, samples::PARTITION).unwrap();
        prop_assert_eq!(read_back(&record), Ok(event.clone()));
        agrees(&event, &record.value[5..])?;
        prop_assert!(second_opinion::rewrites_alike(&record.value[5..]));
    }

    #[test]
    fn whatever_is_accepted_has_this_one_encoding(
        event in arbitrary::event(), changes in prop::collection::vec(change(), 1..4)
    ) {
        let mut value = encode(&event, samples::PARTITION).unwrap().value.to_vec();
        for change in &changes {
            apply(change, &mut value);
        }
        if let Ok(found) = reread(&event, &value) {
            agrees(&found, &value[5..])?;
            let again = encode(&found, samples::PARTITION).unwrap();
            prop_assert_eq!(&again.value[..], &value[..]);
        }
    }

    #[test]
    fn any_bytes_give_an_event_or_a_reason(mut value in prop::collection::vec(any::<u8>(), 0..400), framed: bool) {
        if framed && value.len() >= 5 {
            value[..5].copy_from_slice(&[0, 0, 0, 0, 1]);
        }
        let _ = reread(&samples::minimal(Kind::TaskCreated), &value);
    }
}

#[test]
fn every_single_byte_of_a_full_event_can_be_anything() {
    for &kind in Kind::ALL {
        let event = samples::full(kind);
        let value = encode(&event, samples::PARTITION).unwrap().value.to_vec();
        for at in 0..value.len() {
            for byte in [0, 1, 2, 0x3b, 0x3c, 0x7f, 0x80, 0xfe, 0xff] {
                let mut changed = value.clone();
                changed[at] = byte;
                if let Ok(found) = reread(&event, &changed) {
                    assert_eq!(encode(&found, samples::PARTITION).unwrap().value, changed, "{kind} byte {at} = {byte}");
                }
            }
            assert!(reread(&event, &value[..at]).is_err(), "{kind} cut at {at}");
        }
    }
}

#[test]
fn what_readers_would_refuse_is_not_written() {
    let refused = |event: &Event| encode(event, samples::PARTITION).unwrap_err().to_string();
    let created = |change: fn(&mut task_events::TaskCreated)| {
        let mut event = samples::full(Kind::TaskCreated);
        if let task_events::Body::TaskCreated(body) = &mut event.body {
            change(body);
        }
        event
    };
    assert!(refused(&created(|b| b.priority = 10)).contains("range"));
    assert!(refused(&created(|b| b.timeouts.start_to_close_ms = u64::MAX)).contains("fit the schema"));
    assert!(refused(&Event { kind: Kind::TaskLost, ..samples::full(Kind::TaskCreated) }).contains("TaskLost"));
    let event = Event { task_id: Some(task_events::TaskId::ZERO), ..samples::full(Kind::TaskCreated) };
    assert!(refused(&event).contains("range"));
    let big = created(|b| b.payload_ref = Some("x".repeat(task_events::MAX_VALUE_BYTES).into()));
    assert!(refused(&big).contains("exceeds the record limit"), "{}", refused(&big));
}
