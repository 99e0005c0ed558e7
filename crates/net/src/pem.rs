//! Reads certificates and keys from PEM files (RFC 7468).

use std::path::Path;

use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::pem::{Error, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Reads the certificates of a file, which has to have at least one.
pub(crate) fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err("no certificate in PEM".to_owned()),
        Err(problem) => Err(in_words(&problem)),
    }
}

/// Reads the first private key of a file.
pub(crate) fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(file).map_err(|problem| match problem {
        Error::NoItemsFound => "no private key in PEM".to_owned(),
        problem => in_words(&problem),
    })
}

/// Reads the CAs of a file.
///
/// # Errors
/// When the file cannot be read or has no certificate, or when one of them cannot be a CA.
pub fn roots(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots
            .add(certificate)
            .map_err(|problem| problem.to_string())?;
    }
    Ok(roots)
}

/// Describes a problem without the contents of the file.
fn in_words(problem: &Error) -> String {
    match problem {
        Error::Io(problem) => problem.to_string(),
        Error::MissingSectionEnd { .. } => "PEM without an END line".to_owned(),
        Error::IllegalSectionStart { .. } => "PEM with a malformed BEGIN line".to_owned(),
        problem => problem.to_string(),
    }
}
