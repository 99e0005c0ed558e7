//! Time zones, from the database that is compiled in.

use std::fmt;
use std::str::FromStr;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::decimal::from_text;

/// A time zone of the IANA database, such as `Europe/Berlin`; UTC by default.
///
/// The rules come from the database in the program, not from the machine, so replicas of one
/// version agree on them.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String", inline)]
pub struct Zone(TimeZone);

/// The error for a text that is not the name of a time zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time zone: expected an IANA name, such as \"Europe/Berlin\" or \"UTC\"")]
pub struct ZoneError(pub String);

impl Zone {
    /// Coordinated universal time.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// Returns the IANA name.
    #[must_use]
    pub fn name(&self) -> &str {
        // Never fails: a zone without a name cannot be parsed.
        self.0.iana_name().unwrap_or_default()
    }

    pub(crate) fn rules(&self) -> &TimeZone {
        &self.0
    }
}

impl Default for Zone {
    fn default() -> Self {
        Self::UTC
    }
}

impl FromStr for Zone {
    type Err = ZoneError;

    fn from_str(name: &str) -> Result<Self, ZoneError> {
        let found = TimeZoneDatabase::bundled().get(name).ok();
        found
            .filter(|zone| zone.iana_name().is_some())
            .map(Self)
            .ok_or_else(|| ZoneError(name.to_owned()))
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Zone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(
            deserializer,
            "the name of a time zone, such as \"Europe/Berlin\"",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_found_by_its_name() {
        for name in ["UTC", "Europe/Berlin", "Asia/Kathmandu"] {
            assert_eq!(name.parse::<Zone>().unwrap().to_string(), name);
        }
        assert_eq!("UTC".parse(), Ok(Zone::default()));
        for name in ["", "Berlin", "Etc/Unknown", "+01:00", "CET-1CEST", "../UTC"] {
            assert_eq!(name.parse::<Zone>(), Err(ZoneError(name.to_owned())));
        }
    }
}
