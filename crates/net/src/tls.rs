//! The configuration of TLS clients.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::client::WantsClientCert;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, ConfigBuilder, RootCertStore};

use crate::pem;

/// Returns the configuration of a client that trusts `roots`: TLS 1.2 and 1.3, only HTTP/1.1 in
/// ALPN, and no client certificate.
///
/// # Panics
/// Never: the cryptography is built in, and supports these versions.
#[must_use]
pub fn client_config(roots: RootCertStore) -> ClientConfig {
    http1(trusting(roots).with_no_client_auth())
}

/// Returns the same configuration with a client certificate: the certificate, its intermediate
/// certificates and its private key are in one PEM file.
///
/// # Errors
/// When the file cannot be read, or does not have a certificate and its key.
///
/// # Panics
/// As [`client_config`]: never.
pub fn client_config_with_certificate(
    roots: RootCertStore,
    file: &Path,
) -> Result<ClientConfig, String> {
    let chain = pem::certificates(file)?;
    let key = pem::private_key(file)?;
    let config = trusting(roots).with_client_auth_cert(chain, key);
    config.map(http1).map_err(|problem| problem.to_string())
}

fn trusting(roots: RootCertStore) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports the default TLS versions")
        .with_root_certificates(roots)
}

fn http1(mut config: ClientConfig) -> ClientConfig {
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
