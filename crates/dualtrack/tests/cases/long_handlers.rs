//! Case 1: a handler that runs longer than its lease, and at its end creates the next task of its
//! sort. All numbers are those of the case.

use bytes::Bytes;
use dualtrack::dev::Dev;
use rest_client::Client;
use task_events::{Kind, TaskId};
use tokio::sync::mpsc::unbounded_channel;
use worker_sdk::{HandlerError, Worker};

use crate::book::Book;
use crate::kit::{pause, request, settings, until};

const ROUNDS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_of_twenty_seconds_on_a_lease_of_six_leaves_one_head_after_each_round() {
    let dir = tempfile::tempdir().expect("a folder");
    let settings = settings(dir.path(), 2, 6_000);
    assert_eq!((settings.coordinator.lease_ms, settings.coordinator.heartbeat_ms), (6_000, 2_000));
    let mut dev = Dev::start(&settings).expect("it starts");
    dev.ready().await.expect("it is ready");
    let url = dev.urls().remove(0);
    let client = Client::new(&url).expect("a URL");
    let (tell, mut created) = unbounded_channel::<TaskId>();
    // Two that could both have it.
    for id in ["a", "b"] {
        let (client, tell) = (client.clone(), tell.clone());
        let worker = Worker::connect(&url).worker_id(id).handler("t", move |_| {
            let (client, tell) = (client.clone(), tell.clone());
            async move {
                pause(20_000).await;
                let next = client.create(&request("t", 1), None).await;
                let next = next.map_err(|why| HandlerError::permanent("NO_NEXT", why.to_string()))?;
                tell.send(next.task_id).expect("somebody listens");
                Ok(Bytes::from("1"))
            }
        });
        tokio::spawn(worker.build().expect("settings").run(std::future::pending()));
    }

    let mut head = client.create(&request("t", 1), None).await.expect("created").task_id;
    for round in 1..=ROUNDS {
        let next = created.recv().await.expect("a handler");
        until("the end of the head", async || {
            client.get(head, None).await.ok().filter(|view| view.status.is_terminal())
        })
        .await;
        let book = Book::read(dev.log()).await;
        assert_eq!(book.open.keys().collect::<Vec<_>>(), [&next], "exactly one head after round {round}");
        assert_eq!(book.tasks(Kind::TaskCompleted).len(), round);
        head = next;
    }
    let book = Book::read(dev.log()).await;
    assert_eq!(book.tasks(Kind::TaskCreated).len(), ROUNDS + 1);
    for kind in [Kind::TaskLost, Kind::TaskReleased, Kind::TaskFailed, Kind::TaskTimedOut, Kind::TaskRetried] {
        assert_eq!(book.accepted(kind).count(), 0, "{kind:?}");
    }
    assert!(book.by_attempt(Kind::TaskAssigned).iter().all(|((_, epoch), times)| (*epoch, *times) == (1, 1)));
    assert!(created.try_recv().is_err(), "no handler has created another one");
}
