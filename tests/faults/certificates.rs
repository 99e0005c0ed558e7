//! A certificate authority for tests, and the files of its certificates.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use testkit::Scratch;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::GATEWAY;

/// The name of the gateway.
pub(crate) const NAME: &str = "gate.example";

/// A certificate authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate, in PEM.
    pub(crate) pem: String,
}

/// A certificate and its key, in PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    /// The authority of the gateway.
    pub(crate) fn new() -> Self {
        Self::named("Test CA")
    }

    pub(crate) fn named(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// Issues a certificate for a name, valid until the end of this year.
    pub(crate) fn issue(&self, name: &str, last_year: i32) -> Identity {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(last_year, 12, 31);
        let key = KeyPair::generate().unwrap();
        Identity {
            certificate: params.signed_by(&key, &self.issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }

    /// Issues a certificate of the gateway that has not expired.
    pub(crate) fn current(&self) -> Identity {
        self.issue(NAME, 2099)
    }

    /// A client that trusts it, with a certificate of its own or without.
    pub(crate) fn client(
        &self,
        identity: Option<&Identity>,
        protocols: &[&[u8]],
    ) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        let own = CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap();
        roots.add(own).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(Identity { certificate, key }) => {
                let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Arc::new(config)
    }
}

/// The files of a certificate, in one folder.
pub(crate) struct Files {
    certificate: Scratch,
    key: Scratch,
}

impl Files {
    pub(crate) fn new(identity: &Identity) -> Self {
        Self {
            certificate: GATEWAY.file("certificate.pem", &identity.certificate),
            key: GATEWAY.file("key.pem", &identity.key),
        }
    }

    /// The section of the configuration with these files.
    pub(crate) fn section(&self, name: &str) -> String {
        let [certificate, key] = [&self.certificate, &self.key].map(|file| file.0.display());
        format!("[{name}]\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n")
    }

    /// Replaces both files, each at once.
    pub(crate) fn replace(&self, identity: &Identity) {
        for (file, text) in [
            (&self.key, &identity.key),
            (&self.certificate, &identity.certificate),
        ] {
            let next = file.0.with_extension("next");
            std::fs::write(&next, text).unwrap();
            std::fs::rename(&next, &file.0).unwrap();
        }
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.certificate.0.clone()
    }
}
