//! The configuration of TLS clients.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::client::WantsClientCert;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    WantsVerifier,
};

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
    with_certificate(trusting(roots), file)
}

/// Returns the configuration of a client that accepts every certificate, so that it does not know whom it
/// talks to: it may send no secret. `file` has its own certificate, as of
/// [`client_config_with_certificate`].
///
/// # Errors
/// When the file cannot be used.
///
/// # Panics
/// As [`client_config`]: never.
pub fn client_config_without_verification(file: Option<&Path>) -> Result<ClientConfig, String> {
    let algorithms = ring::default_provider().signature_verification_algorithms;
    let builder = builder()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(algorithms)));
    match file {
        None => Ok(http1(builder.with_no_client_auth())),
        Some(file) => with_certificate(builder, file),
    }
}

fn with_certificate(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    file: &Path,
) -> Result<ClientConfig, String> {
    let chain = pem::certificates(file)?;
    let key = pem::private_key(file)?;
    let config = builder.with_client_auth_cert(chain, key);
    config.map(http1).map_err(|problem| problem.to_string())
}

fn trusting(roots: RootCertStore) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    builder().with_root_certificates(roots)
}

fn builder() -> ConfigBuilder<ClientConfig, WantsVerifier> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports the default TLS versions")
}

/// Accepts every certificate whose key the server has.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
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
