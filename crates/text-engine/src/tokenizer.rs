//! Encodes and decodes tokens of the byte-level vocabulary of a GGUF file.

use std::collections::HashMap;
use std::sync::Arc;

use candle_core::quantized::tokenizer::TokenizerFromGguf;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use toktrie::{TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use crate::gguf::Gguf;
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
        let mut inner = tokenizers::Tokenizer::from_gguf(&file.content)
            .map_err(|why| damaged(why.to_string()))?;
        if let Some(pre) = pre_tokenizer(file) {
            inner.with_pre_tokenizer(Some(pre));
        }
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

/// The pre-tokenizer, where the loader of the vocabulary chooses a wrong one.
///
/// The loader adds a space before each text, and does not know that SmolLM encodes each digit
/// separately.
fn pre_tokenizer(file: &Gguf) -> Option<PreTokenizerWrapper> {
    let words = ByteLevel::new(false, true, true);
    match file.text("tokenizer.ggml.pre").unwrap_or("gpt2") {
        "qwen2" | "smaug-bpe" | "lfm2" | "llama3" => None,
        "smollm" => Some(Sequence::new(vec![Digits::new(true).into(), words.into()]).into()),
        _ => Some(words.into()),
    }
}

/// The bytes of each token; control tokens have the prefix by which `toktrie` recognizes them.
fn words(file: &Gguf) -> Vec<Vec<u8>> {
    let bytes = byte_letters();
    let kinds = file.list("tokenizer.ggml.token_type");
    let texts = file
        .list("tokenizer.ggml.tokens")
        .iter()
        .map(|text| text.to_string().map_or("", String::as_str));
    let word = |(id, text): (usize, &str)| {
        let kind = kinds.get(id).and_then(|kind| kind.to_i32().ok());
        match kind {
            Some(CONTROL | USER_DEFINED) => {
                [&[TokTrie::SPECIAL_TOKEN_MARKER], text.as_bytes()].concat()
            }
            _ => text
                .chars()
                .filter_map(|letter| bytes.get(&letter))
                .copied()
                .collect(),
        }
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

/// `llama_token_type` of a control token.
const CONTROL: i32 = 3;

/// `llama_token_type` of a user-defined token.
const USER_DEFINED: i32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_its_letter() {
        let letters = byte_letters();
        assert_eq!(letters.len(), 256);
        assert_eq!(
            (letters[&'A'], letters[&'Ġ'], letters[&'Ċ'], letters[&'ł']),
            (b'A', b' ', b'\n', 0xa0)
        );
        assert_eq!(letters[&'\u{143}'], 0xad);
    }
}
