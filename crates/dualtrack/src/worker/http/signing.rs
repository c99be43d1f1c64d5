//! Signatures by the Standard Webhooks specification: HMAC-SHA256 over id, timestamp and body.

use std::fmt;
use std::path::PathBuf;

use standardwebhooks::Webhook;

/// A key that is never shown.
pub struct Secret(Webhook);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A key that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// Its file cannot be read.
    #[error("--secret-file {}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// It is no key.
    #[error("{from}: not a webhook secret: whsec_ and Base64, as in whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    Form {
        /// Where it came from.
        from: String,
    },
}

impl Secret {
    /// A secret of the form `whsec_BASE64`; `from` says where it came from.
    pub fn new(text: &str, from: &str) -> Result<Self, SecretError> {
        // An empty key would sign for everybody.
        let is_empty = text.trim().trim_start_matches("whsec_").is_empty();
        let webhook = Webhook::new(text.trim()).ok().filter(|_| !is_empty);
        webhook.map(Self).ok_or_else(|| SecretError::Form { from: from.to_owned() })
    }

    /// The secret in a file.
    pub fn read(path: PathBuf) -> Result<Self, SecretError> {
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::new(&text, &format!("--secret-file {}", path.display())),
            Err(why) => Err(SecretError::File { path, why }),
        }
    }

    /// Value of `webhook-signature`. `at`: Unix seconds, as in `webhook-timestamp`.
    pub fn sign(&self, id: &str, at: i64, body: &[u8]) -> Result<String, String> {
        self.0.sign(id, at, body).map_err(|why| format!("the request cannot be signed: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_the_specification() {
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", "test").unwrap();
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature.unwrap(), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert!(Secret::new("whsec_", "test").is_err());
        let error = Secret::new("whsec_not base64 !", "DUALTRACK_WEBHOOK_SECRET").unwrap_err().to_string();
        assert!(error.contains("DUALTRACK_WEBHOOK_SECRET") && !error.contains("not base64"), "{error}");
    }
}
