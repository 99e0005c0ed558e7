//! Tests of periods. The laws of the zones name the days of clock changes.

use proptest::prelude::*;

use super::*;

fn zone(name: &str) -> Zone {
    name.parse().unwrap()
}

/// Checks periods. Each line of `table` has a zone, a time, and the start, the end and the name of
/// the period that contains it.
fn check(window: Window, table: &str) {
    let lines = table.lines().map(str::trim).filter(|line| !line.is_empty());
    for line in lines {
        let [name, at, start, end, id] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let at = at.parse().unwrap();
        let period = window.period(at, &zone(name));
        let found = (
            period.start.to_string(),
            period.end.to_string(),
            period.id(),
        );
        assert_eq!(
            found,
            (start.to_owned(), end.to_owned(), id.to_owned()),
            "{line}"
        );
        assert!(
            period.contains(at) && !period.contains(period.end),
            "{line}"
        );
    }
}

#[test]
fn days_of_a_clock_change_have_23_and_25_hours() {
    check(
        Window::Day,
        "
        Europe/Berlin     2026-03-29T12:00:00Z  2026-03-28T23:00:00Z  2026-03-29T22:00:00Z  2026-03-29
        Europe/Berlin     2026-10-25T12:00:00Z  2026-10-24T22:00:00Z  2026-10-25T23:00:00Z  2026-10-25
        America/New_York  2026-03-08T12:00:00Z  2026-03-08T05:00:00Z  2026-03-09T04:00:00Z  2026-03-08
        America/New_York  2026-11-01T12:00:00Z  2026-11-01T04:00:00Z  2026-11-02T05:00:00Z  2026-11-01
        ",
    );
}

#[test]
fn a_period_begins_with_its_start_and_ends_before_its_end() {
    check(
        Window::Day,
        "
        Europe/Berlin  2026-11-24T22:59:59.999999999Z  2026-11-23T23:00:00Z  2026-11-24T23:00:00Z  2026-11-24
        Europe/Berlin  2026-11-24T23:00:00Z            2026-11-24T23:00:00Z  2026-11-25T23:00:00Z  2026-11-25
        ",
    );
}

/// In Berlin, October has an hour more.
#[test]
fn a_month_begins_on_its_first_by_the_clock_of_the_zone() {
    check(
        Window::Month,
        "
        Europe/Berlin       2026-10-31T22:59:59Z  2026-09-30T22:00:00Z  2026-10-31T23:00:00Z  2026-10
        Europe/Berlin       2026-10-31T23:00:00Z  2026-10-31T23:00:00Z  2026-11-30T23:00:00Z  2026-11
        UTC                 2026-12-31T23:59:59Z  2026-12-01T00:00:00Z  2027-01-01T00:00:00Z  2026-12
        Pacific/Kiritimati  2026-12-31T10:00:00Z  2026-12-31T10:00:00Z  2027-01-31T10:00:00Z  2027-01
        UTC                 2028-02-29T23:59:59Z  2028-02-01T00:00:00Z  2028-03-01T00:00:00Z  2028-02
        UTC                 2100-02-28T23:59:59Z  2100-02-01T00:00:00Z  2100-03-01T00:00:00Z  2100-02
        ",
    );
    check(
        Window::Day,
        "UTC  2028-02-29T12:00:00Z  2028-02-29T00:00:00Z  2028-03-01T00:00:00Z  2028-02-29",
    );
}

/// The first days of 2027 are in the last week of 2026, which has 53, and the last days of 2024 in
/// the first week of 2025.
#[test]
fn a_week_begins_on_monday_and_is_named_by_iso_8601() {
    check(
        Window::Week,
        "
        UTC            2026-11-25T12:00:00Z  2026-11-23T00:00:00Z  2026-11-30T00:00:00Z  2026-W48
        UTC            2026-11-29T23:59:59Z  2026-11-23T00:00:00Z  2026-11-30T00:00:00Z  2026-W48
        UTC            2026-11-30T00:00:00Z  2026-11-30T00:00:00Z  2026-12-07T00:00:00Z  2026-W49
        UTC            2027-01-03T12:00:00Z  2026-12-28T00:00:00Z  2027-01-04T00:00:00Z  2026-W53
        UTC            2024-12-30T00:00:00Z  2024-12-30T00:00:00Z  2025-01-06T00:00:00Z  2025-W01
        Europe/Berlin  2026-10-25T12:00:00Z  2026-10-18T22:00:00Z  2026-10-25T23:00:00Z  2026-W43
        ",
    );
}

/// On 29 March, the hour from 2 to 3 does not occur.
#[test]
fn the_hour_that_occurs_twice_has_two_names() {
    check(
        Window::Hour,
        "
        Europe/Berlin  2026-10-25T00:30:00Z      2026-10-25T00:00:00Z  2026-10-25T01:00:00Z  2026-10-25T02+02:00
        Europe/Berlin  2026-10-25T01:30:00Z      2026-10-25T01:00:00Z  2026-10-25T02:00:00Z  2026-10-25T02+01:00
        Europe/Berlin  2026-10-25T02:30:00Z      2026-10-25T02:00:00Z  2026-10-25T03:00:00Z  2026-10-25T03+01:00
        Europe/Berlin  2026-03-29T00:59:59Z      2026-03-29T00:00:00Z  2026-03-29T01:00:00Z  2026-03-29T01+01:00
        Europe/Berlin  2026-03-29T01:00:00Z      2026-03-29T01:00:00Z  2026-03-29T02:00:00Z  2026-03-29T03+02:00
        Europe/Berlin  2026-11-25T12:34:56.789Z  2026-11-25T12:00:00Z  2026-11-25T13:00:00Z  2026-11-25T13+01:00
        ",
    );
}

/// On Lord Howe Island, 2:00 becomes 1:30 on 5 April 2026, and 2:30 on 4 October. In St. John's,
/// 0:01 became 23:01 of the day before on 7 November 2010.
#[test]
fn hours_begin_by_the_clock_of_zones_with_odd_offsets() {
    check(
        Window::Hour,
        "
        Asia/Kathmandu       2026-11-25T12:00:00Z  2026-11-25T11:15:00Z  2026-11-25T12:15:00Z  2026-11-25T17+05:45
        America/St_Johns     2026-11-25T12:00:00Z  2026-11-25T11:30:00Z  2026-11-25T12:30:00Z  2026-11-25T08-03:30
        UTC                  2026-11-25T12:00:00Z  2026-11-25T12:00:00Z  2026-11-25T13:00:00Z  2026-11-25T12+00:00
        Australia/Lord_Howe  2026-04-04T14:59:59Z  2026-04-04T14:00:00Z  2026-04-04T15:00:00Z  2026-04-05T01+11:00
        Australia/Lord_Howe  2026-04-04T15:00:00Z  2026-04-04T15:00:00Z  2026-04-04T15:30:00Z  2026-04-05T01+10:30
        Australia/Lord_Howe  2026-04-04T15:29:59Z  2026-04-04T15:00:00Z  2026-04-04T15:30:00Z  2026-04-05T01+10:30
        Australia/Lord_Howe  2026-10-03T15:29:59Z  2026-10-03T14:30:00Z  2026-10-03T15:30:00Z  2026-10-04T01+10:30
        America/St_Johns     2010-11-07T02:29:59Z  2010-11-07T01:30:00Z  2010-11-07T02:30:00Z  2010-11-06T23-02:30
        America/St_Johns     2010-11-07T02:30:30Z  2010-11-07T02:30:00Z  2010-11-07T02:31:00Z  2010-11-07T00-02:30
        America/St_Johns     2010-11-07T02:31:00Z  2010-11-07T02:31:00Z  2010-11-07T03:30:00Z  2010-11-06T23-03:30
        America/St_Johns     2010-11-07T03:30:00Z  2010-11-07T03:30:00Z  2010-11-07T04:30:00Z  2010-11-07T00-03:30
        Australia/Lord_Howe  2026-10-03T15:30:00Z  2026-10-03T15:30:00Z  2026-10-03T16:00:00Z  2026-10-04T02+11:00
        ",
    );
}

/// In Beirut, 0:00 becomes 1:00; in Havana, 1:00 became 0:00. Samoa left out 30 December 2011. In
/// St. John's, 0:01 became 23:01 of the day before.
#[test]
fn daily_windows_are_contiguous_across_dst_changes() {
    check(
        Window::Day,
        "
        Asia/Beirut       2026-03-28T22:00:00Z  2026-03-28T22:00:00Z  2026-03-29T21:00:00Z  2026-03-29
        America/Havana    2024-11-03T05:30:00Z  2024-11-03T04:00:00Z  2024-11-04T05:00:00Z  2024-11-03
        Pacific/Apia      2011-12-30T09:59:59Z  2011-12-29T10:00:00Z  2011-12-30T10:00:00Z  2011-12-29
        Pacific/Apia      2011-12-30T10:00:00Z  2011-12-30T10:00:00Z  2011-12-31T10:00:00Z  2011-12-31
        America/St_Johns  2010-11-07T02:30:30Z  2010-11-07T02:30:00Z  2010-11-08T03:30:00Z  2010-11-07
        America/St_Johns  2010-11-07T03:00:00Z  2010-11-07T02:30:00Z  2010-11-08T03:30:00Z  2010-11-07
        ",
    );
}

#[test]
fn the_ends_of_time_are_no_panic() {
    for window in WINDOWS {
        for at in [Timestamp::MIN, Timestamp::MAX] {
            for name in ZONES {
                let period = window.period(at, &zone(name));
                assert!(period.start <= at && at <= period.end, "{period:?}");
            }
        }
    }
}

const WINDOWS: [Window; 4] = [Window::Hour, Window::Day, Window::Week, Window::Month];
const ZONES: [&str; 8] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "America/Havana",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Apia",
];

proptest! {
    /// Between 1970 and 2100, the periods around any time leave no gaps, do not overlap, and have
    /// different names.
    #[test]
    fn periods_follow_each_other(
        second in 0..4_102_444_800_i64,
        around_change in prop::option::of(-7200..7200_i64),
        window in prop::sample::select(&WINDOWS[..]),
        name in prop::sample::select(&ZONES[..]),
    ) {
        let (zone, mut at) = (zone(name), Timestamp::from_second(second).unwrap());
        let change = zone.rules().following(at).next();
        if let (Some(seconds), Some(change)) = (around_change, change) {
            at = ahead(change.timestamp(), SignedDuration::from_secs(seconds));
        }
        let this = window.period(at, &zone);
        prop_assert!(this.contains(at));
        prop_assert_eq!(window.period(this.start, &zone), this);
        prop_assert_eq!(window.period(back(this.end, INSTANT), &zone), this);
        let next = window.period(this.end, &zone);
        prop_assert_eq!(next.start, this.end);
        prop_assert_ne!(next.id(), this.id());
    }
}
