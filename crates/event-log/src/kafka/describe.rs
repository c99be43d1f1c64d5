//! Every member of every group of the topic, from the groups' descriptions. The two byte strings
//! in them are the consumer protocol's (big-endian; subscription and assignment).

use std::time::Duration;

use rdkafka::groups::GroupMemberInfo;
use task_events::PartitionId;

use super::convert::error_of;
use super::lane::Client;
use crate::{LogError, MemberInfo};

/// Asks the cluster. Blocking.
pub(super) fn members(client: &Client, topic: &str, timeout: Duration) -> Result<Vec<MemberInfo>, LogError> {
    use rdkafka::consumer::Consumer;
    let groups = client.fetch_group_list(None, timeout).map_err(|e| error_of("cannot describe the groups", &e))?;
    let mut out = Vec::new();
    for group in groups.groups().iter().filter(|group| group.protocol_type() == "consumer") {
        out.extend(group.members().iter().filter_map(|member| info(group.name(), member, topic)));
    }
    Ok(out)
}

fn info(group: &str, member: &GroupMemberInfo, topic: &str) -> Option<MemberInfo> {
    let topics = member.metadata().and_then(subscribed).unwrap_or_default();
    let partitions = member.assignment().and_then(|bytes| assigned(bytes, topic)).unwrap_or_default();
    if partitions.is_empty() && !topics.iter().any(|name| name == topic) {
        return None;
    }
    Some(MemberInfo { group: group.to_owned(), client_id: member.client_id().to_owned(), partitions })
}

fn subscribed(bytes: &[u8]) -> Option<Vec<String>> {
    let mut reader = Reader(bytes);
    reader.i16()?; // version
    let count = reader.i32()?;
    (0..count).map(|_| reader.text()).collect()
}

fn assigned(bytes: &[u8], topic: &str) -> Option<Vec<PartitionId>> {
    let mut reader = Reader(bytes);
    reader.i16()?; // version
    let mut out = Vec::new();
    for _ in 0..reader.i32()? {
        let name = reader.text()?;
        for _ in 0..reader.i32()? {
            let partition = u16::try_from(reader.i32()?).ok()?;
            if name == topic {
                out.push(PartitionId(partition));
            }
        }
    }
    out.sort_unstable();
    Some(out)
}

/// Cursor over a byte string of the protocol; `None` at its end.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn i16(&mut self) -> Option<i16> {
        self.take().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_be_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let len = usize::try_from(self.i16()?).ok()?;
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        String::from_utf8(head.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_is_read_and_a_cut_one_is_not() {
        let mut bytes = vec![0, 1, 0, 0, 0, 2];
        bytes.extend_from_slice(&[0, 1, b'x', 0, 0, 0, 1, 0, 0, 0, 9]);
        bytes.extend_from_slice(&[0, 1, b't', 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 3]);
        bytes.extend_from_slice(&[0xff, 0xff, 0xff, 0xff]);
        assert_eq!(assigned(&bytes, "t"), Some(vec![PartitionId(3), PartitionId(7)]));
        assert_eq!(assigned(&bytes[..bytes.len() - 5], "t"), None);
        assert_eq!(assigned(&[], "t"), None);
    }

    #[test]
    fn a_subscription_names_its_topics() {
        let bytes = [0, 0, 0, 0, 0, 1, 0, 2, b'a', b'b'];
        assert_eq!(subscribed(&bytes), Some(vec!["ab".to_owned()]));
    }
}
