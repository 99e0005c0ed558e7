//! Estimates the tokens of a prompt from the bytes of a request.

/// Estimates the tokens of the prompt in a JSON body, to be reserved until the usage is known: the
/// tokens of its text, and a fixed number for each long base64 value of a member that has an image
/// or a file. Tokenizers differ, so nothing more exact would hold for all models.
pub fn prompt_tokens(body: &[u8]) -> u64 {
    if body.len() < SHORTEST_FILE {
        let quotes = memchr::memchr_iter(b'"', body).count();
        return text_tokens((body.len() - quotes) as u64);
    }
    let (mut text, mut files) = (0, 0);
    // The two runs before a value are the name of its member and the colon. A quote within a text
    // follows a backslash, so no text has a run that is such a name.
    let [mut name, mut colon]: [&[u8]; 2] = [b"", b""];
    let mut from = 0;
    for end in memchr::memchr_iter(b'"', body).chain([body.len()]) {
        let run = &body[from..end];
        let is_of_file = run.len() >= SHORTEST_FILE && FILE_MEMBERS.contains(&name);
        if is_of_file && colon.trim_ascii() == b":" && is_base64(run) {
            files += 1;
        } else {
            text += run.len() as u64;
        }
        (name, colon, from) = (colon, run, end + 1);
    }
    text_tokens(text) + files * TOKENS_OF_FILE
}

/// Estimates the tokens of the prompt for pictures, from the length of its text in bytes and the
/// number of pictures in it.
pub fn image_prompt_tokens(text: usize, pictures: usize) -> u64 {
    text_tokens(text as u64) + pictures as u64 * TOKENS_OF_FILE
}

/// Estimates the tokens of a text of this many bytes: one for each 3.5 bytes.
pub(crate) fn text_tokens(bytes: u64) -> u64 {
    bytes.saturating_mul(2).div_ceil(7)
}

/// Returns true if a text is base64, or a data URL with base64.
fn is_base64(text: &[u8]) -> bool {
    let data = match text.strip_prefix(b"data:") {
        Some(url) => {
            let head = &url[..url.len().min(LONGEST_HEAD)];
            let Some(at) = memchr::memmem::find(head, DATA) else {
                return false;
            };
            &url[at + DATA.len()..]
        }
        None => text,
    };
    let is_letter = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
    };
    data.iter().all(is_letter)
}

/// The members that have an image or a file in the protocols of text.
const FILE_MEMBERS: [&[u8]; 5] = [b"url", b"image_url", b"data", b"file_data", b"file_url"];
/// The end of the head of a data URL.
const DATA: &[u8] = b";base64,";

/// The length from which on a text can be a file, in bytes.
const SHORTEST_FILE: usize = 1024;
/// The length of the head of a data URL at most, between `data:` and the base64.
const LONGEST_HEAD: usize = 128;
/// The tokens that vendors count for an image of a usual size:
/// <https://platform.openai.com/docs/guides/images-vision#calculating-costs>.
const TOKENS_OF_FILE: u64 = 800;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_counts_by_its_length() {
        assert_eq!(prompt_tokens(b""), 0);
        assert_eq!(prompt_tokens(b"{\"ab\"}"), 2);
        assert_eq!(prompt_tokens(&[b'x'; 700]), 200);
        // A long text has spaces.
        assert_eq!(prompt_tokens(&b"word ".repeat(1_400)), 2_000);
    }

    #[test]
    fn base64_file_has_a_fixed_token_estimate() {
        let with = |file: &str| {
            let body = format!(r#"{{"url":"data:image/png;base64,{file}"}}"#);
            prompt_tokens(body.as_bytes())
        };
        assert_eq!(
            with(&"iVBORw0K".repeat(200)),
            with(&"iVBORw0K".repeat(200_000))
        );
        assert_eq!(with(&"iVBORw0K".repeat(200)), 800 + 2);
        // A short one is no picture.
        assert_eq!(with("iVBORw0K"), 11);
        let raw = format!(r#"{{"data": "{}"}}"#, "iVBORw0K".repeat(200));
        assert_eq!(prompt_tokens(raw.as_bytes()), 800 + 3);
    }

    /// Otherwise a long prompt could be billed at the price of a picture.
    #[test]
    fn text_that_resembles_base64_counts_by_its_length() {
        let letters = "a".repeat(700_000);
        for body in [
            format!(r#"{{"content":"{letters}"}}"#),
            format!(r#"{{"content":"data:image/png;base64,{letters}"}}"#),
            // Quotes within a text are escaped.
            format!(r#"{{"content":"\"url\":\"{letters}"}}"#),
            // Only the end is base64.
            format!(r#"{{"url":"{} {letters}"}}"#, "word ".repeat(1_000)),
            format!(r#"{{"url":"data:{}","x":"{letters}"}}"#, "b".repeat(2_000)),
        ] {
            let tokens = prompt_tokens(body.as_bytes());
            assert!(tokens >= 200_000, "{tokens}: {}", &body[..80]);
        }
    }
}
