//! Columns that are codes: symbols of closed lists, numbers, and the blob for what has no column.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use task_events::{Offset, Sha256Hash, TaskId};

use crate::StoreError;

/// Version of the blobs `rest`; it is their first byte.
const VERSION: u8 = 1;

/// MessagePack with named fields after the version: a newer program reads an older one, and fields it
/// does not know it skips.
pub(super) fn rest(value: &impl Serialize) -> Result<Bytes, StoreError> {
    let mut out = vec![VERSION];
    rmp_serde::encode::write_named(&mut out, value)
        .map_err(|why| StoreError::Damaged(format!("a row cannot be coded: {why}")))?;
    Ok(out.into())
}

/// Reads it; the error says what is wrong with it.
pub(super) fn from_rest<T: DeserializeOwned>(coded: Option<&[u8]>) -> Result<T, String> {
    match coded.and_then(<[u8]>::split_first) {
        Some((&VERSION, body)) => rmp_serde::from_slice(body).map_err(|why| format!("rest: {why}")),
        Some((version, _)) => Err(format!("rest: version {version} is not known")),
        None => Err("rest: missing".to_owned()),
    }
}

/// The symbol of a closed list by its name.
pub(super) fn symbol<T: Copy>(
    column: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
    text: &str,
) -> Result<T, String> {
    all.iter().copied().find(|one| name(*one) == text).ok_or_else(|| format!("{column}: {text:?} is not known"))
}

/// A column that is always written.
pub(super) fn there<T>(column: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("{column}: missing"))
}

/// A number that is smaller here than in CQL.
pub(super) fn number<T: TryFrom<i64>>(column: &str, value: Option<i64>) -> Result<T, String> {
    let value = there(column, value)?;
    T::try_from(value).map_err(|_| format!("{column}: {value} is out of range"))
}

/// An offset as CQL has it: its bits. Order and sign are right up to 2⁶³, which no log reaches.
pub(super) const fn offset_column(offset: Offset) -> i64 {
    offset.0 as i64
}

/// And back.
pub(super) const fn offset(column: i64) -> Offset {
    Offset(column as u64)
}

/// 32 bytes.
pub(super) fn hash(column: &str, bytes: &[u8]) -> Result<Sha256Hash, String> {
    let bytes = bytes.try_into().map_err(|_| format!("{column}: {} bytes instead of 32", bytes.len()))?;
    Ok(Sha256Hash(bytes))
}

/// A hash as CQL has it.
pub(super) fn hash_column(hash: Sha256Hash) -> Bytes {
    Bytes::copy_from_slice(&hash.0)
}

/// The id in a clustering column.
pub(super) fn task(id: i64) -> Result<TaskId, String> {
    TaskId::from_raw(id).ok_or_else(|| format!("id: {id} is none of a task"))
}

/// What is wrong with a row, by table and key.
pub(super) fn damaged(table: &str, key: impl std::fmt::Display, why: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged(format!("{table} {key}: {why}"))
}
