//! Replaces values that differ from run to run in wire text: ids by the order of first appearance,
//! and times.

/// Replaces the first id of a kind by `resp_<1>`, and each time by 0.
pub(crate) struct Redactor {
    seen: Vec<String>,
}

impl Redactor {
    pub(crate) fn new() -> Self {
        Self { seen: Vec::new() }
    }

    /// Redacts a text; ids that occurred in an earlier text keep their number.
    pub(crate) fn redact(&mut self, text: &str) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while !rest.is_empty() {
            if let Some((name, digits)) = time(rest) {
                out += &format!("{name}0");
                rest = &rest[name.len() + digits..];
            } else if let Some((kind, length)) = id(rest).filter(|_| !out.ends_with(is_word)) {
                out += &format!("{kind}<{}>", self.number(&rest[..length]));
                rest = &rest[length..];
            } else {
                let next = rest.chars().next().map_or(1, char::len_utf8);
                out += &rest[..next];
                rest = &rest[next..];
            }
        }
        out
    }

    fn number(&mut self, id: &str) -> usize {
        let found = self.seen.iter().position(|seen| seen == id);
        1 + found.unwrap_or_else(|| {
            self.seen.push(id.to_owned());
            self.seen.len() - 1
        })
    }
}

/// The name of the time member at the beginning of a text, and the length of its digits.
fn time(text: &str) -> Option<(&'static str, usize)> {
    let name = TIMES.into_iter().find(|name| text.starts_with(name))?;
    let digits = text[name.len()..]
        .bytes()
        .take_while(u8::is_ascii_digit)
        .count();
    (digits > 0).then_some((name, digits))
}

/// The kind of the id at the beginning of a text, and the length of the id.
fn id(text: &str) -> Option<(&'static str, usize)> {
    let kind = KINDS.into_iter().find(|kind| text.starts_with(kind))?;
    let length = text[kind.len()..]
        .chars()
        .take_while(|character| {
            is_word(*character) || kind == ENVELOPE && ".-".contains(*character)
        })
        .count();
    (length >= LEAST_ID).then_some((kind, kind.len() + length))
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

const KINDS: [&str; 9] = [
    ENVELOPE,
    "resp_",
    "msg_",
    "chatcmpl-",
    "call_",
    "toolu_",
    "rs_",
    "fc_",
    "req_",
];
/// Envelopes of reasoning, which contain ids.
const ENVELOPE: &str = "sg1.";
const TIMES: [&str; 3] = ["\"created\":", "\"created_at\":", "\"completed_at\":"];
/// Shorter ones are made up by the tests.
const LEAST_ID: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_numbered_and_times_are_gone() {
        let mut redactor = Redactor::new();
        let text = r#"{"id":"resp_0123456789","created_at":1789000000,"call":"call_1","of":"resp_0123456789"}"#;
        let redacted = r#"{"id":"resp_<1>","created_at":0,"call":"call_1","of":"resp_<1>"}"#;
        assert_eq!(redactor.redact(text), redacted);
        assert_eq!(
            redactor.redact("chatcmpl-abcdefghij resp_0123456789"),
            "chatcmpl-<2> resp_<1>"
        );
    }
}
