//! The multipart form of an edit, which is converted to the same request as the JSON form. Each part
//! is used, sent on to the server, or refused by its name.

use std::fmt;

use bytes::Bytes;
use picture::Format;
use serde::Deserialize;
use serde_json::Value;
use wire::{Code, Object, Path, Problem, Shape, Violations};

use crate::request::{Edit, FormFile, Generation, Reference};
use crate::source::Source;
use crate::validate::MAX_REFERENCES;

/// The kind of a form part, determined by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartKind {
    /// A setting, to be passed to [`Form::text`].
    Text,
    /// A file, to be passed to [`Form::picture`].
    Picture,
    /// A file that is neither an image nor a mask, to be passed to [`Form::file`].
    File,
}

/// Returns the kind of the part `name`. A part with a filename is never a setting, whatever its
/// name.
#[must_use]
pub fn part(name: &str, has_filename: bool) -> PartKind {
    if is_mask(name) || is_image(name) {
        PartKind::Picture
    } else if has_filename {
        PartKind::File
    } else {
        PartKind::Text
    }
}

/// Collects the parts of a form, in any order.
///
/// ```
/// use sluicegate_images::Form;
///
/// let mut form = Form::default();
/// form.text("prompt", "Add a red sail");
/// form.text("n", "2");
/// form.picture("image[]", b"\x89PNG\r\n\x1a\n\0\0\0\r"[..].into());
/// let edit = form.finish()?;
/// assert_eq!((edit.generation.n, edit.sources().count()), (Some(2), 1));
/// # Ok::<(), wire::Violations>(())
/// ```
#[derive(Default)]
pub struct Form {
    /// The settings, as in the JSON form.
    settings: Object,
    images: Vec<Bytes>,
    masks: Vec<Bytes>,
    /// The files of unknown names.
    files: Vec<FormFile>,
    /// Violations found before the form is complete.
    found: Violations,
}

impl Form {
    /// Adds a setting. An empty value counts as absent. A setting of an unknown name is kept for the
    /// server, as in the JSON form, and may be repeated.
    pub fn text(&mut self, name: &str, value: &str) {
        let Some(kind) = kind_of(name) else {
            return self.unknown_text(name, value);
        };
        if value.is_empty() {
            return;
        }
        if self
            .settings
            .insert(name.to_owned(), kind.read(value))
            .is_some()
        {
            repeated(name, &mut self.found);
        }
    }

    fn unknown_text(&mut self, name: &str, value: &str) {
        if self.is_misspelt(name) {
            return;
        }
        match self.settings.get_mut(name) {
            Some(Value::Array(values)) => values.push(value.into()),
            Some(first) => *first = Value::Array(vec![first.take(), value.into()]),
            None => drop(self.settings.insert(name.to_owned(), value.into())),
        }
    }

    /// Adds a file of another name, which is kept for the server. A file in the place of a setting is a
    /// violation.
    pub fn file(&mut self, file: FormFile) {
        let name = &file.name;
        if kind_of(name).is_some() {
            let expected = "a string".to_owned();
            let found = "a file";
            self.found
                .add(&Path::ROOT.key(name), Problem::Type { expected, found });
        } else if !self.is_misspelt(name) {
            self.files.push(file);
        }
    }

    /// Returns true for a name that could be taken for a known one, after recording the violation.
    fn is_misspelt(&mut self, name: &str) -> bool {
        let known = known_name(name);
        if let Some(known) = known {
            self.found
                .misspelt(&Path::ROOT.key(name), &Path::ROOT.key(known));
        }
        known.is_some()
    }

    /// Adds a file: the mask, or the next reference image.
    pub fn picture(&mut self, name: &str, bytes: Bytes) {
        if is_mask(name) {
            self.masks.push(bytes);
        } else if is_image(name) {
            self.images.push(bytes);
        }
    }

    /// Returns the request, once all parts were added.
    ///
    /// # Errors
    /// Returns every violation of the request schema. Value ranges are checked by
    /// [`Edit::validate`].
    pub fn finish(self) -> Result<Edit, Violations> {
        let settings = Value::Object(self.settings);
        let generation = Generation::deserialize(&settings);
        let mut found = match &generation {
            Ok(_) => Violations::default(),
            Err(error) => explain(&settings, error),
        };
        found.append(self.found);
        let images = references(self.images, &mut found);
        let mask = mask(self.masks, &mut found);
        match generation {
            Ok(generation) => found.or(Edit {
                images: Some(images),
                image: None,
                mask,
                files: self.files,
                generation,
            }),
            Err(_) => Err(found),
        }
    }
}

/// Shows neither the prompt nor the images.
impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings: Vec<_> = self.settings.keys().collect();
        write!(
            f,
            "Form(settings {settings:?}, {} images, {} masks, {} files)",
            self.images.len(),
            self.masks.len(),
            self.files.len()
        )
    }
}

/// Writes a form for an edit, as the chunks of a body that share the image buffers. The boundary
/// must not occur in the content, which a sufficiently long random one guarantees.
///
/// A single image is sent as the part `image`, several as parts `image[]`, as the official clients
/// do.
#[must_use]
pub fn write(
    settings: &Generation,
    images: &[Bytes],
    mask: Option<&Bytes>,
    files: &[FormFile],
    boundary: &str,
) -> Vec<Bytes> {
    let mut pieces = vec![Bytes::from(texts(settings, boundary))];
    let name = if images.len() == 1 {
        "image"
    } else {
        "image[]"
    };
    let pictures = images
        .iter()
        .map(|image| (name, image))
        .chain(mask.map(|mask| (MASK, mask)));
    let pictures = pictures.map(|(name, picture)| (picture_head(name, picture, boundary), picture));
    let others = files.iter().map(|file| (file.head(boundary), &file.bytes));
    for (head, content) in pictures.chain(others) {
        pieces.extend([
            Bytes::from(head),
            content.clone(),
            Bytes::from_static(b"\r\n"),
        ]);
    }
    pieces.push(Bytes::from(format!("--{boundary}--\r\n")));
    pieces
}

/// Writes the settings as parts: lists of texts as repeated parts, and other nested ones as JSON
/// text.
fn texts(settings: &Generation, boundary: &str) -> String {
    let Ok(Value::Object(settings)) = serde_json::to_value(settings) else {
        return String::new();
    };
    let part = |name: &str, value: &Value| {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let name = in_quotes(name);
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
    };
    let parts = |(name, value): (&String, &Value)| match value {
        Value::Null => String::new(),
        Value::Array(values) if values.iter().all(Value::is_string) => {
            values.iter().map(|value| part(name, value)).collect()
        }
        value => part(name, value),
    };
    settings.iter().map(parts).collect()
}

/// Names the repeated settings of a form as in JSON: `tags[]` becomes the list `tags`.
pub fn name_lists(settings: &mut Generation) {
    let lists = settings.extra.keys().filter(|name| name.ends_with("[]"));
    for written in lists.cloned().collect::<Vec<_>>() {
        let name = written.trim_end_matches("[]");
        if name.is_empty() || settings.extra.contains_key(name) {
            continue;
        }
        let list = match settings.extra.remove(&written).unwrap_or_default() {
            Value::Array(values) => values,
            value => vec![value],
        };
        settings.extra.insert(name.to_owned(), list.into());
    }
}

/// Returns a name without the characters that would end it.
fn in_quotes(name: &str) -> String {
    name.replace(['"', '\r', '\n'], "_")
}

impl FormFile {
    fn head(&self, boundary: &str) -> String {
        let (name, filename) = (in_quotes(&self.name), in_quotes(&self.filename));
        let media_type = in_quotes(&self.media_type);
        format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{filename}\"\r\n\
             Content-Type: {media_type}\r\n\r\n"
        )
    }
}

fn picture_head(name: &str, picture: &[u8], boundary: &str) -> String {
    let (media_type, extension) = match Format::sniff(picture) {
        Some(format) => (format.media_type(), format.name().to_ascii_lowercase()),
        None => ("application/octet-stream", "bin".to_owned()),
    };
    format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"picture.{extension}\"\r\n\
         Content-Type: {media_type}\r\n\r\n"
    )
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Word,
    Integer,
    Boolean,
}

impl Kind {
    /// Converts the text to its JSON value. Text of the wrong type is kept as a string, which is
    /// then reported as a violation.
    fn read(self, text: &str) -> Value {
        let value = match (self, text) {
            (Self::Word, _) => None,
            (Self::Boolean, "true" | "1") => Some(Value::Bool(true)),
            (Self::Boolean, "false" | "0") => Some(Value::Bool(false)),
            (Self::Boolean, _) => None,
            (Self::Integer, _) => serde_json::from_str(text).ok().filter(Value::is_number),
        };
        value.unwrap_or_else(|| Value::from(text))
    }
}

/// Returns the type of the setting `name`, or `None` if it is unknown.
fn kind_of(name: &str) -> Option<Kind> {
    let found = SETTINGS.iter().find(|(known, _)| *known == name);
    found.map(|(_, kind)| *kind)
}

/// Returns the known name that another one could be taken for: by the case of its letters, or by an
/// index. Servers and the gateway must not disagree on the meaning of such a part.
fn known_name(name: &str) -> Option<&'static str> {
    let base = name.split('[').next().unwrap_or_default();
    // Both conversions, because some letters have only one of them.
    let folded = base.to_uppercase().to_lowercase();
    let settings = SETTINGS.iter().map(|(known, _)| *known);
    settings
        .chain([IMAGE, IMAGES, MASK])
        .find(|known| *known == folded)
}

/// Returns true for `image`, `image[]`, `image[0]` and so on, and the same of `images`.
fn is_image(name: &str) -> bool {
    is_indexed(name, IMAGE) || is_indexed(name, IMAGES)
}

fn is_mask(name: &str) -> bool {
    is_indexed(name, MASK)
}

/// Returns true for a name as it is, and with an index, as clients write the elements of lists.
fn is_indexed(found: &str, name: &str) -> bool {
    let Some(rest) = found.strip_prefix(name) else {
        return false;
    };
    let index = rest
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    rest.is_empty() || index.is_some_and(|index| index.bytes().all(|c| c.is_ascii_digit()))
}

#[cold]
fn explain(settings: &Value, error: &serde_json::Error) -> Violations {
    let mut found = Shape::of::<Generation>().diagnose(settings);
    if found.is_empty() {
        let sentence = format!("Could not parse multipart form: {error}.");
        found.add(&Path::ROOT, Problem::Other(Code::InvalidValue, sentence));
    }
    found
}

fn references(files: Vec<Bytes>, found: &mut Violations) -> Vec<Reference> {
    let path = Path::ROOT.key(IMAGE);
    if files.is_empty() {
        found.missing(&path);
    }
    found.check_length(&path, files.len(), MAX_REFERENCES);
    let mut references = Vec::with_capacity(files.len());
    for file in files {
        match Format::sniff(&file) {
            Some(Format::Png | Format::Jpeg | Format::Webp) => {
                references.push(Source::of(file).into());
            }
            other => refuse_type(
                &path,
                other,
                "'image/jpeg', 'image/png', and 'image/webp'",
                found,
            ),
        }
    }
    references
}

fn mask(files: Vec<Bytes>, found: &mut Violations) -> Option<Reference> {
    let path = Path::ROOT.key(MASK);
    if files.len() > 1 {
        repeated(MASK, found);
    }
    let file = files.into_iter().next()?;
    match Format::sniff(&file) {
        Some(Format::Png) => return Some(Source::of(file).into()),
        other => refuse_type(&path, other, "'image/png'", found),
    }
    None
}

/// Records a file of another type than the accepted ones, by its first bytes
/// (<https://github.com/Comfy-Org/ComfyUI/issues/9329>).
fn refuse_type(path: &Path<'_>, sent: Option<Format>, accepted: &str, found: &mut Violations) {
    let media_type = sent.map_or("application/octet-stream", Format::media_type);
    let sentence = format!(
        "Invalid file '{path}': unsupported mimetype ('{media_type}'). Supported file formats are {accepted}."
    );
    found.unsupported(path, Code::UnsupportedFileMimetype, sentence);
}

/// Records a part that was sent more than once, but is no list
/// (<https://github.com/diaomin66/astrbot_plugin_omnidraw/pull/58>).
fn repeated(name: &str, found: &mut Violations) {
    let sentence = format!(
        "Duplicate parameter: '{name}'. You provided multiple values for this parameter, whereas only one is allowed."
    );
    found.unsupported(&Path::ROOT.key(name), Code::DuplicateParameter, sentence);
}

/// The settings whose types and places are known. Those from `user` on are passed through, as in the
/// JSON form.
const SETTINGS: [(&str, Kind); 18] = [
    ("prompt", Kind::Word),
    ("model", Kind::Word),
    ("size", Kind::Word),
    ("quality", Kind::Word),
    ("background", Kind::Word),
    ("output_format", Kind::Word),
    ("response_format", Kind::Word),
    ("n", Kind::Integer),
    ("output_compression", Kind::Integer),
    ("partial_images", Kind::Integer),
    ("seed", Kind::Integer),
    ("stream", Kind::Boolean),
    ("user", Kind::Word),
    ("input_fidelity", Kind::Word),
    ("moderation", Kind::Word),
    ("safety_identifier", Kind::Word),
    ("style", Kind::Word),
    ("complexity", Kind::Word),
];
const IMAGE: &str = "image";
const IMAGES: &str = "images";
const MASK: &str = "mask";
