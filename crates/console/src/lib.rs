#![doc = include_str!("../README.md")]

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::sync::OnceLock;

use flate2::Compression;
use flate2::write::GzEncoder;

/// A file of the console.
#[derive(Debug)]
pub struct File {
    /// The name, such as `app.js`.
    pub name: &'static str,
    /// The media type.
    pub media_type: &'static str,
    source: &'static str,
    content: OnceLock<Content>,
}

/// The content of a file as it is served: without comments.
#[derive(Debug)]
pub struct Content {
    /// The text as it is.
    pub plain: Encoded,
    /// The text compressed with gzip.
    pub gzip: Encoded,
}

/// The content of a file in one encoding.
#[derive(Debug)]
pub struct Encoded {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The [entity tag](https://www.rfc-editor.org/rfc/rfc9110.html#name-etag) with its quotes. It
    /// changes with the content, and is another one in each encoding.
    pub tag: String,
}

impl File {
    /// The content, which is made when it is first asked for.
    pub fn content(&self) -> &Content {
        self.content.get_or_init(|| Content::new(self.source))
    }
}

impl Content {
    fn new(source: &str) -> Self {
        let plain = without_comments(source).into_bytes();
        let mut hasher = DefaultHasher::new();
        plain.hash(&mut hasher);
        let hash = hasher.finish();
        Self {
            gzip: Encoded {
                // Writing to memory does not fail.
                bytes: gzip(&plain).unwrap_or_default(),
                tag: format!("\"{hash:016x}-gzip\""),
            },
            plain: Encoded {
                bytes: plain,
                tag: format!("\"{hash:016x}\""),
            },
        }
    }
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Empties the lines that are only a comment, or a part of one. The others keep their numbers, so that an
/// error of the browser names the line of the source.
fn without_comments(source: &str) -> String {
    let mut is_open = false;
    let lines = source.lines().map(|line| {
        let text = line.trim();
        let is_block = is_open || text.starts_with("/*");
        let end = text.find("*/");
        is_open = is_block && end.is_none();
        // Code may follow a comment about its type.
        let is_whole = end.is_none_or(|end| end + 2 == text.len());
        let is_comment = is_block && is_whole || text.starts_with("//");
        if is_comment { "" } else { line }
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The [content security policy](https://www.w3.org/TR/CSP3/) with which all files are served: scripts,
/// styles and requests of the same origin only, no frames, and no HTML from strings.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'";

/// The file of a path: `index.html` for `/`, and the others below `/console/`.
pub fn file(path: &str) -> Option<&'static File> {
    let name = match path {
        "/" => "index.html",
        _ => path.strip_prefix("/console/")?,
    };
    FILES.iter().find(|file| file.name == name)
}

/// Declares the files with their media types.
macro_rules! files {
    ($($name:literal: $media_type:ident,)*) => {
        /// All files.
        pub static FILES: [File; [$($name),*].len()] = [$(File {
            name: $name,
            media_type: $media_type,
            source: include_str!(concat!("../assets/", $name)),
            content: OnceLock::new(),
        },)*];
    };
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SVG: &str = "image/svg+xml";
const SCRIPT: &str = "text/javascript; charset=utf-8";

files! {
    "index.html": HTML,
    "about.js": SCRIPT,
    "api.js": SCRIPT,
    "app.css": CSS,
    "app.js": SCRIPT,
    "audit.js": SCRIPT,
    "chart.js": SCRIPT,
    "dom.js": SCRIPT,
    "icon.svg": SVG,
    "key-form.js": SCRIPT,
    "keys.js": SCRIPT,
    "live.js": SCRIPT,
    "models.js": SCRIPT,
    "parts.js": SCRIPT,
    "play-answer.js": SCRIPT,
    "play-code.js": SCRIPT,
    "play-composer.js": SCRIPT,
    "play-events.js": SCRIPT,
    "play-exchange.js": SCRIPT,
    "play-form.js": SCRIPT,
    "play-markdown.js": SCRIPT,
    "play-mask.js": SCRIPT,
    "play-request.js": SCRIPT,
    "play-tape.js": SCRIPT,
    "play.js": SCRIPT,
    "prices.js": SCRIPT,
    "request.js": SCRIPT,
    "requests.js": SCRIPT,
    "session.js": SCRIPT,
    "theme.js": SCRIPT,
    "upstreams.js": SCRIPT,
    "usage.js": SCRIPT,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Read as _;
    use std::path::Path;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let names = std::fs::read_dir(folder).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let served = FILES.iter().map(|file| file.name.to_owned());
        assert_eq!(
            names.collect::<BTreeSet<_>>(),
            served.collect::<BTreeSet<_>>()
        );
        assert_eq!(file("/").unwrap().name, "index.html");
        assert_eq!(file("/console/app.js").unwrap().media_type, SCRIPT);
        assert!(file("/console/").is_none() && file("/console/../Cargo.toml").is_none());
    }

    #[test]
    fn all_files_have_at_most_80_kib_as_they_are_transferred() {
        let sizes = FILES.iter().map(|file| file.content().gzip.bytes.len());
        let sum: usize = sizes.sum();
        assert!(sum <= 80 << 10, "{sum} bytes");
    }

    #[test]
    fn both_encodings_have_the_same_text_and_their_own_tags() {
        let mut tags = BTreeSet::new();
        for file in &FILES {
            let Content { plain, gzip } = file.content();
            let mut text = Vec::new();
            GzDecoder::new(&*gzip.bytes).read_to_end(&mut text).unwrap();
            assert_eq!(text, plain.bytes, "{}", file.name);
            tags.extend([&plain.tag, &gzip.tag]);
        }
        assert_eq!(tags.len(), 2 * FILES.len());
    }

    #[test]
    fn lines_of_comments_are_empty_and_others_stay() {
        let source = "// One.\n/** Two. */\n/*\n * Three.\n */\n  a(); // four\n/** @type {A} */ (b);\nc(\"//d\");\n";
        assert_eq!(
            without_comments(source),
            "\n\n\n\n\n  a(); // four\n/** @type {A} */ (b);\nc(\"//d\");\n"
        );
        let page = file("/").unwrap();
        assert_eq!(without_comments(page.source), page.source);
    }

    /// A line of a template is no comment, whatever it begins with.
    #[test]
    fn no_template_has_a_line_that_looks_like_a_comment() {
        // Its regular expressions have backticks, and it has no template of several lines.
        let others = FILES.iter().filter(|file| file.name != "play-markdown.js");
        for file in others {
            let served = without_comments(file.source);
            let mut ticks = 0;
            for (line, served) in file.source.lines().zip(served.lines()) {
                assert!(served == line || ticks % 2 == 0, "{}: {line}", file.name);
                ticks += served
                    .replace("\\\\", "")
                    .replace("\\`", "")
                    .matches('`')
                    .count();
            }
            assert_eq!(ticks % 2, 0, "{}", file.name);
        }
    }

    /// The browser learns of all modules from the page, instead of from each other.
    #[test]
    fn the_page_loads_every_module_at_once() {
        let page = file("/").unwrap().source;
        let loaded = page.lines().filter_map(|line| {
            let name = line.strip_prefix("<link rel=\"modulepreload\" href=\"/console/")?;
            name.strip_suffix("\">")
        });
        let scripts = FILES.iter().filter(|file| file.media_type == SCRIPT);
        let modules = scripts.map(|file| file.name);
        // One is the module itself, and the other has to run before the page is drawn.
        let modules = modules.filter(|name| !["app.js", "theme.js"].contains(name));
        assert_eq!(loaded.collect::<Vec<_>>(), modules.collect::<Vec<_>>());
    }

    /// Names from other origins would need a network, and strings that become HTML or code an exemption
    /// from the content security policy.
    #[test]
    fn scripts_use_no_other_origin_and_no_html_from_strings() {
        const FORBIDDEN: [&str; 9] = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "import(\"http",
            "<script>",
            "<style",
        ];
        for file in &FILES {
            for word in FORBIDDEN {
                assert!(!file.source.contains(word), "{} has {word:?}", file.name);
            }
        }
    }
}
