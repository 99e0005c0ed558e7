//! Estimates the tokens of a prompt from the bytes of a request.

/// Estimates the tokens of the prompt in a JSON body, to be reserved until the usage is known: one
/// for each 3.5 bytes, and a fixed number for each run of base64 that is long enough to be an image
/// or a file. Tokenizers differ, so nothing more exact would hold for all models.
pub(crate) fn prompt_tokens(body: &[u8]) -> u64 {
    let (mut text, mut files) = (0, 0);
    for run in body.split(|byte| *byte == b'"') {
        if run.len() >= SHORTEST_FILE && is_base64(run) {
            files += 1;
        } else {
            text += run.len() as u64;
        }
    }
    (text * 2).div_ceil(7) + files * TOKENS_OF_FILE
}

/// Returns true if the end of a text, where a data URL has no more of its head, is base64.
fn is_base64(text: &[u8]) -> bool {
    let is_letter = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
    };
    text.iter()
        .rev()
        .take(SHORTEST_FILE - LONGEST_HEAD)
        .all(is_letter)
}

/// The length from which on a text can be a file, in bytes.
const SHORTEST_FILE: usize = 1024;
/// The length of what stands before the base64 of a data URL at most.
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
    }
}
