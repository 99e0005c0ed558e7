//! The sockets that a gateway listens on.

use std::io;
use std::net::SocketAddr;

use admin::admin::Admin;
use config::{Config, ConfigError, Limits};
use listen::{AdminListener, Listeners, TlsListener};
use tokio::net::{TcpListener, TcpSocket};

/// The sockets of clients, and of the admin address if there is one.
pub(super) struct Sockets {
    clients: Vec<TcpListener>,
    admin: Option<TcpListener>,
}

impl Sockets {
    /// Opens the sockets of a configuration.
    pub(super) fn bind(config: &Config) -> Result<Self, ConfigError> {
        Ok(Self {
            clients: bind(&config.listen, "--listen", &config.limits)?,
            admin: bind(config.admin.as_slice(), "--admin", &config.limits)?.pop(),
        })
    }

    pub(super) fn client_addresses(&self) -> Vec<SocketAddr> {
        self.clients.iter().filter_map(address).collect()
    }

    pub(super) fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().and_then(address)
    }

    /// The listeners that serve on these sockets.
    pub(super) fn listeners(
        self,
        tls: Option<TlsListener>,
        admin_tls: Option<TlsListener>,
        admin: Admin,
    ) -> Listeners {
        Listeners {
            clients: self.clients,
            tls,
            admin: self.admin.map(|listener| AdminListener {
                listener,
                tls: admin_tls,
                admin,
            }),
        }
    }
}

fn address(listener: &TcpListener) -> Option<SocketAddr> {
    listener.local_addr().ok()
}

fn bind(
    addresses: &[SocketAddr],
    option: &str,
    limits: &Limits,
) -> Result<Vec<TcpListener>, ConfigError> {
    let bound = addresses.iter().map(|address| {
        listen(*address, limits).map_err(|error| {
            let advice = match error.kind() {
                io::ErrorKind::AddrInUse => {
                    format!(
                        "; stop the program that listens there, or choose another with {option}"
                    )
                }
                io::ErrorKind::PermissionDenied => {
                    format!("; choose a port above 1023, or another address, with {option}")
                }
                _ => String::new(),
            };
            ConfigError::one(format!("cannot listen on {address}: {error}{advice}"))
        })
    });
    bound.collect()
}

/// Opens a listener whose connections have the configured send buffer.
fn listen(address: SocketAddr, limits: &Limits) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    socket.set_reuseaddr(true)?;
    // Accepted sockets inherit the listener's size, up to the maximum of the system.
    if let Some(size) = limits.send_buffer {
        socket.set_send_buffer_size(u32::try_from(size.as_u64()).unwrap_or(u32::MAX))?;
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

const BACKLOG: u32 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_that_is_taken_names_its_option() {
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = other.local_addr().unwrap();
        for option in ["--listen", "--admin"] {
            let error = bind(&[address], option, &Limits::default()).unwrap_err();
            let error = error.to_string();
            assert!(
                error.starts_with(&format!("cannot listen on {address}: ")),
                "{error}"
            );
            let advice =
                format!("; stop the program that listens there, or choose another with {option}");
            assert!(error.ends_with(&advice), "{error}");
        }
    }
}
