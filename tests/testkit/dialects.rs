//! The cases: bytes that a server sends, and the answer that a client of the gateway is owed.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use simulator::Protocol;

use crate::reading::{Call, Reason, Usage};
use crate::requests::{PROTOCOLS, TEXT_PROTOCOLS, protocol_name};

/// A case.
#[derive(Debug)]
pub struct Case {
    /// Its folder and the name of its files, such as `azure-openai/first-chunk-empty`.
    pub name: String,
    /// The protocol of the upstream.
    pub protocol: Protocol,
    /// True if the owed answer is open to another ruling.
    pub is_soft: bool,
    /// The response around the body.
    pub wire: Wire,
    clients: Vec<Protocol>,
    stream: Option<Vec<u8>>,
    plain: Option<Vec<u8>>,
    /// The modes in which its one body is sent.
    modes: Option<Vec<Mode>>,
    owed: toml::Table,
}

/// The form of reply that a client requests.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A stream of events.
    Stream,
    /// A plain reply.
    Plain,
}

impl Mode {
    /// Returns its name in the cases.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Plain => "plain",
        }
    }
}

/// The response around the body.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wire {
    /// The status; 200 if absent.
    pub status: Option<u16>,
    /// The content type; if absent, the type for a stream or for JSON, by the form of the body.
    pub content_type: Option<String>,
    /// Other headers.
    pub headers: Vec<(String, String)>,
    /// The end of the body.
    pub ends: Option<Ends>,
}

/// The end of the body.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Ends {
    /// With the last chunk.
    Chunked,
    /// After the length that the head states.
    Length,
    /// The connection is closed before the last chunk.
    Cut,
    /// The connection is closed before the length that the head states.
    Short,
    /// With the connection.
    Close,
}

/// The result that a client has to see.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owed {
    /// The outcome that a client has to see.
    pub outcome: Outcome,
    /// The reason of an incomplete reply.
    #[serde(default)]
    pub reason: Option<Reason>,
    /// Texts and refusals; of Images the picture.
    #[serde(default)]
    pub text: Option<String>,
    /// The reasoning.
    #[serde(default)]
    pub reasoning: Option<String>,
    /// The function calls.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// The token counts.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// The upstream's own word for the end, which clients of its protocol may see.
    #[serde(default)]
    pub word: Option<String>,
}

/// The outcome that a client has to see.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A complete reply.
    Complete,
    /// An incomplete reply.
    Incomplete,
    /// A failure.
    Failure,
    /// Incomplete or a failure.
    NotComplete,
}

/// The file of a case.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    server: String,
    protocol: String,
    source: String,
    says: String,
    clients: Option<Vec<String>>,
    modes: Option<Vec<Mode>>,
    level: Option<Level>,
    owed: toml::Table,
    #[serde(default)]
    wire: Wire,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Soft,
}

impl Case {
    /// All cases, ordered by their names.
    pub fn all() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/cases");
        let files = entries(&root)
            .into_iter()
            .flat_map(|server| entries(&server));
        files
            .filter(|path| path.extension().is_some_and(|kind| kind == "toml"))
            .map(|path| Self::read(&path))
            .collect()
    }

    /// The recorded streams and replies of the vendors, as cases without a ruling of their own.
    pub fn recorded() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let files = entries(&root.join("../../crates/translate/tests/it/fixtures"));
        let cases: Vec<_> = files
            .iter()
            .filter_map(|path| Self::of_fixture(path))
            .collect();
        assert!(!cases.is_empty(), "no fixture");
        cases
    }

    /// Returns the case of a recorded answer, unless the file is something else.
    fn of_fixture(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let is_stream = name.ends_with(".sse");
        let (protocol, rest) = name.split_once('-')?;
        if !is_stream && !rest.starts_with("response-") {
            return None;
        }
        let protocol = self::protocol(protocol);
        let body = Some(fs::read(path).unwrap());
        let (stream, plain) = if is_stream {
            (body, None)
        } else {
            (None, body)
        };
        Some(Self {
            name: format!("recorded/{name}"),
            protocol,
            is_soft: false,
            wire: Wire::default(),
            clients: match protocol {
                Protocol::Images => vec![Protocol::Images],
                _ => TEXT_PROTOCOLS.to_vec(),
            },
            stream,
            plain,
            modes: None,
            owed: toml::Table::from_iter([("outcome".into(), "complete".into())]),
        })
    }

    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let file: File =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let stem = path.file_stem().unwrap().to_str().unwrap();
        assert!(
            path.parent()
                .is_some_and(|folder| folder.ends_with(&file.server)),
            "{stem}: another server's folder"
        );
        assert!(
            !file.source.is_empty() && !file.says.is_empty(),
            "{stem}: no source, or no description"
        );
        let protocol = protocol(&file.protocol);
        let body = |kind| fs::read(path.with_extension(kind)).ok();
        let case = Self {
            name: format!("{}/{stem}", file.server),
            protocol,
            is_soft: file.level.is_some(),
            wire: file.wire,
            clients: match file.clients {
                Some(clients) => clients.iter().map(|name| self::protocol(name)).collect(),
                None if protocol == Protocol::Images => vec![Protocol::Images],
                None => TEXT_PROTOCOLS.to_vec(),
            },
            stream: body("sse"),
            plain: body("json"),
            modes: file.modes,
            owed: file.owed,
        };
        assert!(!case.modes().is_empty(), "{}: no body", case.name);
        case
    }

    /// The name of its server, which is its folder.
    pub fn server(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    /// The number of its bodies.
    pub fn bodies(&self) -> usize {
        usize::from(self.stream.is_some()) + usize::from(self.plain.is_some())
    }

    /// The clients that it is for, and their modes.
    pub fn visits(&self) -> Vec<(Protocol, Mode)> {
        let modes = self.modes();
        self.clients
            .iter()
            .flat_map(|client| modes.iter().map(|mode| (*client, *mode)))
            .collect()
    }

    fn modes(&self) -> Vec<Mode> {
        let has = |mode| match mode {
            Mode::Stream => self.stream.is_some(),
            Mode::Plain => self.plain.is_some(),
        };
        let own = || {
            [Mode::Stream, Mode::Plain]
                .into_iter()
                .filter(|mode| has(*mode))
                .collect()
        };
        self.modes.clone().unwrap_or_else(own)
    }

    /// The body of the response to a request in this mode, and whether it is a stream.
    pub fn body(&self, mode: Mode) -> (&[u8], bool) {
        let stream = self.stream.as_deref().map(|body| (body, true));
        let plain = self.plain.as_deref().map(|body| (body, false));
        let body = match mode {
            Mode::Stream => stream.or(plain),
            Mode::Plain => plain.or(stream),
        };
        body.unwrap()
    }

    /// Returns the result that a client has to see in this mode.
    pub fn owed(&self, client: Protocol, mode: Mode) -> Owed {
        self.merged(&[protocol_name(client), mode.name()])
    }

    /// Returns the token counts of the account in this mode, whatever the client gets.
    pub fn counted(&self, mode: Mode) -> Option<Usage> {
        self.merged(&[mode.name()]).usage
    }

    fn merged(&self, wanted: &[&str]) -> Owed {
        let (mut owed, mut special) = (toml::Table::new(), Vec::new());
        for (key, value) in &self.owed {
            match value {
                toml::Value::Table(table) if key != "usage" => special.push((key.as_str(), table)),
                value => drop(owed.insert(key.clone(), value.clone())),
            }
        }
        for wanted in wanted {
            let tables = special.iter().filter(|(key, _)| key == wanted);
            owed.extend(tables.flat_map(|(_, table)| (*table).clone()));
        }
        owed.try_into()
            .unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

/// The files in a folder, ordered by their names.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    entries
}

fn protocol(name: &str) -> Protocol {
    PROTOCOLS
        .into_iter()
        .find(|protocol| protocol_name(*protocol) == name)
        .unwrap_or_else(|| panic!("protocol {name:?}"))
}
