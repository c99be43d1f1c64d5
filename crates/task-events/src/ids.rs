//! Identifiers of the contract (design.md §3, §5): every id that crosses a
//! service boundary has its own type, so an epoch can never be passed where an
//! offset belongs. No clock and no randomness in here: callers bring both.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// 2024-01-01T00:00:00Z in Unix milliseconds: the zero of every [`TaskId`].
pub const TASK_ID_EPOCH_MS: i64 = 1_704_067_200_000;
/// Bits of a [`TaskId`] that hold the partition; a topic has at most 1,024.
pub const PARTITION_BITS: u32 = 10;
/// Bits of a [`TaskId`] that hold the sequence inside one millisecond.
pub const SEQUENCE_BITS: u32 = 12;
/// Largest partition count a topic may have (design.md §3).
pub const MAX_PARTITIONS: u16 = 1 << PARTITION_BITS;
/// Largest millisecond count (41 bits) since [`TASK_ID_EPOCH_MS`].
pub const MAX_TASK_MS: i64 = (1 << 41) - 1;
/// Largest sequence number inside one millisecond.
pub const MAX_SEQUENCE: u16 = (1 << SEQUENCE_BITS) - 1;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The number itself, for formatting and wire formats.
            pub const fn get(self) -> $inner { self.0 }
            /// The next number, or `None` at the end of the range.
            pub fn next(self) -> Option<Self> { self.0.checked_add(1).map(Self) }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { self.0.fmt(f) }
        }
    };
}

number!(
    /// A partition of the topic, 0 ≤ p < [`MAX_PARTITIONS`].
    PartitionId(u16)
);
number!(
    /// Position of a record in its partition, from 0.
    Offset(u64)
);
number!(
    /// Number of an ownership of a partition; 0 = never owned.
    PartitionEpoch(u32)
);
number!(
    /// Counter of an owner's records inside one [`PartitionEpoch`], from 1; the claim itself is 0.
    OwnerSeq(u64)
);
number!(
    /// Fencing token: number of an assignment of a task, from 1, over all runs; 0 = never assigned.
    ExecEpoch(u32)
);
number!(
    /// Number of a run of a task, from 1; a replay opens the next one.
    RunNo(u32)
);
number!(
    /// Number of an accepted event within its task, from 1. A task's *version* is its highest one.
    EventSequence(u32)
);
number!(
    /// Version of the acceptance rules, from 1 (`RulesActivated`).
    RuleVersion(u32)
);

/// A task's identity: 41 bit milliseconds since 2024 | 10 bit partition | 12 bit sequence.
///
/// Text form (JSON, record keys, `task_id` columns) is the canonical decimal number, since
/// JavaScript loses integers above 2^53. Ordering is creation order inside a partition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(i64);

impl TaskId {
    /// Below every id that can be minted; "no task yet" in a partition's highest id.
    pub const ZERO: Self = Self(0);

    /// Builds an id from its parts; `None` when a part exceeds its bits or the result would be 0.
    pub fn from_parts(ms_since_2024: i64, partition: PartitionId, sequence: u16) -> Option<Self> {
        if !(0..=MAX_TASK_MS).contains(&ms_since_2024) || partition.0 >= MAX_PARTITIONS || sequence > MAX_SEQUENCE {
            return None;
        }
        let raw = (ms_since_2024 << (PARTITION_BITS + SEQUENCE_BITS))
            | (i64::from(partition.0) << SEQUENCE_BITS)
            | i64::from(sequence);
        (raw > 0).then_some(Self(raw))
    }

    /// Wraps a raw number as it stands in a record; any positive number is a syntactically valid id.
    pub const fn from_raw(raw: i64) -> Option<Self> {
        if raw > 0 { Some(Self(raw)) } else { None }
    }

    /// The raw number (clustering columns `id`, Avro long).
    pub const fn raw(self) -> i64 {
        self.0
    }

    /// The partition this task lives in for ever (invariant 1).
    pub const fn partition(self) -> PartitionId {
        PartitionId(((self.0 >> SEQUENCE_BITS) & (MAX_PARTITIONS as i64 - 1)) as u16)
    }

    /// Creation time in Unix milliseconds, as far as the minting owner's clock could be trusted.
    pub const fn unix_ms(self) -> i64 {
        (self.0 >> (PARTITION_BITS + SEQUENCE_BITS)) + TASK_ID_EPOCH_MS
    }

    /// Sequence inside the millisecond.
    pub const fn sequence(self) -> u16 {
        (self.0 & MAX_SEQUENCE as i64) as u16
    }

    /// The lowest id of this partition that is above `highest` and not before `now_ms` (Unix).
    ///
    /// Clock steps, restarts and take-overs can never repeat an id, because the result depends on
    /// the highest *accepted* id alone and the clock only moves it forward (design.md §3).
    /// `None` when the 41-bit range is used up.
    pub fn mint(highest: Self, partition: PartitionId, now_ms: i64) -> Option<Self> {
        let now = now_ms.saturating_sub(TASK_ID_EPOCH_MS).clamp(0, MAX_TASK_MS);
        let high_ms = highest.0 >> (PARTITION_BITS + SEQUENCE_BITS);
        if now > high_ms {
            return Self::from_parts(now, partition, 0).or_else(|| Self::from_parts(now, partition, 1));
        }
        if highest.sequence() < MAX_SEQUENCE {
            Self::from_parts(high_ms, partition, highest.sequence() + 1)
        } else {
            Self::from_parts(high_ms + 1, partition, 0)
        }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskId({})", self.0)
    }
}

/// Why a text is not a [`TaskId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("task_id {0:?} is not a canonical decimal number in 1..=9223372036854775807")]
pub struct InvalidTaskId(pub String);

impl FromStr for TaskId {
    type Err = InvalidTaskId;

    /// Accepts the canonical form only: no sign, no leading zero, no blanks.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let canonical =
            !text.is_empty() && text.len() <= 19 && text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
        canonical
            .then(|| text.parse::<i64>().ok())
            .flatten()
            .and_then(Self::from_raw)
            .ok_or_else(|| InvalidTaskId(text.chars().take(64).collect()))
    }
}

/// One start of a process: 41 bit start time in ms since 2024 | 22 bit random.
///
/// Of two incarnations of one worker the larger number is the newer process (design.md §9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(pub i64);

impl Incarnation {
    /// Builds an incarnation; the random part is cut to its 22 bits, the time clamped to its 41.
    pub fn new(start_unix_ms: i64, random: u32) -> Self {
        let ms = start_unix_ms.saturating_sub(TASK_ID_EPOCH_MS).clamp(0, MAX_TASK_MS);
        Self((ms << 22) | i64::from(random & ((1 << 22) - 1)))
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! fixed {
    ($(#[$doc:meta])* $name:ident, $len:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; $len]);

        impl Default for $name { fn default() -> Self { Self([0; $len]) } }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, concat!(stringify!($name), "({})"), self) }
        }
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> { s.serialize_bytes(&self.0) }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct V;
                impl serde::de::Visitor<'_> for V {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "{} bytes", $len) }
                    fn visit_bytes<E: serde::de::Error>(self, v: &[u8]) -> Result<$name, E> {
                        v.try_into().map($name).map_err(|_| E::invalid_length(v.len(), &self))
                    }
                }
                d.deserialize_bytes(V)
            }
        }
    };
}

fixed!(
    /// SHA-256 of a payload, a step output, a result or an idempotency key.
    Sha256Hash,
    32
);
fixed!(
    /// Identity of one record: UUIDv5, see [`crate::event_id`].
    EventId,
    16
);
fixed!(
    /// Identity of one attempt: UUIDv8 that holds task_id and exec_epoch, so a report routes by it alone.
    ///
    /// Layout in big-endian bit order: 48 high bits of the task id | version 8 | 12 next bits of the
    /// task id | variant 0b10 | 3 low bits of the task id | 32 bit exec_epoch | 27 zero bits.
    ExecutionId,
    16
);

impl Sha256Hash {
    /// SHA-256 over exactly these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Sha256Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}
impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Uuid::from_bytes(self.0).fmt(f)
    }
}
impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Uuid::from_bytes(self.0).fmt(f)
    }
}

impl ExecutionId {
    /// No attempt: a task that was never assigned.
    pub const NONE: Self = Self([0; 16]);

    /// The id of the attempt `exec_epoch` of `task`.
    pub fn new(task: TaskId, exec_epoch: ExecEpoch) -> Self {
        let id = task.raw() as u64; // positive: 63 bits
        let high = ((id >> 15) << 16) | 0x8000 | ((id >> 3) & 0x0fff);
        let low = (0b10 << 62) | ((id & 0b111) << 59) | (u64::from(exec_epoch.0) << 27);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&high.to_be_bytes());
        bytes[8..].copy_from_slice(&low.to_be_bytes());
        Self(bytes)
    }

    /// Task and fencing token held in the id; `None` when the bits are not of our making.
    pub fn parts(self) -> Option<(TaskId, ExecEpoch)> {
        let high = u64::from_be_bytes(self.0[..8].try_into().ok()?);
        let low = u64::from_be_bytes(self.0[8..].try_into().ok()?);
        let raw = ((high >> 16) << 15) | ((high & 0x0fff) << 3) | ((low >> 59) & 0b111);
        let task = TaskId::from_raw(i64::try_from(raw).ok()?)?;
        let epoch = ExecEpoch(((low >> 27) & 0xffff_ffff) as u32);
        (Self::new(task, epoch) == self).then_some((task, epoch))
    }
}

impl FromStr for ExecutionId {
    type Err = uuid::Error;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(|u| Self(u.into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_id_is_a_version_8_uuid_that_gives_back_its_parts() {
        for (ms, p, s, e) in [(0, 0, 1, 1), (MAX_TASK_MS, 1023, MAX_SEQUENCE, u32::MAX), (91_234_567_890, 513, 77, 3)] {
            let task = TaskId::from_parts(ms, PartitionId(p), s).unwrap();
            let id = ExecutionId::new(task, ExecEpoch(e));
            let uuid = Uuid::from_bytes(id.0);
            assert_eq!((uuid.get_version_num(), uuid.get_variant()), (8, uuid::Variant::RFC4122));
            assert_eq!(id.parts(), Some((task, ExecEpoch(e))));
            assert_eq!(id.to_string().parse::<ExecutionId>().unwrap(), id);
        }
        assert_eq!(ExecutionId([0xff; 16]).parts(), None);
        assert_eq!(ExecutionId::NONE.parts(), None);
    }

    #[test]
    fn ids_rise_whatever_the_clock_does() {
        let p = PartitionId(7);
        let mut highest = TaskId::ZERO;
        for now in
            [0, TASK_ID_EPOCH_MS + 10, TASK_ID_EPOCH_MS + 10, TASK_ID_EPOCH_MS + 3, TASK_ID_EPOCH_MS + 11, -5, i64::MIN]
        {
            let next = TaskId::mint(highest, p, now).unwrap();
            assert!(next > highest, "{next:?} after {highest:?}");
            assert_eq!(next.partition(), p);
            highest = next;
        }
        let full = TaskId::from_parts(5, p, MAX_SEQUENCE).unwrap();
        let next = TaskId::mint(full, p, 0).unwrap();
        assert_eq!((next.unix_ms() - TASK_ID_EPOCH_MS, next.sequence()), (6, 0));
        let last = TaskId::from_parts(MAX_TASK_MS, p, MAX_SEQUENCE).unwrap();
        assert_eq!(TaskId::mint(last, p, i64::MAX / 2), None);
    }

    #[test]
    fn only_the_canonical_text_is_an_id() {
        for bad in ["", "0", "-1", "+1", "01", " 1", "1 ", "9223372036854775808", "1e3", "١"] {
            assert!(bad.parse::<TaskId>().is_err(), "{bad:?}");
        }
        assert_eq!("9223372036854775807".parse::<TaskId>().unwrap().raw(), i64::MAX);
    }
}
