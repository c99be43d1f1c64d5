//! Settings that cannot be used are refused before anything is connected, by name, value and rule.

use std::time::Duration;

use assignment_lock::{RedisClient, RedisConfig};
use secrecy::SecretString;

fn refused(config: &RedisConfig) -> String {
    config.validate().expect_err("a setting that cannot be used").to_string()
}

fn secret(text: &str) -> SecretString {
    SecretString::from(text.to_owned())
}

#[test]
fn addresses() {
    for url in ["redis://127.0.0.1", "redis://h:6380/3", "rediss://lock.example:6380", "redis://[::1]:6379"] {
        RedisConfig::new(url).validate().expect(url);
    }
    let form = "redis://HOST[:PORT][/DATABASE] or rediss://…";
    for url in ["localhost:6379", "http://h", "redis://", "redis://h/x", "redis://h:0x1", "redis://h?protocol=3"] {
        let text = refused(&RedisConfig::new(url));
        assert!(text.starts_with(&format!("url = {url}: {form}")), "{text}");
    }
    let text = refused(&RedisConfig::new("redis://me:canary@h"));
    assert!(text.starts_with("url = redis://…@…: user and password") && !text.contains("canary"), "{text}");
}

#[test]
fn everything_else() {
    let new = || RedisConfig::new("rediss://h");
    let plain = RedisConfig::new("redis://h");
    let cert = b"-----BEGIN CERTIFICATE-----\n".to_vec();
    let client = RedisClient { cert_pem: cert.clone(), key_pem: secret("canary") };
    let ms = Duration::from_millis;
    let cases = [
        (RedisConfig { user: Some("u".into()), ..new() }, "user = u: a user needs a password"),
        (RedisConfig { password: Some(secret("")), ..new() }, "password = empty: leave it out"),
        (RedisConfig { connect_timeout: ms(9), ..new() }, "connect_timeout = 9 ms: 10 to 30000 ms"),
        (RedisConfig { response_timeout: ms(30_001), ..new() }, "response_timeout = 30001 ms: 10 to 30000 ms"),
        (RedisConfig { key_prefix: "a b".into(), ..new() }, "key_prefix = \"a b\": at most 64 visible ASCII"),
        (RedisConfig { key_prefix: "x".repeat(65), ..new() }, "key_prefix = \"xxx"),
        (RedisConfig { ca_pem: Some(cert.clone()), ..plain.clone() }, "ca_pem = given: certificates are for rediss://"),
        (RedisConfig { client: Some(client.clone()), ..plain }, "client = given: certificates are for rediss://"),
        (RedisConfig { ca_pem: Some(b"nothing".to_vec()), ..new() }, "ca_pem = given: holds no PEM certificate"),
        (RedisConfig { client: Some(client), ..new() }, "client.key_pem = hidden: holds no PEM private key"),
    ];
    for (config, start) in cases {
        let text = refused(&config);
        assert!(text.starts_with(start) && !text.contains("canary"), "{text:?} does not start with {start:?}");
    }
    let broken =
        RedisConfig { ca_pem: Some(b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n".to_vec()), ..new() };
    assert!(refused(&broken).starts_with("ca_pem, client = certificates: "), "{}", refused(&broken));
}
