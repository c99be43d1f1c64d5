//! Certificates as the driver wants them.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use secrecy::ExposeSecret as _;

use super::config::{CassandraRefused, CassandraTls, refused};

/// The client's side of TLS; `None` without.
///
/// # Errors
/// Names the part that is no certificate or no key.
pub(super) fn client_config(tls: Option<&CassandraTls>) -> Result<Option<Arc<ClientConfig>>, CassandraRefused> {
    let Some(tls) = tls else { return Ok(None) };
    let mut roots = RootCertStore::empty();
    for authority in certificates("tls.ca_pem", &tls.ca_pem)? {
        roots.add(authority).map_err(|why| refused("tls.ca_pem", "given", why))?;
    }
    // Named here: several providers of cryptography may be linked.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| refused("tls", "given", why))?
        .with_root_certificates(roots);
    let config = match &tls.client {
        None => builder.with_no_client_auth(),
        Some(client) => {
            let chain = certificates("tls.client.cert_pem", &client.cert_pem)?;
            let key = PrivateKeyDer::from_pem_slice(client.key_pem.expose_secret().as_bytes())
                .map_err(|_| refused("tls.client.key_pem", "hidden", "holds no PEM private key"))?;
            let fits = builder.with_client_auth_cert(chain, key);
            fits.map_err(|why| refused("tls.client", "certificate and key", why))?
        }
    };
    Ok(Some(Arc::new(config)))
}

fn certificates(field: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, CassandraRefused> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(refused(field, "given", "holds no PEM certificate")),
        Err(why) => Err(refused(field, "given", format!("holds no PEM certificate: {why}"))),
    }
}
