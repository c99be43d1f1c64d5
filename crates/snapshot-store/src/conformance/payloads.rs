//! Payload items.

use bytes::Bytes;

use super::{Harness, NOW_MS, PARTITION, task};
use crate::{DAY_MS, PAYLOAD_TTL_MS, PayloadItem, SnapshotStore};

fn items() -> Vec<PayloadItem> {
    let step = |name: &str| PayloadItem::StepOutput { step: name.into() };
    let steps = ["", "a", "ab", "result", "盘", "\0"].map(step);
    [PayloadItem::Parameters, PayloadItem::Result, PayloadItem::ErrorText].into_iter().chain(steps).collect()
}

/// Every item of every task is its own, whatever a step is called.
pub async fn items_are_told_apart<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let content = |n: u16, at: usize| Bytes::from(format!("{n} {at}").repeat(at * 10_000));
    for n in [1, 2] {
        for (at, item) in items().into_iter().enumerate() {
            assert_eq!(store.payload(task(PARTITION, n), item.clone()).await, Ok(None));
            store.put_payload(task(PARTITION, n), item, content(n, at)).await.expect("stored");
        }
    }
    for n in [1, 2] {
        for (at, item) in items().into_iter().enumerate() {
            let found = store.payload(task(PARTITION, n), item.clone()).await.expect("read");
            assert_eq!(found, Some(content(n, at)), "{item:?} of task {n}");
        }
    }
    assert_eq!(store.payload(task(PARTITION, 3), PayloadItem::Parameters).await, Ok(None));
}

/// The last write stays, shorter or longer; nothing at all is a content too.
pub async fn a_payload_is_overwritten<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    for content in ["long enough", "short", "", "long again, and longer"] {
        store.put_payload(task(PARTITION, 1), PayloadItem::Result, content.into()).await.expect("stored");
        let found = store.payload(task(PARTITION, 1), PayloadItem::Result).await;
        assert_eq!(found, Ok(Some(Bytes::from(content))));
    }
}

/// 60 days by the store's clock; writing it again, as a replay does, starts them anew.
pub async fn a_payload_goes_sixty_days_after_its_last_write<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let put = |n, content: &'static str| store.put_payload(task(PARTITION, n), PayloadItem::Parameters, content.into());
    let get = |n| store.payload(task(PARTITION, n), PayloadItem::Parameters);
    put(1, "once").await.expect("stored");
    put(2, "renewed").await.expect("stored");
    h.set_clock(NOW_MS + 20 * DAY_MS);
    put(2, "renewed").await.expect("stored");
    h.set_clock(NOW_MS + PAYLOAD_TTL_MS - 1);
    assert_eq!(get(1).await, Ok(Some("once".into())));
    h.set_clock(NOW_MS + PAYLOAD_TTL_MS);
    assert_eq!(get(1).await, Ok(None));
    assert_eq!(get(2).await, Ok(Some("renewed".into())));
    h.set_clock(NOW_MS + 20 * DAY_MS + PAYLOAD_TTL_MS);
    assert_eq!(get(2).await, Ok(None));
}
