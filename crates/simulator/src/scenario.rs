//! Named faults and quirks. The binary selects one by the model name of a request.
//!
//! A scenario is a conforming reply with one fault. Scenarios of streams send a conforming reply to
//! requests for a plain one, and scenarios of one protocol send conforming replies in the other
//! protocols.

/// Defines the scenarios of a file. Each has its template with a default for each `N`, the rows
/// that it covers, its description, and the function that plays it.
macro_rules! scenarios {
    ($($template:literal $(($($number:literal),*))? [$($row:ident)*] $about:literal => $act:expr;)*) => {
        pub(super) const ALL: &[Scenario] = &[$(Scenario {
            template: $template,
            rows: &[$(stringify!($row)),*],
            about: $about,
            numbers: pair(&[$($($number),*)?]),
            act: $act,
        }),*];
    };
}

mod coding;
mod decoding;
mod ending;
mod events;
mod http;
mod protocol;
mod random;

use std::sync::LazyLock;

pub use random::{Fault, fault};

use crate::honest;
use crate::play::Play;
use crate::request::Request;

/// A fault or quirk.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The name with `N` for each number: `reset-at-N`.
    pub template: &'static str,
    /// The rows of the fault list that it covers, for example `U7`; empty if it is not a fault.
    pub rows: &'static [&'static str],
    /// A description in one line.
    pub about: &'static str,
    /// The value of each `N` in the template.
    numbers: [u64; 2],
    act: fn(&Request, [u64; 2]) -> Play,
}

/// Returns all faults and quirks, with default values for their numbers.
#[must_use]
pub fn all() -> &'static [Scenario] {
    static ALL: LazyLock<Vec<Scenario>> = LazyLock::new(|| {
        [
            http::ALL,
            ending::ALL,
            decoding::ALL,
            events::ALL,
            protocol::ALL,
            random::ALL,
        ]
        .concat()
    });
    &ALL
}

/// Returns the models for clients that need certain output, which are no faults.
#[must_use]
pub fn models() -> &'static [Scenario] {
    coding::ALL
}

/// Returns the scenario or model with this name, which has a number for each `N` of the template. A number
/// at the end is optional.
#[must_use]
pub fn named(name: &str) -> Option<Scenario> {
    let mut known = all().iter().chain(models());
    known.find_map(|scenario| scenario.read(name))
}

/// Plays the scenario selected by the model name of the request; other models get a conforming
/// reply.
pub fn answer(request: &Request) -> Play {
    named(&request.model()).map_or_else(
        || honest::answer(request),
        |scenario| scenario.play(request),
    )
}

impl Scenario {
    /// The name with its numbers: `reset-at-200`.
    #[must_use]
    pub fn name(&self) -> String {
        self.numbers
            .iter()
            .fold(self.template.to_owned(), |name, number| {
                name.replacen('N', &number.to_string(), 1)
            })
    }

    /// Returns the reply to a request.
    pub fn play(&self, request: &Request) -> Play {
        (self.act)(request, self.numbers)
    }

    /// Returns this scenario with the numbers of `name`, if the name matches the template.
    fn read(&self, name: &str) -> Option<Self> {
        if self.template.strip_suffix("-N") == Some(name) {
            return Some(*self);
        }
        if name.split('-').count() != self.template.split('-').count() {
            return None;
        }
        let mut read = *self;
        let mut numbers = read.numbers.iter_mut();
        for (word, place) in name.split('-').zip(self.template.split('-')) {
            match place {
                "N" => *numbers.next()? = word.parse().ok()?,
                _ if word == place => {}
                _ => return None,
            }
        }
        Some(read)
    }
}

/// Converts a number of a scenario to a size or an index.
fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

const fn pair(numbers: &[u64]) -> [u64; 2] {
    match numbers {
        [] => [0, 0],
        [first] => [*first, 0],
        [first, second, ..] => [*first, *second],
    }
}
