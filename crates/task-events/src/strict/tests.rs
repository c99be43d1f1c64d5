//! The pass that builds against the walk that only looks; and every strict datum fits the types.

use proptest::prelude::*;
use proptest::test_runner::TestRng;
use serde_json::Value;

use super::*;
use crate::{Event, SCHEMA_JSON, arbitrary, encode, samples};

fn node() -> Node {
    Node::compile(&serde_json::from_str(SCHEMA_JSON).unwrap()).unwrap()
}

fn same_verdict(node: &Node, datum: &[u8]) -> Result<(), TestCaseError> {
    let built = read::<Event>(node, datum).map(drop);
    prop_assert_eq!(built, check(node, datum).map_err(Refused::Fault));
    Ok(())
}

/// A strict datum by the schema alone, numbers mostly at their bounds.
fn generate(node: &Node, rng: &mut TestRng, out: &mut Vec<u8>, depth: u32) {
    match node {
        Node::Null => {}
        Node::Boolean => out.push(rng.random_range(0..=1)),
        Node::Long { min, max } => long(
            match rng.random_range(0..4) {
                0 => *min,
                1 => *max,
                _ => rng.random_range(*min..=*max),
            },
            out,
        ),
        Node::Text => {
            let text: String = (0..rng.random_range(0..6)).map(|_| rng.random::<char>()).collect();
            long(text.len() as i64, out);
            out.extend(text.bytes());
        }
        Node::Bytes => {
            let length = rng.random_range(0..6_u8);
            long(i64::from(length), out);
            out.extend((0..length).map(|_| rng.random::<u8>()));
        }
        Node::Fixed(size) => out.extend((0..*size).map(|_| rng.random::<u8>())),
        Node::Enum(symbols) => long(rng.random_range(0..*symbols) as i64, out),
        Node::Union(branches) => {
            let branch = rng.random_range(0..branches.len());
            long(branch as i64, out);
            generate(&branches[branch], rng, out, depth + 1);
        }
        Node::Record(fields) => fields.iter().for_each(|f| generate(f, rng, out, depth + 1)),
        Node::Array(items) => block(rng.random_range(0..3), out, |_, out| generate(items, rng, out, depth + 1)),
        Node::Map(values) => block(rng.random_range(0..3), out, |key, out| {
            long(1, out);
            out.push(key);
            generate(values, rng, out, depth + 1);
        }),
    }
    assert!(depth <= 8, "decoding.md §3 names 8 as the depth of the schema");
}

fn block(count: u8, out: &mut Vec<u8>, mut item: impl FnMut(u8, &mut Vec<u8>)) {
    long(i64::from(count), out);
    (0..count).for_each(|i| item(i, out));
    if count > 0 {
        out.push(0);
    }
}

fn long(n: i64, out: &mut Vec<u8>) {
    let mut rest = ((n << 1) ^ (n >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_strict_datum_fits_the_types(seed in any::<[u8; 32]>()) {
        let node = node();
        let mut datum = Vec::new();
        generate(&node, &mut TestRng::from_seed(prop::test_runner::RngAlgorithm::ChaCha, &seed), &mut datum, 0);
        prop_assert_eq!(check(&node, &datum), Ok(()));
        prop_assert!(read::<Event>(&node, &datum).is_ok());
    }

    #[test]
    fn building_and_looking_give_one_verdict(
        event in arbitrary::event(), at in any::<prop::sample::Index>(), bytes in prop::collection::vec(any::<u8>(), 0..4), keep: bool
    ) {
        let mut datum = encode(&event, samples::PARTITION).unwrap().value[5..].to_vec();
        let at = at.index(datum.len());
        let end = if keep { at } else { (at + bytes.len()).min(datum.len()) };
        datum.splice(at..end, bytes);
        same_verdict(&node(), &datum)?;
    }

    #[test]
    fn building_and_looking_agree_on_noise(datum in prop::collection::vec(any::<u8>(), 0..200)) {
        same_verdict(&node(), &datum)?;
    }
}

#[test]
fn a_schema_that_the_walk_does_not_know_is_refused() {
    for bad in [r#""double""#, r#"{"type": "int"}"#, r#"{"type": "fixed", "name": "F"}"#, "null", r#"{"no": "type"}"#] {
        let schema: Value = serde_json::from_str(bad).unwrap();
        assert!(Node::compile(&schema).is_err(), "{bad}");
    }
}
