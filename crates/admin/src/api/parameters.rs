//! Query parameters of the admin API: declared once, for parsing and for the OpenAPI document.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use url::form_urlencoded;

use super::failure::Failure;

/// The declaration of a query parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) description: &'static str,
}

/// The values of a query parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// A time as of RFC 3339.
    Time,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Some of these words, separated by commas.
    Words(&'static [&'static str]),
    /// A whole number.
    Number,
}

/// The query parameters of a request: each is declared, and occurs once.
#[derive(Debug)]
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub(super) fn parse(query: &str, declared: &[Parameter]) -> Result<Self, Failure> {
        let mut found: Vec<(String, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()).into_owned() {
            let Some(parameter) = declared.iter().find(|parameter| parameter.name == name) else {
                let names: Vec<_> = declared.iter().map(|parameter| parameter.name).collect();
                return Err(Failure::unknown(&name, &names));
            };
            if found.iter().any(|(other, _)| *other == name) {
                return Err(Failure::invalid(&name, "is given twice, but accepted once"));
            }
            parameter.check(&value)?;
            found.push((name, value));
        }
        Ok(Self(found))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    /// Returns a time in Unix milliseconds.
    fn time(&self, name: &str) -> Option<i64> {
        let at: Timestamp = self.get(name)?.parse().ok()?;
        Some(at.as_millisecond())
    }

    /// Returns the times `from` and `to` in Unix milliseconds, as far as they are given.
    pub(super) fn period(&self) -> Result<(Option<i64>, Option<i64>), Failure> {
        let (from, to) = (self.time("from"), self.time("to"));
        match from.zip(to) {
            Some((from, to)) if to < from => Err(Failure::invalid("to", "is before 'from'")),
            _ => Ok((from, to)),
        }
    }

    /// Returns true if a list of words has this one.
    pub(super) fn has(&self, name: &str, word: &str) -> bool {
        let words = self.get(name).unwrap_or_default().split(',');
        words.into_iter().any(|found| found == word)
    }

    /// Returns a number within `range`.
    pub(super) fn number<N>(
        &self,
        name: &str,
        range: RangeInclusive<N>,
    ) -> Result<Option<N>, Failure>
    where
        N: std::str::FromStr + PartialOrd + std::fmt::Display,
    {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.map(Some).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            Failure::invalid(
                name,
                format!("is {text:?}, but must be a number from {least} to {most}"),
            )
        })
    }
}

impl Parameter {
    fn check(&self, value: &str) -> Result<(), Failure> {
        let is_one_of = |words: &[&str], value: &str| words.contains(&value);
        let accepted = match self.kind {
            Kind::Text | Kind::Number => return Ok(()),
            Kind::Time if value.parse::<Timestamp>().is_ok() => return Ok(()),
            Kind::Time => "a time such as 2027-01-31T12:00:00Z".to_owned(),
            Kind::Word(words) if is_one_of(words, value) => return Ok(()),
            Kind::Word(words) => format!("one of {}", words.join(", ")),
            Kind::Words(words) if value.split(',').all(|word| is_one_of(words, word)) => {
                return Ok(());
            }
            Kind::Words(words) => format!("some of {}, separated by commas", words.join(", ")),
        };
        let found = wire::truncate_for_error(value);
        Err(Failure::invalid(
            self.name,
            format!("is '{found}', but must be {accepted}"),
        ))
    }
}
