//! Who a member of a group is, as every other member sees it: `service|instance|rules=1-N|url`
//! (design.md §3). Written and read here only.

use std::fmt;
use std::str::FromStr;

/// What a member says of itself by its [`crate::MemberSpec::client_id`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientId {
    /// Service; also the name of its group.
    pub service: String,
    /// Name of the instance, without `|`.
    pub instance: String,
    /// Oldest and newest version of the acceptance rules that it knows.
    pub rules: (u32, u32),
    /// Where it answers; empty if nowhere.
    pub url: String,
}

impl ClientId {
    /// Of a member that knows the rules up to a version.
    pub fn new(service: &str, instance: &str, newest_rules: u32, url: &str) -> Self {
        Self {
            service: service.to_owned(),
            instance: instance.to_owned(),
            rules: (1, newest_rules),
            url: url.to_owned(),
        }
    }

    /// Whether it knows a version of the rules.
    pub const fn knows(&self, rules: u32) -> bool {
        self.rules.0 <= rules && rules <= self.rules.1
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { service, instance, rules: (from, to), url } = self;
        write!(f, "{service}|{instance}|rules={from}-{to}|{url}")
    }
}

/// It is no client id of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not service|instance|rules=FROM-TO|url")]
pub struct NoClientId(pub String);

impl FromStr for ClientId {
    type Err = NoClientId;

    fn from_str(text: &str) -> Result<Self, NoClientId> {
        let parts = || {
            let mut parts = text.splitn(4, '|');
            let (service, instance, rules, url) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
            let (from, to) = rules.strip_prefix("rules=")?.split_once('-')?;
            let rules = (from.parse().ok()?, to.parse().ok()?);
            let named = !service.is_empty() && !instance.is_empty();
            named.then(|| Self {
                service: service.to_owned(),
                instance: instance.to_owned(),
                rules,
                url: url.to_owned(),
            })
        };
        parts().ok_or_else(|| NoClientId(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written() {
        let id = ClientId::new("coordinator", "c-1", 2, "http://h:1/a|b");
        assert_eq!(id.to_string(), "coordinator|c-1|rules=1-2|http://h:1/a|b");
        assert_eq!(id.to_string().parse(), Ok(id.clone()));
        assert!(id.knows(1) && id.knows(2) && !id.knows(3) && !id.knows(0));
    }

    #[test]
    fn what_is_no_client_id_is_refused() {
        for text in [
            "",
            "rdkafka",
            "a|b|c|d",
            "a|b|rules=1|u",
            "a|b|rules=x-2|u",
            "a||rules=1-2|u",
            "|b|rules=1-2|u",
            "a|b|rules=1-2",
        ] {
            assert_eq!(text.parse::<ClientId>(), Err(NoClientId(text.to_owned())));
        }
    }
}
