//! Calendar windows in a time zone, and their periods.

#[cfg(test)]
mod tests;

use jiff::civil::{Date, time};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Zone;

/// A calendar window: the length of time after which a budget begins again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// From one full hour of the clock to the next. Where the clock is changed within an hour, a
    /// period ends there.
    Hour,
    /// From midnight to midnight: 23 or 25 hours on days when the clock is changed.
    Day,
    /// From Monday to Monday.
    Week,
    /// From the first of a month to the first of the next.
    Month,
}

/// One period of a window: the time from `start` up to, but without, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Period {
    /// The first moment.
    pub start: Timestamp,
    /// The first moment of the next period.
    pub end: Timestamp,
    window: Window,
    /// The offset of the zone at `start`.
    offset: Offset,
}

impl Window {
    /// Returns the period that contains the time `at`, by the clock of `zone`.
    ///
    /// The periods of a window leave no gaps and do not overlap. This searches the changes of the
    /// zone, so keep a period until its end where speed matters.
    #[must_use]
    pub fn period(self, at: Timestamp, zone: &Zone) -> Period {
        let rules = zone.rules();
        let (start, end) = match self {
            Self::Hour => hour(at, rules),
            Self::Day | Self::Week | Self::Month => self.days(at, rules),
        };
        Period {
            start,
            end,
            window: self,
            offset: rules.to_offset(start),
        }
    }

    /// Returns the bounds of the period of whole days around `at`.
    fn days(self, at: Timestamp, rules: &TimeZone) -> (Timestamp, Timestamp) {
        let bounds = |first: Date| {
            let next = self.next(first);
            let end = next.map_or(Timestamp::MAX, |next| midnight(next, rules));
            (midnight(first, rules), end)
        };
        let first = self.first(rules.to_datetime(at).date());
        let (start, end) = bounds(first);
        if start <= at && at < end {
            return (start, end);
        }
        // Clocks have been set back from just after midnight to the day before. The period has
        // begun with the first of the two midnights.
        let before = first.yesterday().map(|date| self.first(date));
        let other = if at < start {
            before.ok()
        } else {
            self.next(first)
        };
        bounds(other.unwrap_or(first))
    }

    /// Returns the first day of the period of `date`.
    fn first(self, date: Date) -> Date {
        match self {
            Self::Hour | Self::Day => date,
            Self::Week => {
                let days = date.weekday().to_monday_zero_offset();
                date.saturating_sub(days.days())
            }
            Self::Month => date.first_of_month(),
        }
    }

    /// Returns the first day of the period after the one that begins with `first`, or `None` at the
    /// end of time.
    fn next(self, first: Date) -> Option<Date> {
        let length = match self {
            Self::Hour | Self::Day => 1.day(),
            Self::Week => 1.week(),
            Self::Month => 1.month(),
        };
        first.checked_add(length).ok()
    }

    /// The format of the name of a period.
    fn format(self) -> &'static str {
        match self {
            Self::Hour => "%Y-%m-%dT%H%:z",
            Self::Day => "%Y-%m-%d",
            Self::Week => "%G-W%V",
            Self::Month => "%Y-%m",
        }
    }
}

impl Period {
    /// Returns a name that is the same on each replica, and differs from the names of all other
    /// periods of its window and zone: `2026-11-25T13+01:00`, `2026-11-25`, `2026-W48` or
    /// `2026-11`.
    #[must_use]
    pub fn id(&self) -> String {
        let start = self.start.to_zoned(self.offset.to_time_zone());
        start.strftime(self.window.format()).to_string()
    }

    /// Returns true if the time `at` is in the period.
    #[must_use]
    pub fn contains(&self, at: Timestamp) -> bool {
        self.start <= at && at < self.end
    }
}

/// Returns the bounds of the hour around `at`: the longest time in which neither the hour of the
/// clock nor the offset changes.
fn hour(at: Timestamp, rules: &TimeZone) -> (Timestamp, Timestamp) {
    let offset = rules.to_offset(at);
    let local = offset.to_datetime(at);
    let seconds = i64::from(local.minute()) * 60 + i64::from(local.second());
    let elapsed = SignedDuration::new(seconds, local.subsec_nanosecond());
    let mut start = back(at, elapsed);
    let mut end = ahead(start, SignedDuration::from_hours(1));
    if rules.to_offset(start) != offset {
        let mut changes = rules.preceding(ahead(at, INSTANT)).map(|it| it.timestamp());
        let change = changes.find(|change| rules.to_offset(back(*change, INSTANT)) != offset);
        start = change.unwrap_or(start);
    }
    if rules.to_offset(back(end, INSTANT)) != offset {
        let change = rules.following(at).find(|it| it.offset() != offset);
        end = change.map_or(end, |it| it.timestamp());
    }
    (start, end)
}

/// Returns the first moment of a day.
fn midnight(date: Date, rules: &TimeZone) -> Timestamp {
    // If there are two midnights, the first one; without any, the moment to which the clock is set
    // ahead.
    let midnight = rules.to_timestamp(date.to_datetime(time(0, 0, 0, 0)));
    midnight.unwrap_or(if date.year() < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    })
}

fn ahead(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

fn back(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_sub(by).unwrap_or(Timestamp::MIN)
}

/// The shortest time.
const INSTANT: SignedDuration = SignedDuration::from_nanos(1);
