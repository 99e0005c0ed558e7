//! Service tiers, at which vendors offer the same model for other prices.

/// The service tier at which a request was processed, as its answer states it.
///
/// The vendors' pages are [OpenAI's](https://platform.openai.com/docs/guides/priority-processing),
/// [Anthropic's](https://docs.anthropic.com/en/api/service-tiers) and
/// [Groq's](https://console.groq.com/docs/service-tiers).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceTier {
    /// The usual one, which vendors call `default`, `standard` or `on_demand`.
    #[default]
    Standard,
    /// Slower and cheaper.
    Flex,
    /// Faster and dearer.
    Priority,
    /// Processed within a day.
    Batch,
    /// Capacity that was bought before, at OpenAI.
    Scale,
    /// Capacity that was bought before, at Groq.
    Performance,
    /// One that is not known here.
    Other,
}

impl ServiceTier {
    /// The service tiers that have a name of their own.
    pub const NAMED: [Self; 5] = [
        Self::Flex,
        Self::Priority,
        Self::Batch,
        Self::Scale,
        Self::Performance,
    ];

    /// Returns the service tier with this name. `auto` is a wish of a request and no service tier.
    #[must_use]
    pub fn named(name: &[u8]) -> Self {
        match name {
            b"" | b"auto" | b"default" | b"standard" | b"standard_only" | b"on_demand" => {
                Self::Standard
            }
            name => {
                let is_it = |tier: &Self| tier.as_str().as_bytes() == name;
                Self::NAMED.into_iter().find(is_it).unwrap_or(Self::Other)
            }
        }
    }

    /// Returns its name unless it is the usual one.
    #[must_use]
    pub fn special(self) -> Option<&'static str> {
        (self != Self::Standard).then_some(self.as_str())
    }

    /// Returns its name, as prices and rows of usage have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Flex => "flex",
            Self::Priority => "priority",
            Self::Batch => "batch",
            Self::Scale => "scale",
            Self::Performance => "performance",
            Self::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ServiceTier as Tier;

    #[test]
    fn a_service_tier_has_the_name_of_its_vendor() {
        for (name, tier) in [
            ("default", Tier::Standard),
            ("standard", Tier::Standard),
            ("auto", Tier::Standard),
            ("on_demand", Tier::Standard),
            ("flex", Tier::Flex),
            ("priority", Tier::Priority),
            ("batch", Tier::Batch),
            ("scale", Tier::Scale),
            ("performance", Tier::Performance),
            ("Flex", Tier::Other),
            ("turbo", Tier::Other),
        ] {
            assert_eq!(Tier::named(name.as_bytes()), tier, "{name}");
        }
    }
}
