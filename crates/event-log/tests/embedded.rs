//! smoke
use bytes::Bytes;
use event_log::*;
use task_events::{Offset, PartitionId};
fn rec(i: usize) -> OutRecord {
    OutRecord {
        key: Bytes::from(i.to_string()),
        headers: vec![("kind", Bytes::from_static(b"x"))],
        value: Bytes::from(vec![7; 200]),
    }
}
#[tokio::test]
async fn smoke() {
    let dir = tempfile::tempdir().unwrap();
    let mut c = EmbeddedConfig::new(dir.path(), 4);
    c.segment_bytes = 16 << 10;
    let log = EmbeddedLog::open(c.clone()).unwrap();
    for i in 0..50 {
        let o = log.append(PartitionId(i % 4), vec![rec(i as usize), rec(1000)]).await;
        assert_eq!(o, AppendOutcome::Acknowledged);
    }
    assert_eq!(log.append(PartitionId(3), (0..500).map(rec).collect()).await, AppendOutcome::Acknowledged);
    drop(log);
    let log = EmbeddedLog::open(c).unwrap();
    let mut t = log.tail(PartitionId(3), Offset(0)).await.unwrap();
    let end = log.range(PartitionId(3)).await.unwrap().end;
    assert_eq!(end, Offset(524));
    let mut n = 0;
    while n < 524 {
        for r in t.next().await.unwrap() {
            assert_eq!(r.offset.0, n);
            n += 1;
        }
    }
}
