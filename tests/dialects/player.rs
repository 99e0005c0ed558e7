//! An upstream that sends the bytes of a case, whatever it is asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::{io, thread};

use serde_json::Value;

use testkit::dialects::{Case, Ends, Mode};

/// An upstream that serves cases until the end of the process: case N below the path `/N`.
pub(crate) struct Player {
    /// The base URL.
    pub(crate) url: String,
    attempts: Attempts,
}

/// The number of times that the cut stream of a model was requested, by its last event.
type Attempts = Arc<Mutex<BTreeMap<(String, usize), u64>>>;

impl Player {
    /// Serves these cases on a new port.
    pub(crate) fn start(cases: Arc<Vec<Case>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let attempts = Attempts::default();
        let counted = Arc::clone(&attempts);
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (cases, attempts) = (Arc::clone(&cases), Arc::clone(&counted));
                // The gateway may close a connection at any time.
                thread::spawn(move || drop(answer(socket, &cases, &attempts)));
            }
        });
        Self { url, attempts }
    }

    /// Returns how often the stream of a model that is cut after this event was requested.
    pub(crate) fn attempts(&self, model: &str, last_event: usize) -> u64 {
        let name = (Value::from(model).to_string(), last_event);
        let attempts = self.attempts.lock().unwrap();
        attempts.get(&name).copied().unwrap_or(0)
    }
}

/// Answers one request, and closes the connection.
fn answer(mut socket: TcpStream, cases: &[Case], attempts: &Attempts) -> io::Result<()> {
    let (path, body) = request(&socket)?;
    let number = path
        .split('/')
        .find(|part| !part.is_empty())
        .and_then(|part| part.parse::<usize>().ok());
    let case = number
        .and_then(|number| cases.get(number))
        .unwrap_or_else(|| panic!("no case at {path}"));
    let cut = cut(&body);
    let body: Value = serde_json::from_slice(&body)?;
    if let Some(number) = cut {
        let name = (body["model"].to_string(), number);
        *attempts.lock().unwrap().entry(name).or_default() += 1;
    }
    let mode = if body["stream"] == true {
        Mode::Stream
    } else {
        Mode::Plain
    };
    socket.write_all(&response(case, mode, cut))?;
    socket.shutdown(Shutdown::Write)?;
    // Waits for the gateway, so that nothing that was sent is lost by a reset.
    io::copy(&mut socket, &mut io::sink()).map(drop)
}

/// Returns the prompt that has a stream cut after this event.
pub(crate) fn prompt_to_cut_after(event: usize) -> String {
    format!("{CUT}{event}.")
}

/// Returns the number of the last event that is sent, if the prompt has one.
fn cut(body: &[u8]) -> Option<usize> {
    let body = String::from_utf8_lossy(body);
    let (number, _) = body.split_once(CUT)?.1.split_once('.')?;
    number.parse().ok()
}

/// Returns the positions after the blank lines of a stream.
pub(crate) fn event_ends(stream: &[u8]) -> Vec<usize> {
    let is_end = |at: &usize| {
        let before = &stream[..*at];
        let ends = [&b"\n\n"[..], b"\r\n\r\n", b"\r\r"];
        ends.iter().any(|end| before.ends_with(end))
    };
    (1..=stream.len()).filter(is_end).collect()
}

/// Reads the path and the body of a request.
fn request(socket: &TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut reader = BufReader::new(socket);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().unwrap();
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((path, body))
}

/// The bytes of the response.
fn response(case: &Case, mode: Mode, cut: Option<usize>) -> Vec<u8> {
    let (body, is_stream) = case.body(mode);
    let body = match cut {
        Some(number) => &body[..event_ends(body)[number]],
        None => body,
    };
    let wire = &case.wire;
    let kind = if is_stream {
        "text/event-stream"
    } else {
        "application/json"
    };
    let kind = wire.content_type.as_deref().unwrap_or(kind);
    let ends = wire.ends.unwrap_or(if cut.is_some() {
        Ends::Cut
    } else if is_stream {
        Ends::Chunked
    } else {
        Ends::Length
    });
    let mut head = format!(
        "HTTP/1.1 {} Status\r\ncontent-type: {kind}\r\n",
        wire.status.unwrap_or(200)
    );
    for (name, value) in &wire.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &match ends {
        Ends::Chunked | Ends::Cut => "transfer-encoding: chunked\r\n".to_owned(),
        Ends::Length => format!("content-length: {}\r\n", body.len()),
        Ends::Short => format!("content-length: {}\r\n", body.len() + 1),
        Ends::Close => String::new(),
    };
    let mut bytes = (head + "connection: close\r\n\r\n").into_bytes();
    match ends {
        Ends::Chunked | Ends::Cut => {
            bytes.extend(format!("{:x}\r\n", body.len()).bytes());
            bytes.extend([body, b"\r\n"].concat());
            bytes.extend(if ends == Ends::Chunked {
                &b"0\r\n\r\n"[..]
            } else {
                b""
            });
        }
        Ends::Length | Ends::Short | Ends::Close => bytes.extend(body),
    }
    bytes
}

const CUT: &str = "Cut after event ";
