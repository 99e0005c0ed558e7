//! Applies rules to an encoded request.

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use wire::{MemberEdit, MemberPath, ObjectView, Splice};

use super::{Action, Rule};

/// Applies each rule to the result of those before it.
pub(super) fn edit<'a>(
    rules: impl Iterator<Item = &'a Rule>,
    body: &[u8],
) -> (Option<Vec<u8>>, Vec<String>) {
    let mut edited: Option<Vec<u8>> = None;
    let mut changed = Vec::new();
    // Most rules concern a top-level member that most requests do not have.
    let mut names: Option<Vec<String>> = None;
    for rule in rules.filter(|rule| rule.action.edits_members()) {
        if rule.excepts(&Splice::new(edited.as_deref().unwrap_or(body))) {
            continue;
        }
        for path in &rule.members {
            let names = names.get_or_insert_with(|| Splice::new(body).names());
            if !names.iter().any(|name| name == path.first()) && !rule.action.adds_members() {
                continue;
            }
            let mut splice = Splice::new(edited.as_deref().unwrap_or(body));
            let mut is_lossy = false;
            let is_edited = splice.edit_each(path, |object| {
                let (edit, is_loss) = edit_of(&rule.action, path, object)?;
                is_lossy |= is_loss;
                Some(edit)
            });
            if is_lossy && !changed.iter().any(|known| known == path.as_str()) {
                changed.push(path.to_string());
            }
            if is_edited {
                edited = Some(splice.to_vec());
                names.extend(rule.action.new_name(path));
            }
        }
    }
    (edited, changed)
}

/// Returns the edit of a member of an object, if it needs one, and whether its value is lost.
fn edit_of(
    action: &Action,
    path: &MemberPath,
    object: &ObjectView<'_>,
) -> Option<(MemberEdit, bool)> {
    let found = object.get(path.name());
    match action {
        Action::Default(value) => {
            return match found {
                None => Some((MemberEdit::Set(value.to_string()), false)),
                Some(_) => None,
            };
        }
        Action::SetBeside { other, value } => {
            let value = value.to_string();
            let beside = object.get(other).filter(|other| !is_nothing(other));
            let differs = found.is_none_or(|found| found != value.as_bytes());
            return (beside.is_some() && differs).then_some((MemberEdit::Set(value), true));
        }
        _ => {}
    }
    let found = found?;
    match action {
        Action::Drop => Some((MemberEdit::Remove, true)),
        Action::DropBeside(other) => {
            let beside = object.get(other).filter(|value| *value != b"null");
            beside.map(|_| (MemberEdit::Remove, true))
        }
        Action::Rename(to) if object.get(to).is_some() => Some((MemberEdit::Remove, true)),
        Action::Rename(to) => Some((MemberEdit::Rename(to.clone()), false)),
        Action::Words { known, instead } => {
            let word = text(found).or_else(|| kind(found))?;
            if known.contains(&word) {
                return None;
            }
            let edit = match instead.get(&word) {
                Some(other) => set(other),
                None => MemberEdit::Remove,
            };
            Some((edit, true))
        }
        Action::Range { least, most } => {
            let number: f64 = serde_json::from_slice(found).ok()?;
            let least = least.filter(|least| number < *least);
            let end = least.or(most.filter(|most| number > *most))?;
            // A whole number stays one, as servers that count need it.
            let end = serde_json::Value::from(end).to_string();
            let end = end.strip_suffix(".0").map(str::to_owned).unwrap_or(end);
            Some((MemberEdit::Set(end), true))
        }
        Action::Label(longest) => {
            let label = text(found)?;
            let is_long = label.chars().nth(*longest).is_some();
            is_long.then(|| (set(&hash(&label, *longest)), true))
        }
        Action::HideAddresses => {
            let text = text(found)?;
            is_address(&text).then(|| (set(&hash(&text, HASH)), true))
        }
        _ => None,
    }
}

/// Returns true if a text has an email address, or is a telephone number.
fn is_address(text: &str) -> bool {
    let is_email = |word: &str| {
        let (name, host) = word.split_once('@').unwrap_or_default();
        !name.is_empty() && host.split('.').filter(|label| !label.is_empty()).count() > 1
    };
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let is_number = |byte: u8| byte.is_ascii_digit() || b"+-(). /".contains(&byte);
    let is_telephone = text.starts_with('+') && digits >= MIN_DIGITS && text.bytes().all(is_number);
    is_telephone
        || text
            .split(|c: char| c.is_whitespace() || "\"',;<>".contains(c))
            .any(is_email)
}

/// Returns true for null and for an empty list.
fn is_nothing(json: &[u8]) -> bool {
    serde_json::from_slice::<Option<Vec<&RawValue>>>(json)
        .is_ok_and(|list| list.is_none_or(|list| list.is_empty()))
}

/// The `type` of a JSON object.
fn kind(json: &[u8]) -> Option<String> {
    text(Splice::new(json).value(&["type"])?)
}

/// The text of a JSON string.
pub(super) fn text(json: &[u8]) -> Option<String> {
    serde_json::from_slice(json).ok()
}

fn set(text: &str) -> MemberEdit {
    MemberEdit::Set(serde_json::Value::from(text).to_string())
}

/// The SHA-256 of a label in hexadecimal, or its beginning.
fn hash(label: &str, longest: usize) -> String {
    let digest = Sha256::digest(label);
    let digits = digest.iter().map(|byte| format!("{byte:02x}"));
    let mut hash: String = digits.collect();
    hash.truncate(longest);
    hash
}

/// The length of a whole hash.
const HASH: usize = 64;
/// The least number of digits of an international telephone number.
const MIN_DIGITS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// The request as a server with this rule gets it, and the members that changed.
    #[track_caller]
    fn edited(rule: &str, body: &str) -> (String, Vec<String>) {
        let rule: Rule = serde_json::from_str(rule).unwrap();
        rule.check().unwrap();
        let (edited, changed) = edit([&rule].into_iter(), body.as_bytes());
        let edited = edited.map(|edited| String::from_utf8(edited).unwrap());
        (edited.unwrap_or_else(|| body.to_owned()), changed)
    }

    #[test]
    fn members_are_left_out_wherever_the_path_leads() {
        let drop = r#"{"id":"r","members":["temperature","messages[].name","messages[].content[].cache_control"],"action":"drop"}"#;
        let body = r#"{"messages":[{"name":"a","content":"name"},{"content":[{"cache_control":1,"text":"a"},7,{"text":"b"}]}],"temperature": 1.0, "top_p":1}"#;
        let expected = r#"{"messages":[{"content":"name"},{"content":[{"text":"a"},7,{"text":"b"}]}], "top_p":1}"#;
        assert_eq!(
            edited(drop, body),
            (
                expected.to_owned(),
                [
                    "temperature",
                    "messages[].name",
                    "messages[].content[].cache_control"
                ]
                .map(str::to_owned)
                .to_vec()
            )
        );
    }

    #[test]
    fn of_two_members_that_exclude_each_other_one_stays() {
        let rule = r#"{"id":"r","members":["top_p"],"action":{"drop_beside":"temperature"}}"#;
        for (body, expected) in [
            (r#"{"temperature":1,"top_p":1}"#, r#"{"temperature":1}"#),
            (r#"{"top_p":1}"#, r#"{"top_p":1}"#),
            (
                r#"{"temperature":null,"top_p":1}"#,
                r#"{"temperature":null,"top_p":1}"#,
            ),
        ] {
            assert_eq!(edited(rule, body).0, expected);
        }
    }

    #[test]
    fn a_member_gets_a_value_beside_another_one() {
        let rule = r#"{"id":"r","members":["effort"],"action":{"set_beside":{"other":"tools","value":"none"}}}"#;
        for (body, expected) in [
            (
                r#"{"tools":[{}],"effort":"high"}"#,
                r#"{"tools":[{}],"effort":"none"}"#,
            ),
            (r#"{"tools":[{}]}"#, r#"{"effort":"none","tools":[{}]}"#),
        ] {
            let (edited, changed) = edited(rule, body);
            assert_eq!((edited.as_str(), changed.len()), (expected, 1));
        }
        for body in [
            r#"{"tools":[],"effort":"high"}"#,
            r#"{"tools":null}"#,
            r#"{"tools":[{}],"effort":"none"}"#,
        ] {
            assert_eq!(edited(rule, body), (body.to_owned(), vec![]));
        }
    }

    #[test]
    fn a_rule_has_exceptions_by_words_of_the_request() {
        let rule = r#"{"id":"r","members":["top_p"],"unless":{"effort":["none"],"reasoning.effort":["none"]},"action":"drop"}"#;
        for kept in [
            r#"{"effort":"none","top_p":1}"#,
            r#"{"reasoning":{"effort":"none"},"top_p":1}"#,
        ] {
            assert_eq!(edited(rule, kept).0, kept);
        }
        for lost in [r#"{"effort":"low","top_p":1}"#, r#"{"top_p":1}"#] {
            assert_eq!(edited(rule, lost).1, ["top_p"]);
        }
    }

    #[test]
    fn a_renamed_member_keeps_its_value_and_gives_way_to_one_of_that_name() {
        let rule = r#"{"id":"r","members":["messages[].reasoning_content"],"action":{"rename":"reasoning"}}"#;
        let body =
            r#"{"messages":[{"reasoning_content":"a"},{"reasoning_content":"b","reasoning":"c"}]}"#;
        let (edited, changed) = edited(rule, body);
        assert_eq!(
            edited,
            r#"{"messages":[{"reasoning":"a"},{"reasoning":"c"}]}"#
        );
        assert_eq!(changed, ["messages[].reasoning_content"]);
    }

    #[test]
    fn missing_members_get_their_default() {
        let rule = r#"{"id":"r","members":["a.b"],"action":{"default":[1]}}"#;
        assert_eq!(
            edited(rule, r#"{"a":{}}"#),
            (r#"{"a":{"b":[1]}}"#.to_owned(), vec![])
        );
        for body in [r#"{"a":{"b":2}}"#, r#"{"b":1}"#, r#"{"a":[{}]}"#] {
            assert_eq!(edited(rule, body), (body.to_owned(), vec![]));
        }
    }

    #[test]
    fn words_and_numbers_become_what_the_server_takes() {
        let words = r#"{"id":"r","members":["effort"],"action":{"words":{"known":["low","high"],"instead":{"max":"high"}}}}"#;
        let choice = r#"{"id":"r","members":["tool_choice"],"action":{"words":{"known":["auto"],"instead":{"function":"auto"}}}}"#;
        let range = r#"{"id":"r","members":["n"],"action":{"range":{"least":16,"most":99.5}}}"#;
        let label = r#"{"id":"r","members":["user"],"action":{"label":3}}"#;
        let address = r#"{"id":"r","members":["user"],"action":"hide_addresses"}"#;
        for (rule, body, expected, is_named) in [
            (address, r#"{"user":"a@b"}"#, r#"{"user":"a@b"}"#, false),
            (
                address,
                r#"{"user":"a@b.example"}"#,
                r#"{"user":"ebb18a030bf15174f5714e24d63af1a81355c951ea7389bd2a9bd18e3d0c2477"}"#,
                true,
            ),
            (words, r#"{"effort":"low"}"#, r#"{"effort":"low"}"#, false),
            (words, r#"{"effort":"max"}"#, r#"{"effort":"high"}"#, true),
            (words, r#"{"effort":"none"}"#, "{}", true),
            (words, r#"{"effort":null}"#, r#"{"effort":null}"#, false),
            (
                choice,
                r#"{"tool_choice":{"type":"function","function":{"name":"f"}}}"#,
                r#"{"tool_choice":"auto"}"#,
                true,
            ),
            (range, r#"{"n":1}"#, r#"{"n":16}"#, true),
            (range, r#"{"n":100}"#, r#"{"n":99.5}"#, true),
            (range, r#"{"n":20.50}"#, r#"{"n":20.50}"#, false),
            (label, r#"{"user":"äöü"}"#, r#"{"user":"äöü"}"#, false),
            // The beginning of the SHA-256 of the text `abcd`.
            (label, r#"{"user":"abcd"}"#, r#"{"user":"88d"}"#, true),
        ] {
            let (edited, changed) = edited(rule, body);
            assert_eq!((edited.as_str(), !changed.is_empty()), (expected, is_named));
        }
    }

    #[test]
    fn rules_without_meaning_are_refused() {
        for (rule, expected) in [
            (r#"{"id":"","action":"drop"}"#, "id: a name is needed"),
            (
                r#"{"id":"r","action":"drop"}"#,
                "'r': members: at least one is needed",
            ),
            (
                r#"{"id":"r","members":["a"],"action":"reasons"}"#,
                "'r': members: 'a' has no meaning for this action",
            ),
            (
                r#"{"id":"r","members":["messages"],"action":"drop"}"#,
                "'r': members: 'messages' is needed by every request",
            ),
            (
                r#"{"id":"r","members":["n"],"action":{"range":{"least":2,"most":1}}}"#,
                "'r': action: 2 is more than 1",
            ),
        ] {
            let rule: Rule = serde_json::from_str(rule).unwrap();
            assert_eq!(rule.check().unwrap_err(), expected);
        }
    }
}
