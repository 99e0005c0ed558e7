//! The certificate of the server, and who is let in over TCP: only users with the password, and only
//! with TLS.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::outcome::{At as _, Outcome};
use crate::process;

/// The password of the user, as it is and as an address has it.
pub(super) const PASSWORD: &str = "p@ss:w/rd";
const ENCODED: &str = "p%40ss%3Aw%2Frd";

/// The settings of the server, whose folder is beside the files.
pub(super) const SETTINGS: [&str; 6] = [
    "-c",
    "ssl=on",
    "-c",
    "ssl_cert_file=../server.pem",
    "-c",
    "ssl_key_file=../server.key",
];

/// The file with the CA.
const CA: &str = "ca.pem";

/// Makes a CA, and a certificate for `localhost`, by commands that run in the folder.
pub(super) fn create(command: impl Fn(&Path) -> Command) -> Outcome {
    let openssl = || {
        let mut openssl = command(Path::new("openssl"));
        openssl.args(["req", "-x509", "-days", "2", "-noenc", "-newkey", "ec"]);
        openssl.args(["-pkeyopt", "ec_paramgen_curve:P-256"]);
        openssl.stderr(std::process::Stdio::null());
        openssl
    };
    let mut ca = openssl();
    ca.args(["-subj", "/CN=Tests", "-keyout", "ca.key", "-out", CA]);
    process::captured(&mut ca)?;
    let mut server = openssl();
    server.args(["-subj", "/CN=localhost", "-CA", CA, "-CAkey", "ca.key"]);
    server.args(["-addext", "subjectAltName=DNS:localhost"]);
    server.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    server.args(["-keyout", "server.key", "-out", "server.pem"]);
    process::captured(&mut server).map(drop)
}

/// Writes the list of who is let in.
pub(super) fn admit(data: &Path) -> Outcome {
    let path = data.join("pg_hba.conf");
    // A connection over TCP without TLS fits no line, and is refused.
    let lines = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
    fs::write(&path, lines).at(&path)
}

/// The address for connections over TCP, without settings of TLS but the CA.
pub(super) fn url(folder: &Path, port: u16) -> String {
    let ca = folder.join(CA);
    format!(
        "postgres://postgres:{ENCODED}@localhost:{port}/postgres?sslrootcert={}",
        ca.display()
    )
}
