//! An upstream that sends the bytes of a case, whatever it is asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::{io, thread};

use serde_json::Value;

use testkit::dialects::{Case, Ends, Mode};

/// Serves all cases on a new port until the end of the process: case N below the path `/N`. Returns
/// the base URL.
pub(crate) fn start(cases: Arc<Vec<Case>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let cases = Arc::clone(&cases);
            // The gateway may close a connection at any time.
            thread::spawn(move || drop(answer(socket, &cases)));
        }
    });
    url
}

/// Answers one request, and closes the connection.
fn answer(mut socket: TcpStream, cases: &[Case]) -> io::Result<()> {
    let (path, body) = request(&socket)?;
    let number = path
        .split('/')
        .find(|part| !part.is_empty())
        .and_then(|part| part.parse::<usize>().ok());
    let case = number
        .and_then(|number| cases.get(number))
        .unwrap_or_else(|| panic!("no case at {path}"));
    let body: Value = serde_json::from_slice(&body)?;
    let mode = if body["stream"] == true {
        Mode::Stream
    } else {
        Mode::Plain
    };
    socket.write_all(&response(case, mode))?;
    socket.shutdown(Shutdown::Write)?;
    // Waits for the gateway, so that nothing that was sent is lost by a reset.
    io::copy(&mut socket, &mut io::sink()).map(drop)
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
fn response(case: &Case, mode: Mode) -> Vec<u8> {
    let (body, is_stream) = case.body(mode);
    let wire = &case.wire;
    let kind = if is_stream {
        "text/event-stream"
    } else {
        "application/json"
    };
    let kind = wire.content_type.as_deref().unwrap_or(kind);
    let ends = wire.ends.unwrap_or(if is_stream {
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
