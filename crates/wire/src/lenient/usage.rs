//! The token counts of an answer: how servers spell them, and how they are settled.
//!
//! A protocol has a table of [`Spelling`]s. Its readers collect the reported counts in [`Counts`],
//! and callers that need the usage get the settled [`Tokens`].

mod spellings;

use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

pub use self::spellings::{OPENAI, OpenAi, WRITES};
use super::Tokens;
use super::members::{Any, Count, Text, Wanted};
use crate::{Cursor, ServiceTier};

/// A count that servers report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountKind {
    /// The prompt, with the tokens that were read from a cache or written to one.
    Prompt,
    /// The prompt without those.
    Uncached,
    /// The tokens of the prompt that were read from a cache.
    CacheRead,
    /// The tokens of the prompt that were written to a cache.
    CacheWrite,
    /// The tokens of the prompt that were written to a cache for five minutes.
    CacheWrite5m,
    /// The tokens of the prompt that were written to a cache for an hour.
    CacheWrite1h,
    /// The tokens of the prompt that are audio.
    AudioInput,
    /// The tokens of the prompt that are images.
    ImageInput,
    /// The answer.
    Output,
    /// The tokens of reasoning.
    Reasoning,
    /// The tokens of the answer that are audio.
    AudioOutput,
    /// The tokens of the answer that are images.
    ImageOutput,
    /// The prompt and the answer.
    Total,
}

/// The name of a member of a usage, and its meaning.
#[derive(Clone, Copy, Debug)]
pub struct Spelling {
    /// The name.
    pub name: &'static str,
    /// The meaning.
    pub meaning: Meaning,
}

/// The meaning of a member of a usage.
#[derive(Clone, Copy, Debug)]
pub enum Meaning {
    /// A count.
    Count(CountKind),
    /// An object with further members.
    Object(&'static [Spelling]),
    /// A list of objects with further members, whose counts are added up.
    Sum(&'static [Spelling]),
    /// The name of a service tier.
    ServiceTier,
}

impl Spelling {
    /// Creates the spelling of a count.
    #[must_use]
    pub const fn count(name: &'static str, kind: CountKind) -> Self {
        let meaning = Meaning::Count(kind);
        Self { name, meaning }
    }

    /// Creates the spelling of an object with further members.
    #[must_use]
    pub const fn object(name: &'static str, members: &'static [Self]) -> Self {
        let meaning = Meaning::Object(members);
        Self { name, meaning }
    }

    /// Creates the spelling of a list of objects, whose counts are added up.
    #[must_use]
    pub const fn sum(name: &'static str, members: &'static [Self]) -> Self {
        let meaning = Meaning::Sum(members);
        Self { name, meaning }
    }
}

impl Meaning {
    /// Returns the meaning of the member with this name.
    #[must_use]
    pub fn of(name: &[u8], spellings: &[Spelling]) -> Option<Self> {
        let is_it = |spelling: &&Spelling| spelling.name.as_bytes() == name;
        spellings.iter().find(is_it).map(|found| found.meaning)
    }
}

/// The counts that a server has reported so far, of each the largest: counts only grow, so a
/// smaller one that comes later cannot be true. But the parts of a prompt that is split anew, into
/// tokens that are cached and those that are not, come from the last split.
///
/// ```
/// use sluicegate_wire::lenient::{CountKind, Counts};
///
/// let mut counts = Counts::default();
/// assert_eq!(counts.settled(), None);
/// for (kind, count) in [(CountKind::Prompt, 100), (CountKind::Output, 10), (CountKind::Prompt, 0)] {
///     counts.note(kind, count);
/// }
/// // The total contains reasoning that the answer lacks.
/// counts.note(CountKind::Total, 410);
/// let tokens = counts.settled().unwrap();
/// assert_eq!((tokens.input, tokens.output), (100, 310));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    largest: [u64; CountKind::Total as usize + 1],
    is_known: bool,
    /// The last tier that was reported: the first events repeat the tier of the request.
    service_tier: Option<ServiceTier>,
}

impl Counts {
    /// Notes a count. A count that no model can reach is ignored.
    pub fn note(&mut self, kind: CountKind, count: u64) {
        if count <= MAX_TOKENS {
            let known = &mut self.largest[kind as usize];
            *known = count.max(*known);
            let is_sum = matches!(
                kind,
                CountKind::Prompt | CountKind::Uncached | CountKind::Output
            );
            self.is_known |= count > 0 || is_sum;
        }
    }

    /// Notes the name of the service tier.
    pub fn note_service_tier(&mut self, name: &[u8]) {
        self.service_tier = Some(ServiceTier::named(name));
    }

    /// Returns the service tier that was stated last.
    #[must_use]
    pub fn service_tier(&self) -> Option<ServiceTier> {
        self.service_tier
    }

    /// Notes all counts of `other`, which was reported later.
    pub fn merge(&mut self, other: &Self) {
        if other.splits_anew(self) {
            for kind in SPLIT {
                self.largest[kind as usize] = 0;
            }
        }
        for (known, later) in self.largest.iter_mut().zip(other.largest) {
            *known = later.max(*known);
        }
        self.is_known |= other.is_known;
        self.service_tier = other.service_tier.or(self.service_tier);
    }

    /// Returns true if these counts replace the parts of the prompt in `known`: they have all parts,
    /// some of them cached. Servers that learn of the cache at the end first report the whole prompt
    /// as uncached (<https://github.com/maximhq/bifrost/issues/5354>).
    fn splits_anew(&self, known: &Self) -> bool {
        let [uncached, read, write] = SPLIT.map(|kind| self.get(kind));
        let sum = |counts: &Self| SPLIT.iter().map(|kind| counts.get(*kind)).sum::<u64>();
        read + write > 0 && (uncached > 0 || sum(self) >= sum(known))
    }

    /// Adds the counts of `other`, which are of another part of the work.
    fn add(&mut self, other: &Self) {
        for (known, more) in self.largest.iter_mut().zip(other.largest) {
            *known = known.saturating_add(more).min(MAX_TOKENS);
        }
        self.is_known |= other.is_known;
    }

    /// Returns a count as it was reported, or 0.
    #[must_use]
    pub fn get(&self, kind: CountKind) -> u64 {
        self.largest[kind as usize]
    }

    /// Returns the counts such that they add up, unless none is known. The prompt contains the
    /// tokens that were read from a cache and written to one, the answer contains the reasoning,
    /// and both together are at least the total.
    #[must_use]
    pub fn settled(&self) -> Option<Tokens> {
        self.is_known.then(|| {
            let [input, cache_read, cache_write] = self.prompt();
            let reasoning = self.get(CountKind::Reasoning);
            let cached = cache_read.saturating_add(cache_write);
            let mut tokens = Tokens {
                input,
                cache_read,
                cache_write,
                cache_write_1h: self.get(CountKind::CacheWrite1h).min(cache_write),
                audio_input: self.get(CountKind::AudioInput).min(input),
                image_input: self.get(CountKind::ImageInput).min(input),
                output: self.get(CountKind::Output),
                reasoning,
                audio_output: self.get(CountKind::AudioOutput),
                image_output: self.get(CountKind::ImageOutput),
                service_tier: self.service_tier.unwrap_or_default(),
            };
            let sum = input.saturating_add(tokens.output);
            // The total shows tokens that a server counts beside the prompt or beside the answer.
            match self.get(CountKind::Total).saturating_sub(sum) {
                gap if gap == cached && gap != reasoning => tokens.input += gap,
                gap => tokens.output += gap,
            }
            if reasoning > tokens.output {
                tokens.output += reasoning;
            }
            tokens.audio_output = tokens.audio_output.min(tokens.output);
            tokens.image_output = tokens.image_output.min(tokens.output);
            tokens
        })
    }

    /// Returns the settled counts of the prompt, the answer and their sum, unless a usage with these
    /// counts has the same.
    #[must_use]
    pub fn unsettled(&self, tokens: &Tokens) -> Option<[u64; 3]> {
        let settled = [tokens.input, tokens.output, tokens.input + tokens.output];
        let [prompt, output, total] =
            [CountKind::Prompt, CountKind::Output, CountKind::Total].map(|kind| self.get(kind));
        let total = if total == 0 { prompt + output } else { total };
        (self.is_known && [prompt, output, total] != settled).then_some(settled)
    }

    /// Returns the tokens of the prompt, those that were read from a cache, and those that were
    /// written to one.
    fn prompt(&self) -> [u64; 3] {
        let by_duration = self.get(CountKind::CacheWrite5m) + self.get(CountKind::CacheWrite1h);
        let mut write = self.get(CountKind::CacheWrite).max(by_duration);
        let read = self.get(CountKind::CacheRead);
        let (prompt, uncached) = (self.get(CountKind::Prompt), self.get(CountKind::Uncached));
        let sum = uncached + read + write;
        let input = match prompt {
            0 => sum,
            // No part is larger than the whole, so these are counted beside the prompt.
            _ if read.max(write) > prompt => prompt + read + write,
            _ if uncached > 0 => prompt.max(sum),
            _ => prompt,
        };
        // Some servers include cache reads in the count of cache writes.
        write = write.min(input - read);
        [input, read, write]
    }
}

/// A usage that is read by the table of a protocol. It is `None` for any value but an object.
#[derive(Clone, Copy, Debug)]
pub struct Reported<T>(pub Option<Counts>, PhantomData<T>);

/// A table of spellings, as a type.
pub trait Table {
    /// The members of the usage.
    const SPELLINGS: &'static [Spelling];
}

impl<T> Default for Reported<T> {
    fn default() -> Self {
        Self(None, PhantomData)
    }
}

impl<T> Reported<T> {
    /// Returns the settled counts, unless none is known.
    #[must_use]
    pub fn tokens(&self) -> Option<Tokens> {
        self.0?.settled()
    }
}

impl<'de, T: Table> Deserialize<'de> for Reported<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut counts = Counts::default();
        let members = ObjectReader {
            spellings: T::SPELLINGS,
            counts: &mut counts,
        };
        let is_object = from.deserialize_any(Any(members))?.is_some();
        Ok(Self(is_object.then_some(counts), PhantomData))
    }
}

impl Counts {
    /// Reads the value of a member with this meaning, or passes over one without. Returns `None`
    /// for forms that are left to a complete parser, as all methods of [`Cursor`] do.
    pub fn read(&mut self, cursor: &mut Cursor<'_>, meaning: Option<Meaning>) -> Option<()> {
        match meaning {
            None => cursor.skip(MAX_DEPTH),
            Some(_) if cursor.peek()? == b'n' => cursor.word("null"),
            Some(Meaning::Count(kind)) => {
                self.note(kind, cursor.count()?);
                Some(())
            }
            Some(Meaning::Object(spellings)) => cursor
                .members(|cursor, member| self.read(cursor, Meaning::of(member.name, spellings))),
            Some(Meaning::Sum(_)) => None,
            Some(Meaning::ServiceTier) => {
                self.note_service_tier(cursor.text()?);
                Some(())
            }
        }
    }
}

/// Reads an object of a usage.
struct ObjectReader<'c> {
    spellings: &'static [Spelling],
    counts: &'c mut Counts,
}

/// Reads a list of objects of a usage.
struct ListReader<'c>(ObjectReader<'c>);

/// Reads the name of a member.
struct NameReader(&'static [Spelling]);

impl<'de> Wanted<'de> for ObjectReader<'_> {
    type Value = ();

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<Option<()>, A::Error> {
        while let Some(meaning) = members.next_key_seed(NameReader(self.spellings))? {
            let counts = &mut *self.counts;
            match meaning {
                None => _ = members.next_value::<IgnoredAny>()?,
                Some(Meaning::Count(kind)) => {
                    let count = members.next_value::<Count>()?.0;
                    count.into_iter().for_each(|count| counts.note(kind, count));
                }
                Some(Meaning::Object(spellings)) => {
                    _ = members.next_value_seed(Any(ObjectReader { spellings, counts }))?;
                }
                Some(Meaning::Sum(spellings)) => {
                    let list = ListReader(ObjectReader { spellings, counts });
                    members.next_value_seed(Any(list))?;
                }
                Some(Meaning::ServiceTier) => {
                    let name = members.next_value::<Text<'_>>()?;
                    let name = name.get().map(str::as_bytes);
                    name.into_iter()
                        .for_each(|name| counts.note_service_tier(name));
                }
            }
        }
        Ok(Some(()))
    }
}

impl<'de> Wanted<'de> for ListReader<'_> {
    type Value = ();

    fn list<A: SeqAccess<'de>>(self, mut values: A) -> Result<Option<()>, A::Error> {
        let ObjectReader { spellings, counts } = self.0;
        let mut sum = Counts::default();
        loop {
            let mut counts = Counts::default();
            let object = ObjectReader {
                spellings,
                counts: &mut counts,
            };
            if values.next_element_seed(Any(object))?.is_none() {
                break;
            }
            sum.add(&counts);
        }
        counts.merge(&sum);
        Ok(Some(()))
    }
}

impl<'de> DeserializeSeed<'de> for NameReader {
    type Value = Option<Meaning>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl Visitor<'_> for NameReader {
    type Value = Option<Meaning>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Meaning::of(name.as_bytes(), self.0))
    }
}

/// The parts of a prompt. Each token is in one of them.
const SPLIT: [CountKind; 3] = [
    CountKind::Uncached,
    CountKind::CacheRead,
    CountKind::CacheWrite,
];
/// The largest number of tokens that is accepted. Rows of usage have the same limit.
const MAX_TOKENS: u64 = 1 << 40;
/// The nesting of members that are passed over, which bounds the recursion.
const MAX_DEPTH: u8 = 8;

#[cfg(test)]
mod tests;
