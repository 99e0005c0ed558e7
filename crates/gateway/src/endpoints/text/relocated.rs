//! Errors about a request with resolved references, at the places that its client knows.

use wire::ApiError;

/// Returns an error about an expanded request with the places that its client knows: without this
/// many items at the beginning of the input.
pub(super) fn relocated(error: ApiError, before: usize) -> ApiError {
    if before == 0 {
        return error;
    }
    ApiError {
        message: relocate(&error.message, before),
        param: error.param.map(|param| relocate(&param, before)),
        ..error
    }
}

fn relocate(text: &str, before: usize) -> String {
    let mut pieces = text.split(INDEX);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (number, rest) = piece.split_once(']').unwrap_or((piece, ""));
        let place = number.parse::<usize>().ok();
        out += INDEX;
        match place.and_then(|place| place.checked_sub(before)) {
            Some(place) => out += &format!("{place}]{rest}"),
            None => out += piece,
        }
    }
    out
}

/// The part of a path before the number of an item.
const INDEX: &str = "input[";

#[cfg(test)]
mod tests {
    use wire::ErrorKind;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "an error of the test alone")]
    fn errors_have_the_places_that_the_client_knows() {
        let text = "Invalid 'input[3].content[1]': expected a text. Missing: 'input[12]', 'inputs[4]', 'input[1]'.";
        let error = ApiError::new(ErrorKind::InvalidRequest, "invalid_value", text);
        let error = relocated(error.with_param("input[3].content[1]"), 3);
        assert_eq!(error.param.as_deref(), Some("input[0].content[1]"));
        assert_eq!(
            error.message,
            "Invalid 'input[0].content[1]': expected a text. Missing: 'input[9]', 'inputs[4]', 'input[1]'."
        );
    }
}
