//! The configuration of TLS servers, from PEM files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{Error, ServerConfig};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::time::Validity;

use crate::pem;

/// The PEM files of a server.
#[derive(Clone, Copy, Debug)]
pub struct ServerFiles<'a> {
    /// The certificate, followed by its intermediate certificates.
    pub certificate: &'a Path,
    /// The private key of the certificate.
    pub key: &'a Path,
    /// The CAs of clients; without it, clients need no certificate.
    pub client_ca: Option<&'a Path>,
}

/// The configuration of a server, and the validity of its certificate.
#[derive(Debug)]
pub struct ServerTls {
    /// The configuration: TLS 1.2 and 1.3, with the certificate for all names.
    pub config: ServerConfig,
    /// The beginning of the certificate's validity, since the Unix epoch.
    pub not_before: Duration,
    /// The end of the certificate's validity, since the Unix epoch.
    pub not_after: Duration,
}

/// A file that cannot be used.
#[derive(Debug)]
pub struct ServerFileError {
    /// The setting that names the file: `certificate`, `key` or `client_ca`.
    pub setting: &'static str,
    /// The file.
    pub file: PathBuf,
    /// The problem, in words.
    pub problem: String,
}

impl std::fmt::Display for ServerFileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (setting, file) = (self.setting, self.file.display());
        write!(f, "{setting}: {file}: {}", self.problem)
    }
}

impl std::error::Error for ServerFileError {}

impl ServerFiles<'_> {
    /// Reads the files. `protocols` are offered in ALPN, best first.
    ///
    /// An expired certificate is no error: whether it is accepted is the decision of clients.
    ///
    /// # Errors
    /// When a file cannot be read, is not PEM with the right contents, or when the key is not of the
    /// certificate.
    pub fn read(&self, protocols: &[&[u8]]) -> Result<ServerTls, ServerFileError> {
        let chain =
            pem::certificates(self.certificate).map_err(error("certificate", self.certificate))?;
        let validity = validity(&chain).map_err(error("certificate", self.certificate))?;
        let key = pem::private_key(self.key).map_err(error("key", self.key))?;
        let clients = self.client_verifier()?;
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|problem| problem.to_string())
            .map_err(error("certificate", self.certificate))?;
        let mut config = builder
            .with_client_cert_verifier(clients)
            .with_single_cert(chain, key)
            .map_err(|problem| match problem {
                Error::InconsistentKeys(_) => "is not the key of the certificate".to_owned(),
                problem => problem.to_string(),
            })
            .map_err(error("key", self.key))?;
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(ServerTls {
            config,
            not_before: validity.not_before.to_unix_duration(),
            not_after: validity.not_after.to_unix_duration(),
        })
    }

    fn client_verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, ServerFileError> {
        let Some(file) = self.client_ca else {
            return Ok(WebPkiClientVerifier::no_client_auth());
        };
        let roots = pem::roots(file).map_err(error("client_ca", file))?;
        let provider = Arc::new(ring::default_provider());
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|problem| problem.to_string())
            .map_err(error("client_ca", file))
    }
}

/// Returns the validity of the first certificate.
fn validity(chain: &[CertificateDer<'_>]) -> Result<Validity, String> {
    let first = chain.first().ok_or("no certificate")?;
    let parsed = Certificate::from_der(first).map_err(|problem| problem.to_string())?;
    Ok(parsed.tbs_certificate.validity)
}

fn error(setting: &'static str, file: &Path) -> impl FnOnce(String) -> ServerFileError {
    let file = file.to_owned();
    move |problem| ServerFileError {
        setting,
        file,
        problem,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{CertificateParams, KeyPair, date_time_ymd};
    use tempfile::TempDir;

    use super::*;

    /// A folder with a certificate and its key, valid from 2020 to 2021.
    fn folder() -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(["gate.example".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        fs::write(folder.path().join("certificate.pem"), certificate.pem()).unwrap();
        fs::write(folder.path().join("key.pem"), key.serialize_pem()).unwrap();
        folder
    }

    fn read(certificate: &Path, key: &Path, client_ca: Option<&Path>) -> Result<ServerTls, String> {
        let files = ServerFiles {
            certificate,
            key,
            client_ca,
        };
        files.read(&[b"h2"]).map_err(|error| error.to_string())
    }

    #[test]
    fn certificate_is_read_with_its_validity() {
        let folder = folder();
        let [certificate, key] =
            ["certificate.pem", "key.pem"].map(|name| folder.path().join(name));
        for client_ca in [None, Some(certificate.as_path())] {
            let tls = read(&certificate, &key, client_ca).unwrap();
            assert_eq!(tls.config.alpn_protocols, [b"h2"]);
            // 2020-01-01T00:00:00Z and 2021-01-01T00:00:00Z
            assert_eq!(tls.not_before.as_secs(), 1_577_836_800);
            assert_eq!(tls.not_after.as_secs(), 1_609_459_200);
        }
    }

    #[test]
    fn errors_name_the_setting_the_file_and_the_problem() {
        let (folder, other) = (folder(), folder());
        let [certificate, key, missing] =
            ["certificate.pem", "key.pem", "missing.pem"].map(|name| folder.path().join(name));
        let other = other.path().join("key.pem");
        let ca = Some(key.as_path());
        for (result, setting, file, problem) in [
            (
                read(&missing, &key, None),
                "certificate",
                &missing,
                "No such file or directory",
            ),
            (
                read(&key, &key, None),
                "certificate",
                &key,
                "no certificate in PEM",
            ),
            (
                read(&certificate, &missing, None),
                "key",
                &missing,
                "No such file or directory",
            ),
            (
                read(&certificate, &certificate, None),
                "key",
                &certificate,
                "no private key in PEM",
            ),
            (
                read(&certificate, &other, None),
                "key",
                &other,
                "is not the key of the certificate",
            ),
            (
                read(&certificate, &key, ca),
                "client_ca",
                &key,
                "no certificate in PEM",
            ),
        ] {
            let error = result.unwrap_err();
            let beginning = format!("{setting}: {}: ", file.display());
            assert!(error.starts_with(&beginning), "{error}");
            assert!(error.contains(problem), "{error}");
        }
    }
}
