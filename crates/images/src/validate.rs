//! Validates requests beyond the types of their fields.

use picture::Format;
use wire::{DataUrl, Path, Problem, Violations};

use crate::request::{
    Background, Edit, FormFile, Generation, Mask, OutputFormat, Quality, Reference,
};
use crate::source::Source;

/// Model-dependent limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// Maximum value of `n`; 10 by default.
    pub max_count: u32,
    /// Maximum number of reference images; 16 by default.
    pub max_references: usize,
    /// True if the settings of [`Generation::check_settings`] may have any value, because a server
    /// judges them that may know other ones; false by default.
    pub unknown_settings: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            max_count: MAX_COUNT,
            max_references: MAX_REFERENCES,
            unknown_settings: false,
        }
    }
}

wire::valid! {
    /// A request for generations that satisfies every rule. Only [`Generation::validate`] creates
    /// it.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ValidGeneration(Generation);
}

wire::valid! {
    /// A request for edits that satisfies every rule. Only [`Edit::validate`] creates it.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ValidEdit(Edit);
}

impl Generation {
    /// Validates the request against every rule.
    ///
    /// # Errors
    /// Returns every violation, each with its path.
    pub fn validate(self, rules: &Rules) -> Result<ValidGeneration, Violations> {
        let mut found = Violations::default();
        found.check_spelling(&Path::ROOT, &self);
        check_generation(&self, rules, &mut found);
        found.or(ValidGeneration(self))
    }

    /// Checks the settings of the result: the size, the quality, the background, the file format and
    /// its compression, and the encoding in the response. An engine that knows the values of the current
    /// protocol only needs this check.
    ///
    /// # Errors
    /// Returns every value that the protocol does not have.
    pub fn check_settings(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        check_settings(self, &mut found);
        found.or(())
    }
}

impl Edit {
    /// Validates the request against every rule. That a mask has the size of its image is only
    /// checked once both are decoded.
    ///
    /// # Errors
    /// Returns every violation, each with its path.
    pub fn validate(self, rules: &Rules) -> Result<ValidEdit, Violations> {
        let mut found = Violations::default();
        found.check_spelling(&Path::ROOT, &self.generation);
        let others = &self.generation.extra;
        found.check_names(&Path::ROOT, others, &["images", "image", "mask"]);
        check_generation(&self.generation, rules, &mut found);
        check_references(&self, rules, &mut found);
        if let Some(mask) = &self.mask {
            check_mask(mask, &mut found);
        }
        if !rules.unknown_settings {
            found.append(check_files(&self.files).err().unwrap_or_default());
        }
        found.or(ValidEdit(self))
    }
}

fn check_generation(request: &Generation, rules: &Rules, found: &mut Violations) {
    let root = Path::ROOT;
    check_prompt(&request.prompt, &root.key("prompt"), found);
    if let Some(model) = &request.model {
        found.check_model(model);
    }
    found.check_integer(&root.key("n"), request.n, 1, rules.max_count.into());
    found.check_integer(&root.key("partial_images"), request.partial_images, 0, 3);
    if !rules.unknown_settings {
        check_settings(request, found);
    }
}

fn check_prompt(prompt: &str, path: &Path<'_>, found: &mut Violations) {
    if prompt.is_empty() {
        found.add(path, Problem::EmptyString);
    }
    found.check_text(path, prompt, MAX_PROMPT);
}

fn check_settings(request: &Generation, found: &mut Violations) {
    let root = Path::ROOT;
    found.check_integer(
        &root.key("output_compression"),
        request.output_compression,
        0,
        100,
    );
    if let Some(size) = request.size.as_deref().filter(|size| !is_size(size)) {
        let size = wire::truncate_for_error(size);
        let sentence = format!(
            "Invalid 'size': '{size}'. Expected 'auto' or <width>x<height>, such as '1024x1024'."
        );
        found.invalid(&root.key("size"), sentence);
    }
    check_words(request, found);
    let format = request.response_format.as_ref();
    if let Some(word) = format.filter(|word| !word.is_known()) {
        let value = format!("'{}'", wire::truncate_for_error(word.as_str()));
        found.only_default(&root.key("response_format"), &value, "b64_json");
    }
}

fn check_words(request: &Generation, found: &mut Violations) {
    let root = Path::ROOT;
    found.check_word(
        &root.key("quality"),
        request.quality.as_ref().map(Quality::as_str),
        Quality::KNOWN,
    );
    found.check_word(
        &root.key("background"),
        request.background.as_ref().map(Background::as_str),
        Background::KNOWN,
    );
    if let Some(word) = request
        .output_format
        .as_ref()
        .filter(|word| !word.is_known())
    {
        let value = format!("'{}'", wire::truncate_for_error(word.as_str()));
        found.unsupported_value(&root.key("output_format"), &value);
    }
    if (&request.background, &request.output_format)
        == (&Some(Background::Transparent), &Some(OutputFormat::Jpeg))
    {
        let sentence = "Invalid 'background': JPEG has no transparency; choose the output_format 'png' or 'webp'.";
        found.invalid(&root.key("background"), sentence);
    }
}

fn check_references(request: &Edit, rules: &Rules, found: &mut Violations) {
    let path = Path::ROOT.key("images");
    let images = request.images.as_deref().unwrap_or_default();
    match (&request.image, images) {
        (Some(source), _) if request.images.is_none() => {
            check_source(&Path::ROOT.key("image"), source, found);
        }
        (_, []) => found.missing(&path),
        _ => found.check_length(&path, images.len(), rules.max_references),
    }
    for (i, image) in images.iter().enumerate() {
        let path = path.index(i);
        if is_stored(image, &path, found) {
            continue;
        }
        match &image.image_url {
            Some(source) => check_source(&path.key("image_url"), source, found),
            None => found.missing(&path.key("image_url")),
        }
    }
}

/// Checks that a form has no files but images and masks. A server may know others, but an engine does
/// not.
///
/// # Errors
/// Returns every other file.
pub fn check_files(files: &[FormFile]) -> Result<(), Violations> {
    let mut found = Violations::default();
    for FormFile { name, .. } in files {
        found.unsupported_parameter(&Path::ROOT.key(name), Some("image"));
    }
    found.or(())
}

fn check_mask(mask: &Mask, found: &mut Violations) {
    let path = Path::ROOT.key("mask");
    if mask.file_id.is_some() {
        return found.unsupported_parameter(&path.key("file_id"), Some("image_url"));
    }
    let Some(source) = &mask.image_url else {
        return found.missing(&path.key("image_url"));
    };
    // Both the declared and the actual type must be PNG.
    let is_png = matches!(source, Source::Inline { media_type, bytes }
        if media_type == PNG && Format::sniff(bytes) == Some(Format::Png));
    if !is_png {
        found.invalid(
            &path,
            "Invalid 'mask': expected a base64 Data URL of a PNG in its image_url.",
        );
    }
}

/// Returns true if the reference is a stored file, after recording the violation.
fn is_stored(image: &Reference, path: &Path<'_>, found: &mut Violations) -> bool {
    if image.file_id.is_some() {
        found.unsupported_parameter(&path.key("file_id"), Some("image_url"));
    }
    image.file_id.is_some()
}

fn check_source(path: &Path<'_>, source: &Source, found: &mut Violations) {
    let media_type = match source {
        Source::Inline { media_type, .. } => Some(media_type.as_str()),
        Source::Url(url) => {
            let url = DataUrl::parse(url).ok();
            url.map(|url| url.image_type().unwrap_or(url.media_type))
        }
    };
    if media_type.is_some_and(|media_type| !REFERENCE_TYPES.contains(&media_type)) {
        let accepted = REFERENCE_TYPES.join(", ");
        found.invalid(
            path,
            format!("Invalid Data URL in '{path}': expected one of {accepted}."),
        );
    } else if let Source::Url(url) = source {
        wire::check_image_url(path, url, found);
    }
}

/// Returns true for `auto`, or two numbers of pixels with 2 to 5 digits.
fn is_size(size: &str) -> bool {
    let is_number = |number: &str| {
        (2..=5).contains(&number.len())
            && !number.starts_with('0')
            && number.bytes().all(|c| c.is_ascii_digit())
    };
    size == "auto"
        || size
            .split_once('x')
            .is_some_and(|(width, height)| is_number(width) && is_number(height))
}

/// Maximum length of a prompt, in characters.
const MAX_PROMPT: usize = 32_000;
/// Maximum number of images per request.
const MAX_COUNT: u32 = 10;
pub(crate) const MAX_REFERENCES: usize = 16;
/// The message for a request without reference images.
/// The media type of masks.
const PNG: &str = "image/png";
const REFERENCE_TYPES: [&str; 3] = [PNG, "image/jpeg", "image/webp"];
