//! Payload items.

use bytes::Bytes;
use task_events::Sha256Hash;

use super::{Harness, NOW_MS, PARAMETERS, PARTITION, RESULT, task};
use crate::{DAY_MS, PAYLOAD_TTL_MS, PayloadItem, SnapshotStore};

fn items() -> Vec<PayloadItem> {
    let step = |name: &str| PayloadItem::StepOutput { step: name.into(), output_hash: Sha256Hash([1; 32]) };
    let steps = ["", "a", "ab", "result", "盘", "\0"].map(step);
    // The same names with other bytes: of an owner or an attempt that was fenced, say.
    let other = Sha256Hash([2; 32]);
    let others = [
        PayloadItem::Parameters { payload_hash: other },
        PayloadItem::StepOutput { step: "a".into(), output_hash: other },
        PayloadItem::Result { result_data_hash: other },
    ];
    [PARAMETERS, RESULT, PayloadItem::ErrorText].into_iter().chain(steps).chain(others).collect()
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
    assert_eq!(store.payload(task(PARTITION, 3), PARAMETERS).await, Ok(None));
}

/// The last write stays, shorter or longer; nothing at all is a content too.
pub async fn a_payload_is_overwritten<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    for content in ["long enough", "short", "", "long again, and longer"] {
        store.put_payload(task(PARTITION, 1), RESULT, content.into()).await.expect("stored");
        let found = store.payload(task(PARTITION, 1), RESULT).await;
        assert_eq!(found, Ok(Some(Bytes::from(content))));
    }
}

/// Items of several tasks at once; of one named twice the later bytes stay.
pub async fn several_are_one_write<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let (a, b) = (task(PARTITION, 1), task(PARTITION, 2));
    store.put_payload(b, RESULT, "of before".into()).await.expect("stored");
    let several = vec![
        (a, RESULT, "first".into()),
        (a, PayloadItem::ErrorText, Bytes::new()),
        (b, RESULT, "of b".into()),
        (a, RESULT, "second".into()),
    ];
    store.put_payloads(several).await.expect("stored");
    store.put_payloads(Vec::new()).await.expect("nothing to store");
    for (id, item, expected) in [
        (a, RESULT, Some(Bytes::from("second"))),
        (a, PayloadItem::ErrorText, Some(Bytes::new())),
        (b, RESULT, Some("of b".into())),
        (b, PayloadItem::ErrorText, None),
    ] {
        assert_eq!(store.payload(id, item.clone()).await, Ok(expected), "{item:?} of {id}");
    }
}

/// Each item has its answer, in the order asked, whatever is missing.
pub async fn several_are_read_in_the_order_asked<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let wanted: Vec<_> = [2, 1].into_iter().flat_map(|n| items().into_iter().map(move |i| (n, i))).collect();
    let content = |n: u16, item: &PayloadItem| Bytes::from(format!("{n} {item:?}"));
    let stored = wanted.iter().filter(|(n, item)| *n == 1 || *item != RESULT);
    let writes = stored.map(|(n, item)| (task(PARTITION, *n), item.clone(), content(*n, item)));
    store.put_payloads(writes.collect()).await.expect("stored");
    let mut asked: Vec<_> = wanted.iter().rev().chain(&wanted).cloned().collect();
    asked.push((3, PARAMETERS));
    let found = store.payloads(asked.iter().map(|(n, item)| (task(PARTITION, *n), item.clone())).collect()).await;
    let expected = asked.iter().map(|(n, item)| {
        let missing = *n == 3 || *n == 2 && *item == RESULT;
        (!missing).then(|| content(*n, item))
    });
    assert_eq!(found, Ok(expected.collect()));
    assert_eq!(store.payloads(Vec::new()).await, Ok(Vec::new()));
}

/// 60 days by the store's clock; writing it again, as a replay does, starts them anew.
pub async fn a_payload_goes_sixty_days_after_its_last_write<H: Harness>() {
    let h = H::start().await;
    let store = h.store();
    let put = |n, content: &'static str| store.put_payload(task(PARTITION, n), PARAMETERS, content.into());
    let get = |n| store.payload(task(PARTITION, n), PARAMETERS);
    let both = [(1, "once"), (2, "renewed")];
    let both = both.map(|(n, content)| (task(PARTITION, n), PARAMETERS, Bytes::from(content)));
    store.put_payloads(both.to_vec()).await.expect("stored");
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
