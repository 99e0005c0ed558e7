#![doc = include_str!("../README.md")]

/// A file of the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    /// The name, such as `app.js`.
    pub name: &'static str,
    /// The media type.
    pub media_type: &'static str,
    /// The content.
    pub bytes: &'static [u8],
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
        pub const FILES: &[File] = &[$(File {
            name: $name,
            media_type: $media_type,
            bytes: include_bytes!(concat!("../assets/", $name)),
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
    use std::io::Write as _;
    use std::path::Path;

    use flate2::Compression;
    use flate2::write::GzEncoder;

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

    /// Compressed together, as a release has them.
    #[test]
    fn all_files_together_have_at_most_80_kib_compressed() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        for file in FILES {
            encoder.write_all(file.bytes).unwrap();
        }
        let compressed = encoder.finish().unwrap().len();
        assert!(compressed <= 80 << 10, "{compressed} bytes");
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
        for file in FILES {
            let text = std::str::from_utf8(file.bytes).unwrap();
            for word in FORBIDDEN {
                assert!(!text.contains(word), "{} has {word:?}", file.name);
            }
        }
    }
}
