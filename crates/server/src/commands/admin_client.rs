//! The client of the admin API, for the commands that manage a running gateway.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use auth::Key;
use bytes::Bytes;
use config::ConfigError;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use net::{Connection, Resolve as _, SystemResolver, Tcp, dial_any};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::{TlsConnector, TlsStream};
use url::{Host, Url};

/// The admin address of a gateway, and its admin key.
pub(crate) struct AdminClient {
    host: Host,
    port: u16,
    /// `None` without TLS.
    tls: Option<Arc<ClientConfig>>,
    key: Key,
}

/// The PEM files for admin addresses with TLS.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TlsFiles<'a> {
    /// The CAs of the gateway's certificate. Absent: the public ones.
    pub(crate) ca: Option<&'a Path>,
    /// A client certificate with its key.
    pub(crate) certificate: Option<&'a Path>,
}

impl AdminClient {
    /// Creates a client for the admin address `url`. Without TLS it has to be on this machine, because
    /// the key is sent without encryption.
    ///
    /// # Errors
    /// When the URL is neither `https` nor `http` with a loopback address, or a file cannot be used.
    pub(crate) fn new(url: &Url, key: Key, files: TlsFiles<'_>) -> Result<Self, ConfigError> {
        let has_tls = url.scheme() == "https";
        let host = url.host().map(|host| host.to_owned());
        let host = host.filter(|host| match (has_tls, host) {
            (true, _) => true,
            (false, _) if url.scheme() != "http" => false,
            (false, Host::Domain(name)) => name == "localhost",
            (false, Host::Ipv4(ip)) => ip.is_loopback(),
            (false, Host::Ipv6(ip)) => ip.is_loopback(),
        });
        let place = host.zip(url.port_or_known_default());
        let Some((host, port)) = place.filter(|_| url.path() == "/") else {
            return Err(ConfigError::one(format!(
                "--admin: is '{url}', but must be https, or http and a loopback address, such as http://127.0.0.1:9090"
            )));
        };
        let tls = has_tls
            .then(|| client_config(files).map(Arc::new))
            .transpose()?;
        Ok(Self {
            host,
            port,
            tls,
            key,
        })
    }

    /// Sends a request, and returns the JSON of its answer.
    ///
    /// # Errors
    /// When the gateway cannot be reached or refuses the request.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ConfigError> {
        let asked = timeout(TIMEOUT, self.send(method, path, body)).await;
        let url = self.url();
        let answered = asked.unwrap_or_else(|_| Err(format!("no answer within {TIMEOUT:?}")));
        let (status, body) =
            answered.map_err(|problem| ConfigError::one(format!("{url}: {problem}")))?;
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        if (200..300).contains(&status) && !answer.is_null() {
            return Ok(answer);
        }
        let message = answer["error"]["message"].as_str();
        let message = message.unwrap_or("the answer is not of a gateway");
        Err(ConfigError::one(format!(
            "{url}: status {status}: {message}"
        )))
    }

    /// The address, for errors.
    fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}:{}", self.host, self.port)
    }

    async fn connect(&self) -> io::Result<Box<dyn Connection>> {
        let addresses = match &self.host {
            Host::Ipv4(ip) => vec![(*ip, self.port).into()],
            Host::Ipv6(ip) => vec![(*ip, self.port).into()],
            Host::Domain(name) => SystemResolver::new(1).resolve(name, self.port).await?,
        };
        let name = match &self.host {
            Host::Ipv4(ip) => IpAddr::V4(*ip).into(),
            Host::Ipv6(ip) => IpAddr::V6(*ip).into(),
            Host::Domain(name) => ServerName::try_from(name.clone()).map_err(io::Error::other)?,
        };
        connect(addresses, self.tls.as_ref(), name).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Bytes), String> {
        let mut authorization = HeaderValue::from_str(&format!("Bearer {}", self.key.expose()))
            .map_err(|error| text(&error))?;
        authorization.set_sensitive(true);
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, format!("{}:{}", self.host, self.port))
            .header(AUTHORIZATION, authorization)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| text(&error))?;
        exchange(self.connect().await.map_err(|error| text(&error))?, request).await
    }
}

/// Connects to the first of the addresses that accepts, with TLS if it is given.
pub(super) async fn connect(
    addresses: Vec<SocketAddr>,
    tls: Option<&Arc<ClientConfig>>,
    name: ServerName<'static>,
) -> io::Result<Box<dyn Connection>> {
    let socket = dial_any(&Tcp, addresses).await?;
    let Some(tls) = tls else {
        return Ok(socket);
    };
    let connector = TlsConnector::from(Arc::clone(tls));
    let stream = connector.connect(name, socket).await?;
    Ok(Box::new(TlsStream::from(stream)))
}

/// Sends a request on a connection of its own, and returns the status and the body of the response.
pub(super) async fn exchange(
    socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
) -> Result<(u16, Bytes), String> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket))
        .await
        .map_err(|error| text(&error))?;
    let exchange = async {
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| text(&error))?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), MAX_ANSWER);
        let body = body.collect().await.map_err(|error| text(&*error))?;
        Ok((status, body.to_bytes()))
    };
    tokio::pin!(exchange);
    tokio::select! {
        answered = &mut exchange => answered,
        // The error of the exchange has the reason for which the connection has ended.
        _ = connection => exchange.await,
    }
}

fn client_config(files: TlsFiles<'_>) -> Result<ClientConfig, ConfigError> {
    let unusable = |option: &str, file: &Path, problem: String| {
        ConfigError::one(format!("{option}: {}: {problem}", file.display()))
    };
    let roots = files.ca.map_or_else(
        || Ok(net::public_roots()),
        |file| net::roots(file).map_err(|problem| unusable("--admin-ca", file, problem)),
    )?;
    match files.certificate {
        None => Ok(net::client_config(roots)),
        Some(file) => net::client_config_with_certificate(roots, file)
            .map_err(|problem| unusable("--admin-certificate", file, problem)),
    }
}

/// The error with its causes: the last one says why a server has refused the connection.
fn text<E: Error + ?Sized>(error: &E) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// The time for a request and its answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum length of an answer in bytes.
const MAX_ANSWER: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    fn client(url: &str) -> Result<AdminClient, ConfigError> {
        let key = Key::parse("sg_admin").unwrap();
        AdminClient::new(&url.parse().unwrap(), key, TlsFiles::default())
    }

    #[test]
    fn without_tls_the_key_stays_on_this_machine() {
        for url in [
            "http://127.0.0.1:9090",
            "http://localhost:9090",
            "http://[::1]:9090/",
            "https://10.0.0.1:9090",
            "https://gateway.example",
        ] {
            assert!(client(url).is_ok(), "{url}");
        }
        for url in [
            "http://10.0.0.1:9090",
            "http://gateway.example:9090",
            "https://127.0.0.1:9090/console",
            "http://127.0.0.1:9090/admin/v1",
        ] {
            let error = client(url).err().map(|error| error.to_string());
            assert!(error.unwrap().starts_with("--admin: is '"), "{url}");
        }
    }

    /// Answers one request with these bytes, and returns the request.
    async fn answered(bytes: &'static str) -> (String, Result<Value, ConfigError>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let length = socket.read(&mut head).await.unwrap();
            socket.write_all(bytes.as_bytes()).await.unwrap();
            head.truncate(length);
            String::from_utf8(head).unwrap()
        });
        let client = client(&url).unwrap();
        let answer = client.call(Method::GET, "/admin/v1/keys", None).await;
        (server.await.unwrap(), answer)
    }

    #[tokio::test]
    async fn an_answer_is_returned_and_an_error_is_reported() {
        let ok = "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{\"keys\":[]}";
        let (request, answer) = answered(ok).await;
        assert!(request.starts_with("GET /admin/v1/keys HTTP/1.1\r\n"));
        assert!(request.contains("\r\nauthorization: Bearer sg_admin\r\n"));
        assert_eq!(answer.unwrap(), serde_json::json!({"keys": []}));
        let refused = "HTTP/1.1 404 Not Found\r\ncontent-length: 40\r\n\r\n{\"error\":{\"message\":\"id: is not a key\"}}";
        let (_, answer) = answered(refused).await;
        let message = answer.unwrap_err().to_string();
        assert!(
            message.ends_with(": status 404: id: is not a key"),
            "{message}"
        );
        let (_, answer) = answered("").await;
        assert!(answer.is_err(), "the connection was closed");
    }
}
