//! Parameters and values that are valid but not served, in the words of OpenAI:
//! <https://github.com/immersive-translate/immersive-translate/issues/2694>,
//! <https://github.com/web-infra-dev/midscene/issues/791>,
//! <https://github.com/gabrii/Cursor-Azure-GPT-5/issues/33>.

#![expect(
    clippy::disallowed_methods,
    reason = "each error here has a row in tests/testkit/errors.toml"
)]

use crate::{ApiError, Code, ErrorKind, Path, Violations};

impl ApiError {
    /// Creates the error for a parameter that is not served. `instead` is the one to send.
    #[must_use]
    pub fn unsupported_parameter(param: &str, instead: &str) -> Self {
        let sentence = parameter(param, Some(instead));
        Self::unsupported(Code::UnsupportedParameter, sentence).with_param(param)
    }

    /// Creates the error for a value that is not served.
    #[must_use]
    pub fn unsupported_value(param: &str, value: &str) -> Self {
        Self::unsupported(Code::UnsupportedValue, self::value(param, value)).with_param(param)
    }

    fn unsupported(code: Code, sentence: String) -> Self {
        Self::new(ErrorKind::InvalidRequest, code.as_str(), sentence)
    }
}

impl Violations {
    /// Records a parameter that is not served. `instead` is the one to send.
    pub fn unsupported_parameter(&mut self, path: &Path<'_>, instead: Option<&str>) {
        let sentence = parameter(&path.to_string(), instead);
        self.unsupported(path, Code::UnsupportedParameter, sentence);
    }

    /// Records a value that is not served.
    pub fn unsupported_value(&mut self, path: &Path<'_>, value: &str) {
        let sentence = self::value(&path.to_string(), value);
        self.unsupported(path, Code::UnsupportedValue, sentence);
    }

    /// Records a value that is not served, of a parameter with a single value that is.
    pub fn only_default(&mut self, path: &Path<'_>, value: &str, default: &str) {
        let sentence = self::value(&path.to_string(), value);
        let sentence = format!("{sentence} Only the default ({default}) value is supported.");
        self.unsupported(path, Code::UnsupportedValue, sentence);
    }
}

fn parameter(param: &str, instead: Option<&str>) -> String {
    let sentence = format!("Unsupported parameter: '{param}' is not supported with this model.");
    match instead {
        Some(instead) => format!("{sentence} Use '{instead}' instead."),
        None => sentence,
    }
}

fn value(param: &str, value: &str) -> String {
    let value = crate::truncate_for_error(value);
    format!("Unsupported value: '{param}' does not support {value} with this model.")
}
