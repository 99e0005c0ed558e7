//! `[tls]` and `[admin_tls]`: the certificates of the listeners.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

wire::read_objects!(Tls);

/// The certificate of a listener. All files are PEM, and a reload reads them again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Tls {
    /// The certificate, followed by the intermediate certificates up to a CA that clients trust.
    #[schemars(example = &"/etc/sluicegate/fullchain.pem")]
    pub certificate: PathBuf,
    /// The private key of the certificate, in PKCS #8, PKCS #1 or SEC 1.
    #[schemars(example = &"/etc/sluicegate/privkey.pem")]
    pub key: PathBuf,
    /// The CAs of client certificates. If it is set, only clients with a certificate of one of these
    /// CAs can connect. Absent: clients need no certificate.
    #[schemars(example = &"/etc/sluicegate/clients.pem")]
    pub client_ca: Option<PathBuf>,
}
