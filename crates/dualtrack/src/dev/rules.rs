//! What must hold of settings, and between them: every rule with the values it is held against, so that
//! `config check` can show those that hold and those that do not.

use task_core::decide::RetryPolicy;
use task_events::{Incarnation, MAX_PARTITIONS};

use super::{DevError, LogKind, Settings};

/// A rule, held against settings.
#[derive(Debug)]
pub struct Rule {
    /// It holds.
    pub holds: bool,
    /// The rule with keys and values, as an error says it.
    pub broken: DevError,
}

impl Settings {
    /// Refuses what contradicts itself; the first broken rule is named with keys and values.
    ///
    /// # Errors
    /// [`DevError::Conflict`], [`DevError::Setting`] or [`DevError::Between`].
    pub fn validate(&self) -> Result<(), DevError> {
        self.rules().into_iter().find(|rule| !rule.holds).map_or(Ok(()), |rule| Err(rule.broken))
    }

    /// Every rule, whether it holds or not.
    pub fn rules(&self) -> Vec<Rule> {
        let (dev, log, coordinator) = (&self.dev, &self.log, &self.coordinator);
        let one = |holds, key, value: String, rule| Rule { holds, broken: DevError::Setting { key, value, rule } };
        let two = |holds, (key, value): (_, String), (other, other_value): (_, String), rule| Rule {
            holds,
            broken: DevError::Between { key, value, other, other_value, rule },
        };
        let partitions = (1..=MAX_PARTITIONS).contains(&dev.partitions);
        let mut rules = vec![
            one(partitions, "dev.partitions", dev.partitions.to_string(), "1 to 1024"),
            one((1..=2).contains(&dev.instances), "dev.instances", dev.instances.to_string(), "1 or 2"),
            one(
                (1..=64).contains(&dev.worker_threads),
                "dev.worker_threads",
                dev.worker_threads.to_string(),
                "1 to 64",
            ),
        ];
        match self.addresses() {
            Err(broken) => rules.push(Rule { holds: false, broken }),
            Ok(addresses) => rules.push(two(
                dev.insecure || addresses.iter().all(|address| address.ip().is_loopback()),
                ("dev.listen", dev.listen.clone()),
                ("dev.insecure", dev.insecure.to_string()),
                "only loopback addresses are served without --insecure, since nobody is authenticated yet",
            )),
        }
        let kind = match log.kind {
            LogKind::Embedded => "embedded",
            LogKind::Kafka => "kafka",
        };
        rules.extend([
            two(
                log.kind == LogKind::Embedded || !log.bootstrap.is_empty(),
                ("log.kind", kind.to_owned()),
                ("log.bootstrap", format!("{:?}", log.bootstrap)),
                "kafka needs HOST:PORT of a broker",
            ),
            two(
                log.kind == LogKind::Embedded || self.archive.enabled,
                ("log.kind", kind.to_owned()),
                ("archive.enabled", self.archive.enabled.to_string()),
                "archive.enabled = false keeps nothing, a topic keeps everything: use log.kind = embedded",
            ),
        ]);
        let owner = self.owner().rules();
        rules.extend(owner.into_iter().map(|(holds, broken)| Rule { holds, broken: broken.into() }));
        let lease = ("coordinator.lease_ms", coordinator.lease_ms.to_string());
        rules.push(one(self.lock.ttl_ms > 0, "lock.ttl_ms", self.lock.ttl_ms.to_string(), "above 0"));
        rules.push(two(
            self.lock.ttl_ms <= coordinator.lease_ms,
            ("lock.ttl_ms", self.lock.ttl_ms.to_string()),
            lease,
            "the lock of an attempt that is over must go away: at most coordinator.lease_ms",
        ));
        let engine = self.engine("task-engine".into(), Incarnation(0));
        let RetryPolicy { base_ms, cap_ms, .. } = engine.policy;
        rules.push(two(
            base_ms <= cap_ms,
            ("task_engine.backoff_base_ms", base_ms.to_string()),
            ("task_engine.backoff_cap_ms", cap_ms.to_string()),
            "the first pause is not above the longest",
        ));
        let rest = engine.check().map_err(|why| DevError::Layer(format!("task_engine: {why}")));
        rules.extend(rest.err().filter(|_| base_ms <= cap_ms).map(|broken| Rule { holds: false, broken }));
        rules
    }
}
