//! The configuration of TLS clients.

use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Returns the configuration of a client that trusts `roots`: TLS 1.2 and 1.3, only HTTP/1.1 in
/// ALPN, and no client certificate.
///
/// # Panics
/// Never: the cryptography is built in, and supports these versions.
#[must_use]
pub fn client_config(roots: RootCertStore) -> ClientConfig {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports the default TLS versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

/// Returns the public CAs that browsers trust.
#[must_use]
pub fn public_roots() -> RootCertStore {
    RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    }
}
