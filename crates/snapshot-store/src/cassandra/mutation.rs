//! Writes that go together. A request costs a node more than the row in it, so rows that are written at the
//! same time and lie on the same nodes share one: an unlogged batch, sent to a node that has all of them. It
//! promises nothing that its rows alone would not; whoever wrote them repeats all of them until all are
//! acknowledged.
//!
//! A batch of several partitions stays below what Cassandra warns of by default
//! (`unlogged_batch_across_partitions_warn_threshold` 10, `batch_size_warn_threshold` 5 KiB, far from
//! `batch_size_fail_threshold` 50 KiB); for one of a single partition it has no such limits.

use std::collections::BTreeMap;

use scylla::serialize::row::SerializeRow;
use scylla::statement::prepared::PreparedStatement;

/// Partitions in a request.
const PARTITIONS: usize = 10;
/// What a node may count in a request of several partitions, bytes.
const BYTES: usize = 5 << 10;
/// Values of a row that has little beside its key, bytes: names are at most so long in the tables.
pub(super) const KEY_BYTES: usize = 256;
/// What it counts for a column beside its value, at most: timestamp, TTL, time of deletion, a length.
const COLUMN_BYTES: usize = 24;

/// Rows of one partition, written at once.
pub(super) struct Mutation {
    pub rows: Vec<Row>,
    bytes: usize,
}

/// A row, or its deletion.
pub(super) struct Row {
    pub statement: PreparedStatement,
    pub values: Box<dyn SerializeRow + Send + Sync>,
}

impl Mutation {
    /// Of one row, whose values have so many bytes.
    pub fn new(statement: &PreparedStatement, values: impl SerializeRow + Send + Sync + 'static, bytes: usize) -> Self {
        Self { rows: Vec::new(), bytes: 0 }.and(statement, values, bytes)
    }

    /// With another row of the same partition.
    pub fn and(
        mut self,
        statement: &PreparedStatement,
        values: impl SerializeRow + Send + Sync + 'static,
        bytes: usize,
    ) -> Self {
        self.bytes += bytes + statement.get_variable_col_specs().len() * COLUMN_BYTES;
        self.rows.push(Row { statement: statement.clone(), values: Box::new(values) });
        self
    }
}

/// Puts together what goes to the same nodes, in the order given. Each part is one request.
pub(super) fn together<H: Ord>(mutations: Vec<Mutation>, home: impl Fn(&Mutation) -> H) -> Vec<Vec<Mutation>> {
    let mut of_home: BTreeMap<H, Vec<(usize, Vec<Mutation>)>> = BTreeMap::new();
    for mutation in mutations {
        let requests = of_home.entry(home(&mutation)).or_default();
        match requests.last_mut() {
            Some((bytes, request)) if request.len() < PARTITIONS && *bytes + mutation.bytes <= BYTES => {
                *bytes += mutation.bytes;
                request.push(mutation);
            }
            Some(_) | None => requests.push((mutation.bytes, vec![mutation])),
        }
    }
    of_home.into_values().flatten().map(|(_, request)| request).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: usize) -> Mutation {
        Mutation { rows: Vec::new(), bytes }
    }

    fn sizes(requests: &[Vec<Mutation>]) -> Vec<Vec<usize>> {
        requests.iter().map(|request| request.iter().map(|mutation| mutation.bytes).collect()).collect()
    }

    #[test]
    fn what_goes_to_the_same_nodes_shares_requests_below_what_is_warned_of() {
        let small = together((0..23).map(|_| of(100)).collect(), |_| 0);
        assert_eq!(small.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 3]);
        let mixed = together(Vec::from([2_000, 3_000, 121, 9_000, 10, 5_110, 1].map(of)), |_| 0);
        assert_eq!(sizes(&mixed), [vec![2_000, 3_000], vec![121], vec![9_000], vec![10, 5_110], vec![1]]);
        let two = together(Vec::from([1, 2, 3, 4, 5].map(of)), |mutation| mutation.bytes % 2);
        assert_eq!(sizes(&two), [vec![2, 4], vec![1, 3, 5]]);
        assert!(together(Vec::new(), |_| 0).is_empty());
    }
}
