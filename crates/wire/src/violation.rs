//! Validation errors of a request, and the ordered list of them.

#![expect(
    clippy::disallowed_methods,
    reason = "each error here has a row in tests/testkit/errors.toml"
)]

use std::fmt;

use crate::{ApiError, ErrorKind, Json, Path};

crate::text_enum! {
    /// The machine-readable codes of all errors that clients get.
    #[non_exhaustive]
    pub enum Code {
        ArrayAboveMaxLength = "array_above_max_length",
        ContentPolicyViolation = "content_policy_violation",
        ContextLengthExceeded = "context_length_exceeded",
        DecimalAboveMaxValue = "decimal_above_max_value",
        DecimalBelowMinValue = "decimal_below_min_value",
        DuplicateParameter = "duplicate_parameter",
        EmptyArray = "empty_array",
        EmptyString = "empty_string",
        GatewayConcurrencyLimit = "gateway_concurrency_limit",
        InsufficientPermissions = "insufficient_permissions",
        InsufficientQuota = "insufficient_quota",
        IntegerAboveMaxValue = "integer_above_max_value",
        IntegerBelowMinValue = "integer_below_min_value",
        InvalidApiKey = "invalid_api_key",
        InvalidImageUrl = "invalid_image_url",
        InvalidJson = "invalid_json",
        InvalidParameterCombination = "invalid_parameter_combination",
        InvalidPrompt = "invalid_prompt",
        InvalidStreamId = "invalid_stream_id",
        InvalidType = "invalid_type",
        InvalidValue = "invalid_value",
        MethodNotAllowed = "method_not_allowed",
        MissingApiKey = "missing_api_key",
        MissingRequiredParameter = "missing_required_parameter",
        ModelNotFound = "model_not_found",
        ModelNotSupported = "model_not_supported",
        NotFound = "not_found",
        PreviousResponseNotFound = "previous_response_not_found",
        RateLimitExceeded = "rate_limit_exceeded",
        RequestEnded = "request_ended",
        RequestTimeout = "request_timeout",
        RequestTooLarge = "request_too_large",
        ServerError = "server_error",
        ServerIsOverloaded = "server_is_overloaded",
        ServiceUnavailable = "service_unavailable",
        SlowDown = "slow_down",
        StringAboveMaxLength = "string_above_max_length",
        TargetTooLong = "target_too_long",
        UnknownParameter = "unknown_parameter",
        UnknownUrl = "unknown_url",
        UnsupportedContentType = "unsupported_content_type",
        UnsupportedFileMimetype = "unsupported_file_mimetype",
        UnsupportedItemReference = "unsupported_item_reference",
        UnsupportedMediaType = "unsupported_media_type",
        UnsupportedParameter = "unsupported_parameter",
        UnsupportedValue = "unsupported_value",
        UpgradeRequired = "upgrade_required",
        UpstreamError = "upstream_error",
        UpstreamTimeout = "upstream_timeout",
        UsageNotIncluded = "usage_not_included",
        WebsocketConnectionLimitReached = "websocket_connection_limit_reached",
        WebsocketStreamLimitReached = "websocket_stream_limit_reached",
    }
}

/// The reason of a violation. Protocols word it differently; this holds the facts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Problem {
    /// The body is not valid JSON.
    NotJson {
        /// The line of the first invalid byte, from 1.
        line: usize,
        /// Its column, from 1.
        column: usize,
    },
    /// A required field is absent.
    Missing,
    /// A value of the wrong JSON type.
    Type {
        /// The accepted type, with an article: `an array of objects`.
        expected: String,
        /// The type found, with an article: `a string`.
        found: &'static str,
    },
    /// A number below the minimum or above the maximum.
    Range {
        /// The minimum or maximum value.
        limit: f64,
        /// The value found.
        found: f64,
        /// True if the field is an integer.
        integer: bool,
    },
    /// An empty array where at least one element is required.
    EmptyArray,
    /// An empty string where at least one character is required.
    EmptyString,
    /// A string that is too long.
    StringTooLong {
        /// The maximum length in characters.
        maximum: usize,
        /// The length found in characters.
        found: usize,
    },
    /// An array with too many elements.
    ArrayTooLong {
        /// The maximum number of elements.
        maximum: usize,
        /// The number found.
        found: usize,
    },
    /// A string that is not one of the accepted values.
    Word {
        /// The value found, truncated if it is long.
        found: String,
        /// The accepted values.
        accepted: Vec<String>,
    },
    /// A name that is empty, too long, or has characters other than `a-z A-Z 0-9 _ -`.
    Name {
        /// The maximum length in characters.
        maximum: usize,
    },
    /// Any other problem: its code and a complete sentence that names the field.
    Other(Code, String),
}

impl Problem {
    /// Returns the error code of the problem.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::NotJson { .. } => Code::InvalidJson,
            Self::Missing => Code::MissingRequiredParameter,
            Self::Type { .. } => Code::InvalidType,
            Self::Range {
                limit,
                found,
                integer: true,
            } if found < limit => Code::IntegerBelowMinValue,
            Self::Range { integer: true, .. } => Code::IntegerAboveMaxValue,
            Self::Range { limit, found, .. } if found < limit => Code::DecimalBelowMinValue,
            Self::Range { .. } => Code::DecimalAboveMaxValue,
            Self::Word { .. } | Self::Name { .. } => Code::InvalidValue,
            Self::EmptyArray => Code::EmptyArray,
            Self::EmptyString => Code::EmptyString,
            Self::StringTooLong { .. } => Code::StringAboveMaxLength,
            Self::ArrayTooLong { .. } => Code::ArrayAboveMaxLength,
            Self::Other(code, _) => *code,
        }
    }
}

/// One validation error of a request: the field and the problem.
///
/// `Display` produces the sentence used by OpenAI-style APIs.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The path of the field, such as `input[0].content`; empty for the document itself.
    pub param: String,
    /// The problem with the field.
    pub problem: Problem,
}

impl Violation {
    /// Returns the error code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.problem.code()
    }
}

impl Violation {
    /// Returns its sentence in a message that has several: with its field, which is in `param` only
    /// for the first one.
    fn among_others(&self) -> String {
        let sentence = self.to_string();
        match self.problem {
            Problem::Word { .. } => {
                let field = format!("Invalid value for '{}':", self.param);
                sentence.replacen("Invalid value:", &field, 1)
            }
            _ => sentence,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let param = &self.param;
        match &self.problem {
            Problem::NotJson { line, column } => write!(
                f,
                "We could not parse the JSON body of your request. (HINT: line {line}, column {column})"
            ),
            Problem::Missing => write!(f, "Missing required parameter: '{param}'."),
            Problem::Type { expected, found } => {
                write!(
                    f,
                    "Invalid type for '{param}': expected {expected}, but got {found} instead."
                )
            }
            Problem::Range {
                limit,
                found,
                integer,
            } => {
                let kind = if *integer { "integer" } else { "decimal" };
                let (side, sign) = if found < limit {
                    ("below minimum", ">=")
                } else {
                    ("above maximum", "<=")
                };
                write!(f, "Invalid '{param}': {kind} {side} value. ")?;
                write!(
                    f,
                    "Expected a value {sign} {limit}, but got {found} instead."
                )
            }
            Problem::EmptyArray => {
                write!(
                    f,
                    "Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty array instead."
                )
            }
            Problem::EmptyString => write!(
                f,
                "Invalid '{param}': empty string. Expected a string with minimum length 1, but got an empty string instead."
            ),
            Problem::StringTooLong { maximum, found } => write!(
                f,
                "Invalid '{param}': string too long. Expected a string with maximum length {maximum}, but got a string with length {found} instead."
            ),
            Problem::ArrayTooLong { maximum, found } => {
                write!(
                    f,
                    "Invalid '{param}': array too long. Expected an array with maximum length {maximum}, but got an array with length {found} instead."
                )
            }
            Problem::Word { found, accepted } => {
                let last = if accepted.len() > 2 {
                    ", and "
                } else {
                    " and "
                };
                let accepted = quoted(accepted, last);
                write!(
                    f,
                    "Invalid value: '{found}'. Supported values are: {accepted}."
                )
            }
            Problem::Name { maximum } => write!(
                f,
                "Invalid '{param}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]{{1,{maximum}}}$'."
            ),
            Problem::Other(_, sentence) => f.write_str(sentence),
        }
    }
}

/// Lists words in quotation marks, with `last` before the last one: `'a', 'b' or 'c'`.
#[must_use]
pub fn quoted(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [word] => format!("'{word}'"),
        [others @ .., word] => format!("'{}'{last}'{word}'", others.join("', '")),
    }
}

/// The validation errors of a request, in the order found: the first hundred in full, and the total
/// number.
///
/// The cap bounds memory: a small document could otherwise produce an error for every few bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Violations {
    kept: Vec<Violation>,
    more: usize,
}

impl Violations {
    /// Records `problem` at `path`.
    pub fn add(&mut self, path: &Path<'_>, problem: Problem) {
        if self.is_full() {
            self.more += 1;
        } else {
            self.kept.push(Violation {
                param: path.to_string(),
                problem,
            });
        }
    }

    /// Appends the violations of another list.
    pub fn append(&mut self, other: Self) {
        let room = MAX_KEPT - self.kept.len();
        self.more += other.more + other.kept.len().saturating_sub(room);
        self.kept.extend(other.kept.into_iter().take(room));
    }

    /// Returns true if further violations are only counted. Callers may stop searching for them.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kept.len() >= MAX_KEPT
    }

    /// Records that the required field at `path` is absent.
    pub fn missing(&mut self, path: &Path<'_>) {
        self.add(path, Problem::Missing);
    }

    /// Records an invalid value of the field at `path`, described by a complete sentence.
    pub fn invalid(&mut self, path: &Path<'_>, sentence: impl Into<String>) {
        self.add(path, Problem::Other(Code::InvalidValue, sentence.into()));
    }

    /// Records a text that is not the URL that the field at `path` needs.
    pub fn invalid_url(&mut self, path: &Path<'_>) {
        let sentence = format!(
            "Invalid '{path}'. Expected a valid URL, but got a value with an invalid format."
        );
        self.invalid(path, sentence);
    }

    /// Records a choice of tools in a request without any.
    pub fn choice_without_tools(&mut self, path: &Path<'_>) {
        let sentence = "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.";
        self.invalid(path, sentence);
    }

    /// Records the choice of a function that is not among the tools.
    pub fn unknown_function(&mut self, path: &Path<'_>, name: &str) {
        let name = crate::truncate_for_error(name);
        let sentence = format!(
            "Invalid value for 'tool_choice': no function named '{name}' was specified in the 'tools' parameter."
        );
        self.invalid(path, sentence);
    }

    /// Records a string that is not one of the accepted values of the field at `path`.
    pub fn unknown_word(&mut self, path: &Path<'_>, found: &str, accepted: &[&str]) {
        let found = crate::truncate_for_error(found).to_owned();
        let accepted = accepted.iter().map(|word| (*word).to_owned()).collect();
        self.add(path, Problem::Word { found, accepted });
    }

    /// Records a field or value that is valid but not supported, described by a complete sentence.
    pub fn unsupported(&mut self, path: &Path<'_>, code: Code, sentence: impl Into<String>) {
        self.add(path, Problem::Other(code, sentence.into()));
    }

    /// Reads an integer that is sent as text. Records a violation if the text is not an integer.
    pub fn read_integer(&mut self, path: &Path<'_>, text: &str) -> Option<i64> {
        let integer = text.parse().ok();
        if integer.is_none() {
            let expected = "an integer".to_owned();
            let found = "a string";
            self.add(path, Problem::Type { expected, found });
        }
        integer
    }

    /// Checks an integer against an inclusive range; `None` is accepted.
    pub fn check_integer(
        &mut self,
        path: &Path<'_>,
        value: Option<i64>,
        minimum: i64,
        maximum: i64,
    ) {
        self.check_range(
            path,
            value.map(|value| value as f64),
            minimum as f64,
            maximum as f64,
            true,
        );
    }

    /// Checks a number against an inclusive range; `None` is accepted.
    pub fn check_number(
        &mut self,
        path: &Path<'_>,
        value: Option<f64>,
        minimum: f64,
        maximum: f64,
    ) {
        self.check_range(path, value, minimum, maximum, false);
    }

    fn check_range(
        &mut self,
        path: &Path<'_>,
        value: Option<f64>,
        minimum: f64,
        maximum: f64,
        integer: bool,
    ) {
        match value {
            Some(found) if found < minimum => self.add(
                path,
                Problem::Range {
                    limit: minimum,
                    found,
                    integer,
                },
            ),
            Some(found) if found > maximum => self.add(
                path,
                Problem::Range {
                    limit: maximum,
                    found,
                    integer,
                },
            ),
            _ => {}
        }
    }

    /// Checks that the id of a model, at the field `model`, is not empty.
    pub fn check_model(&mut self, model: &str) {
        if model.is_empty() {
            self.add(&Path::ROOT.key("model"), Problem::EmptyString);
        }
    }

    /// Checks that a string is one of the accepted values; `None` is accepted.
    pub fn check_word(&mut self, path: &Path<'_>, word: Option<&str>, accepted: &[&str]) {
        if let Some(word) = word.filter(|word| !accepted.contains(word)) {
            self.unknown_word(path, word, accepted);
        }
    }

    /// Checks that a JSON Schema is an object; `None` is accepted.
    pub fn check_schema(&mut self, path: &Path<'_>, schema: Option<&Json>) {
        if schema.is_some_and(|schema| !schema.is_object()) {
            self.invalid(
                path,
                format!("Invalid '{path}': expected a JSON Schema object."),
            );
        }
    }

    /// Checks the number of characters of a string against a maximum.
    pub fn check_text(&mut self, path: &Path<'_>, text: &str, maximum: usize) {
        let found = text.chars().count();
        if found > maximum {
            self.add(path, Problem::StringTooLong { maximum, found });
        }
    }

    /// Checks a name: 1 to `maximum` characters of `a-z A-Z 0-9 _ -`.
    pub fn check_name(&mut self, path: &Path<'_>, name: &str, maximum: usize) {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > maximum || !name.chars().all(allowed) {
            self.add(path, Problem::Name { maximum });
        }
    }

    /// Checks the length of an array against a maximum.
    pub fn check_length(&mut self, path: &Path<'_>, found: usize, maximum: usize) {
        if found > maximum {
            self.add(path, Problem::ArrayTooLong { maximum, found });
        }
    }

    /// Returns `value` if there are no violations.
    ///
    /// # Errors
    /// Returns the violations if there are any.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }

    /// Returns true if there are no violations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns the number of violations, including those that were only counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.len() + self.more
    }

    /// Returns the first violation, which determines `code` and `param` of the response.
    #[must_use]
    pub fn first(&self) -> Option<&Violation> {
        self.kept.first()
    }

    /// Iterates over the kept violations in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Violation> {
        self.kept.iter()
    }

    /// Converts the list to one error. The first violation determines `code` and `param`; `format`
    /// words each one.
    #[must_use]
    pub fn into_error(self, format: impl Fn(&Violation) -> String) -> ApiError {
        let Some(first) = self.first() else {
            return ApiError::new(
                ErrorKind::InvalidRequest,
                Code::InvalidValue.as_str(),
                "The request is not valid.",
            );
        };
        let messages: Vec<String> = self.iter().take(MAX_REPORTED).map(format).collect();
        let more = match self.len().saturating_sub(MAX_REPORTED) {
            0 => String::new(),
            more if self.is_full() => format!(" (and at least {more} more)"),
            more => format!(" (and {more} more)"),
        };
        let error = ApiError::new(
            ErrorKind::InvalidRequest,
            first.code().as_str(),
            messages.join(" ") + &more,
        );
        if first.param.is_empty() {
            error
        } else {
            error.with_param(first.param.clone())
        }
    }
}

impl From<Violations> for ApiError {
    fn from(found: Violations) -> Self {
        let format = match found.len() {
            0 | 1 => Violation::to_string,
            _ => Violation::among_others,
        };
        found.into_error(format)
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentences: Vec<_> = self.iter().map(Violation::among_others).collect();
        f.write_str(&sentences.join(" "))
    }
}

impl std::error::Error for Violations {}

/// Maximum number of violations spelled out in an error message; the rest are counted, to keep it
/// readable.
const MAX_REPORTED: usize = 8;
const MAX_KEPT: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_reported_with_both_numbers() {
        let mut found = Violations::default();
        let path = Path::ROOT.key("partial_images");
        found.check_integer(&path, Some(4), 0, 3);
        found.check_integer(&path, Some(-1), 0, 3);
        found.check_integer(&path, Some(3), 0, 3);
        let messages: Vec<_> = found
            .iter()
            .map(|v| (v.code().as_str(), v.to_string()))
            .collect();
        assert_eq!(
            messages,
            [
                (
                    "integer_above_max_value",
                    "Invalid 'partial_images': integer above maximum value. Expected a value <= 3, but got 4 instead."
                        .to_owned()
                ),
                (
                    "integer_below_min_value",
                    "Invalid 'partial_images': integer below minimum value. Expected a value >= 0, but got -1 instead."
                        .to_owned()
                ),
            ]
        );
    }

    #[test]
    fn the_first_finding_decides_code_and_param() {
        let mut found = Violations::default();
        found.missing(&Path::ROOT.key("model"));
        found.unknown_word(&Path::ROOT.key("truncation"), "x", &["auto", "disabled"]);
        let error = ApiError::from(found);
        assert_eq!(
            (error.code, error.param.as_deref()),
            ("missing_required_parameter", Some("model"))
        );
        assert_eq!(
            error.message,
            "Missing required parameter: 'model'. Invalid value for 'truncation': 'x'. Supported values are: 'auto' and 'disabled'."
        );
    }

    #[test]
    fn a_name_is_reported_with_the_allowed_characters() {
        let path = Path::ROOT.key("name");
        let mut found = Violations::default();
        found.check_name(&path, "get_weather-2", 64);
        assert!(found.is_empty());
        for name in ["", "a b", "\u{e9}", &"a".repeat(65)] {
            let mut found = Violations::default();
            found.check_name(&path, name, 64);
            let messages: Vec<_> = found.iter().map(|v| (v.code(), v.to_string())).collect();
            let sentence = "Invalid 'name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]{1,64}$'.";
            assert_eq!(messages, [(Code::InvalidValue, sentence.to_owned())]);
        }
    }

    #[test]
    fn a_long_list_is_cut_and_counted() {
        let mut found = Violations::default();
        let list = Path::ROOT.key("a");
        for i in 0..20 {
            found.missing(&list.index(i));
        }
        assert!(
            ApiError::from(found)
                .message
                .ends_with("'a[7]'. (and 12 more)")
        );
    }

    #[test]
    fn no_more_than_a_hundred_are_kept() {
        let mut found = Violations::default();
        let list = Path::ROOT.key("a");
        for i in 0..60 {
            found.missing(&list.index(i));
        }
        assert!(!found.is_full());
        found.append(found.clone());
        assert_eq!(
            (found.len(), found.iter().count(), found.is_full()),
            (120, 100, true)
        );
        found.missing(&list);
        assert_eq!((found.len(), found.iter().count()), (121, 100));
        assert!(
            ApiError::from(found)
                .message
                .ends_with("'a[7]'. (and at least 113 more)")
        );
    }
}
