//! What one commit will change: a view of the tables with the writes that are not in them yet.
//! A key stands in a batch of the tree at most once, since all of a batch has one sequence number.

use std::collections::BTreeMap;

use bytes::Bytes;
use fjall::PersistMode;

use super::coding::{self, Stored};
use super::tables::{Table, Tables};
use crate::StoreError;
use crate::lifetimes::NEVER;

pub(super) struct Staged<'a> {
    tables: &'a Tables,
    // `None`: removed.
    changes: BTreeMap<(Table, Bytes), Option<Bytes>>,
    /// Earliest time at which the sweep has something to look at because of this.
    pub earliest_ms: i64,
}

impl<'a> Staged<'a> {
    pub fn new(tables: &'a Tables) -> Self {
        Self { tables, changes: BTreeMap::new(), earliest_ms: i64::MAX }
    }

    fn bytes(&self, table: Table, key: &Bytes) -> Result<Option<Bytes>, StoreError> {
        match self.changes.get(&(table, key.clone())) {
            Some(change) => Ok(change.clone()),
            None => self.tables.bytes(table, key),
        }
    }

    /// A value as it will be. One that cannot be read counts as missing: the next write heals it.
    pub fn get(&self, table: Table, key: &Bytes) -> Result<Option<Stored>, StoreError> {
        Ok(self.bytes(table, key)?.and_then(|value| Stored::from_bytes(&value).ok()))
    }

    /// Puts a value there, whatever there is.
    pub fn put(&mut self, table: Table, key: Bytes, value: &Stored) {
        if value.expires_ms != NEVER {
            self.look_at(value.expires_ms, table, &key);
        }
        self.changes.insert((table, key), Some(value.to_bytes()));
    }

    /// Puts a row there unless a newer one is: last write wins by timestamp, also against a row that
    /// has expired and was not swept yet.
    pub fn put_newest(&mut self, table: Table, key: Bytes, value: &Stored) -> Result<(), StoreError> {
        if let Some(there) = self.get(table, &key)? {
            let same = there.body == value.body && there.expires_ms == value.expires_ms;
            if there.at_us > value.at_us || there.at_us == value.at_us && same {
                return Ok(());
            }
            if there.expires_ms != value.expires_ms && there.expires_ms != NEVER {
                self.remove(Table::Expiries, coding::expiry_key(there.expires_ms, table, &key).into());
            }
        }
        self.put(table, key, value);
        Ok(())
    }

    /// Has the sweep look at a key when the time comes.
    pub fn look_at(&mut self, at_ms: i64, table: Table, key: &[u8]) {
        self.earliest_ms = self.earliest_ms.min(at_ms);
        self.changes.insert((Table::Expiries, coding::expiry_key(at_ms, table, key).into()), Some(Bytes::new()));
    }

    pub fn remove(&mut self, table: Table, key: Bytes) {
        self.changes.insert((table, key), None);
    }

    /// All of it or nothing, also after a crash.
    pub fn commit(self, mode: PersistMode) -> Result<(), StoreError> {
        let mut batch = self.tables.batch().durability(Some(mode));
        for ((table, key), change) in self.changes {
            let keyspace = self.tables.keyspace(table);
            match change {
                Some(value) => batch.insert(keyspace, key, value),
                None => batch.remove(keyspace, key),
            }
        }
        batch.commit().map_err(|e| self.tables.error_in("cannot commit", "writes", &e))
    }
}
