//! The client of the admin API, for the commands that manage a running gateway.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use auth::Key;
use bytes::Bytes;
use config::ConfigError;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::time::timeout;
use url::{Host, Url};

/// A gateway on this machine, and its admin key.
pub(crate) struct AdminClient {
    address: SocketAddr,
    key: Key,
}

impl AdminClient {
    /// Creates a client for the admin address `url`. It has to be on this machine, because the key
    /// is sent without encryption.
    ///
    /// # Errors
    /// When the URL is not `http` and a loopback address.
    pub(crate) fn new(url: &Url, key: Key) -> Result<Self, ConfigError> {
        let ip = match url.host() {
            Some(Host::Domain("localhost")) => Some(Ipv4Addr::LOCALHOST.into()),
            Some(Host::Ipv4(ip)) => Some(IpAddr::V4(ip)),
            Some(Host::Ipv6(ip)) => Some(IpAddr::V6(ip)),
            _ => None,
        };
        let ip = ip.filter(|ip| ip.is_loopback() && url.scheme() == "http" && url.path() == "/");
        let Some((ip, port)) = ip.zip(url.port_or_known_default()) else {
            return Err(ConfigError::one(format!(
                "--admin: is '{url}', but must be http and a loopback address, such as http://127.0.0.1:9090"
            )));
        };
        Ok(Self {
            address: SocketAddr::new(ip, port),
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
        let address = self.address;
        let answered = asked.unwrap_or_else(|_| Err(format!("no answer within {TIMEOUT:?}")));
        let (status, body) =
            answered.map_err(|problem| ConfigError::one(format!("http://{address}: {problem}")))?;
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        if (200..300).contains(&status) && !answer.is_null() {
            return Ok(answer);
        }
        let message = answer["error"]["message"].as_str();
        let message = message.unwrap_or("the answer is not of a gateway");
        Err(ConfigError::one(format!(
            "http://{address}: status {status}: {message}"
        )))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Bytes), String> {
        let mut authorization =
            HeaderValue::from_str(&format!("Bearer {}", self.key.expose())).map_err(text)?;
        authorization.set_sensitive(true);
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.address.to_string())
            .header(AUTHORIZATION, authorization)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(text)?;
        exchange(self.address, request).await
    }
}

/// Sends a request on a connection of its own, and returns the status and the body of the response.
pub(super) async fn exchange(
    address: SocketAddr,
    request: Request<Full<Bytes>>,
) -> Result<(u16, Bytes), String> {
    let socket = net::connect(address).await.map_err(text)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await.map_err(text)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(text)?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), MAX_ANSWER);
        let body = body.collect().await.map_err(text)?;
        Ok((status, body.to_bytes()))
    };
    tokio::pin!(exchange);
    tokio::select! {
        answered = &mut exchange => answered,
        // Whatever has ended the connection, the exchange reports it.
        _ = connection => exchange.await,
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
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
        AdminClient::new(&url.parse().unwrap(), key)
    }

    #[test]
    fn the_key_stays_on_this_machine() {
        for url in [
            "http://127.0.0.1:9090",
            "http://localhost:9090",
            "http://[::1]:9090/",
        ] {
            assert!(client(url).is_ok(), "{url}");
        }
        for url in [
            "http://10.0.0.1:9090",
            "http://gateway.example:9090",
            "https://127.0.0.1:9090",
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
