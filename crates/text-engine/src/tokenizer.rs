//! Encodes and decodes tokens of the byte-level vocabulary of a GGUF file.

use std::collections::HashMap;
use std::sync::Arc;

use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::unicode::NFC;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, SplitDelimiterBehavior};
use toktrie::{TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use crate::gguf::{Gguf, Value};
use crate::weights::LoadError;

/// The vocabulary. Text never yields a control token: only [`Tokenizer::start`] and
/// [`Tokenizer::end`] do.
#[derive(Clone)]
pub(crate) struct Tokenizer {
    parts: Arc<Parts>,
}

struct Parts {
    inner: tokenizers::Tokenizer,
    trie: TokTrie,
    start: TokenId,
    end: TokenId,
}

impl Tokenizer {
    pub(crate) fn load(file: &Gguf) -> Result<Self, LoadError> {
        let damaged = |why: String| file.damaged(format!("invalid vocabulary: {why}"));
        let mut inner = encoder(file).map_err(|why| damaged(why.to_string()))?;
        inner.set_encode_special_tokens(true);
        let words = words(file);
        let control = |name: &str| {
            inner
                .token_to_id(name)
                .ok_or_else(|| file.unsupported(format!("it has no ChatML token {name}")))
        };
        let start = control("<|im_start|>")?;
        let end = control("<|im_end|>")?;
        let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, end), &words);
        Ok(Self {
            parts: Arc::new(Parts {
                inner,
                trie,
                start,
                end,
            }),
        })
    }

    /// Encodes a text. Control tokens that are spelled out in it are encoded as plain text.
    pub(crate) fn encode(&self, text: &str) -> Vec<TokenId> {
        // Encoding only fails if the vocabulary lacks a byte, which then cannot be represented at
        // all.
        self.parts
            .inner
            .encode_fast(text, false)
            .map(|found| found.get_ids().to_vec())
            .unwrap_or_default()
    }

    /// The bytes of a token, which may end inside a character. Empty for a control token.
    pub(crate) fn bytes(&self, token: TokenId) -> &[u8] {
        match self.parts.trie.token(token) {
            [TokTrie::SPECIAL_TOKEN_MARKER, ..] => &[],
            bytes => bytes,
        }
    }

    /// Decodes tokens, without incomplete characters.
    pub(crate) fn decode(&self, tokens: &[TokenId]) -> String {
        let bytes: Vec<u8> = tokens
            .iter()
            .flat_map(|token| self.bytes(*token))
            .copied()
            .collect();
        bytes.utf8_chunks().map(|chunk| chunk.valid()).collect()
    }

    /// The control token before a message.
    pub(crate) fn start(&self) -> TokenId {
        self.parts.start
    }

    /// The control token after a message, which ends an answer.
    pub(crate) fn end(&self) -> TokenId {
        self.parts.end
    }

    pub(crate) fn is_control(&self, token: TokenId) -> bool {
        self.parts.trie.is_special_token(token)
    }

    /// The length of the longest token in bytes, at least 1.
    pub(crate) fn longest(&self) -> usize {
        self.parts.trie.max_token_len().max(1)
    }
}

impl TokenizerEnv for Tokenizer {
    fn tok_trie(&self) -> &TokTrie {
        &self.parts.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.parts
            .trie
            .tokenize_with_greedy_fallback(bytes, |text| self.encode(text))
    }
}

/// The encoder of text, as the metadata describes it.
fn encoder(file: &Gguf) -> tokenizers::Result<tokenizers::Tokenizer> {
    let model = file.text("tokenizer.ggml.model").unwrap_or_default();
    if model != "gpt2" {
        return Err(format!("its model is '{model}', accepted is 'gpt2'").into());
    }
    let texts = |key| file.list(key).iter().filter_map(Value::as_text);
    let vocabulary: Vec<&str> = texts("tokenizer.ggml.tokens").collect();
    let ids = (0..).zip(&vocabulary);
    let ids: Vocab = ids.map(|(id, text)| ((*text).to_owned(), id)).collect();
    let merges = texts("tokenizer.ggml.merges").map(|merge| {
        let (first, second) = merge.split_once(' ')?;
        Some((first.to_owned(), second.to_owned()))
    });
    let merges: Option<Vec<_>> = merges.collect();
    let model = BPE::builder()
        .vocab_and_merges(ids, merges.ok_or("a merge is not of two texts")?)
        .ignore_merges(file.value("tokenizer.ggml.ignore_merges") == Some(&Value::Flag(true)))
        .build()?;
    let mut encoder = tokenizers::Tokenizer::new(model);
    let kind = file.text("tokenizer.ggml.pre").unwrap_or("gpt2");
    if kind == "qwen2" {
        encoder.with_normalizer(Some(NFC))?;
    }
    encoder.with_pre_tokenizer(Some(pre_tokenizer(kind)?));
    let kinds = file.list("tokenizer.ggml.token_type").iter();
    let control = kinds.zip(vocabulary).filter(|(kind, _)| is_control(kind));
    encoder.add_special_tokens(control.map(|(_, text)| AddedToken::from(text, true)))?;
    Ok(encoder)
}

/// Splits a text into the words that are encoded separately.
fn pre_tokenizer(kind: &str) -> tokenizers::Result<PreTokenizerWrapper> {
    let split = |pattern: &str| {
        let pattern = SplitPattern::Regex(pattern.to_owned());
        Split::new(pattern, SplitDelimiterBehavior::Isolated, false)
    };
    let words = ByteLevel::new(false, true, true);
    let bytes = ByteLevel::new(false, true, false);
    Ok(match kind {
        "qwen2" => Sequence::new(vec![split(QWEN2)?.into(), bytes.into()]).into(),
        "smaug-bpe" | "lfm2" | "llama3" => {
            Sequence::new(vec![split(LLAMA3)?.into(), bytes.into()]).into()
        }
        // SmolLM encodes each digit separately.
        "smollm" => Sequence::new(vec![Digits::new(true).into(), words.into()]).into(),
        _ => words.into(),
    })
}

/// The bytes of each token; control tokens have the prefix by which `toktrie` recognizes them.
fn words(file: &Gguf) -> Vec<Vec<u8>> {
    let bytes = byte_letters();
    let kinds = file.list("tokenizer.ggml.token_type");
    let texts = file
        .list("tokenizer.ggml.tokens")
        .iter()
        .map(|text| text.as_text().unwrap_or_default());
    let word = |(id, text): (usize, &str)| match kinds.get(id).is_some_and(is_control) {
        true => [&[TokTrie::SPECIAL_TOKEN_MARKER], text.as_bytes()].concat(),
        false => text
            .chars()
            .filter_map(|letter| bytes.get(&letter))
            .copied()
            .collect(),
    };
    texts.enumerate().map(word).collect()
}

/// The byte of each letter in a byte-level vocabulary: printable bytes are represented by
/// themselves, others by letters from U+0100 on (`bytes_to_unicode` in the encoder of GPT-2).
fn byte_letters() -> HashMap<char, u8> {
    let printable = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let (shown, hidden): (Vec<u8>, Vec<u8>) = (0..=u8::MAX).partition(printable);
    let moved = (0x100..).filter_map(char::from_u32);
    shown
        .into_iter()
        .map(|byte| (char::from(byte), byte))
        .chain(moved.zip(hidden))
        .collect()
}

/// Returns true for the `llama_token_type` of a control token or a user-defined one.
fn is_control(kind: &Value) -> bool {
    matches!(kind, Value::Signed(3 | 4) | Value::Unsigned(3 | 4))
}

/// The words of Qwen2 (`pre_tokenizer` of its `tokenizer.json`).
const QWEN2: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The words of Llama 3, which has numbers of up to three digits in one.
const LLAMA3: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

#[cfg(test)]
mod tests {
    use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer as _};

    use super::*;

    #[test]
    fn byte_alphabet_is_a_bijection() {
        let letters = byte_letters();
        assert_eq!(letters.len(), 256);
        assert_eq!(
            (letters[&'A'], letters[&'Ġ'], letters[&'Ċ'], letters[&'ł']),
            (b'A', b' ', b'\n', 0xa0)
        );
        assert_eq!(letters[&'\u{143}'], 0xad);
    }

    /// Runs of spaces and digits differ between the families.
    #[test]
    fn texts_are_split_as_their_family_does() {
        let split = |kind| {
            let mut text = PreTokenizedString::from("Hello'Ve world 123\n\n  foo");
            pre_tokenizer(kind)
                .unwrap()
                .pre_tokenize(&mut text)
                .unwrap();
            let words = text.get_splits(OffsetReferential::Original, OffsetType::Byte);
            let words: Vec<String> = words
                .into_iter()
                .map(|(word, ..)| word.to_owned())
                .collect();
            words.join("|")
        };
        assert_eq!(split("qwen2"), "Hello|'Ve|Ġworld|Ġ|1|2|3|ĊĊ|Ġ|Ġfoo");
        assert_eq!(split("llama3"), "Hello|'Ve|Ġworld|Ġ|123|ĊĊ|Ġ|Ġfoo");
        assert_eq!(split("smollm"), "Hello|'|Ve|Ġworld|Ġ|1|2|3|ĊĊĠ|Ġfoo");
        assert_eq!(split("gpt2"), "Hello|'|Ve|Ġworld|Ġ123|ĊĊĠ|Ġfoo");
    }
}
