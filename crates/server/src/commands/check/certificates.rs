//! Reads the certificates of the listeners, for `sluicegate check`.

use config::{Config, ConfigError};

use crate::start::certificates::{Listener, date, expiry_problem};

/// Returns a line for the certificate of each listener that has TLS.
///
/// # Errors
/// When a certificate cannot be served.
pub(crate) fn report(config: &Config) -> Result<String, ConfigError> {
    let (mut report, mut problems) = (String::new(), Vec::new());
    for listener in Listener::ALL {
        let Some(files) = listener.files(config) else {
            continue;
        };
        let (section, file) = (listener.section(), files.certificate.display());
        match listener.read(files, &config.limits) {
            Err(problem) => problems.push(problem),
            Ok(tls) => {
                report += &match expiry_problem(&tls) {
                    Some(problem) => format!("note: {section}.certificate: {file} {problem}\n"),
                    None => format!("{section}: {file} is valid until {}\n", date(tls.not_after)),
                };
            }
        }
    }
    match problems.is_empty() {
        true => Ok(report),
        false => Err(ConfigError::new(problems)),
    }
}
