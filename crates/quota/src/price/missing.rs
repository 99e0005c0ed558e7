//! Prices that a model lacks for the usage of a request.

use std::fmt;

/// A price that a request needs for an exact cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PriceKind {
    /// The price of audio in the prompt.
    AudioInput,
    /// The price of images in the prompt.
    ImageInput,
    /// The price of generated audio.
    AudioOutput,
    /// The price of generated images, as tokens.
    ImageOutput,
    /// The price of the service tier.
    ServiceTier,
    /// The price of a picture with its size and quality.
    Picture,
}

/// The prices that were missing for the cost of a request. The tokens and pictures without their
/// own price were charged at another price of the model, so the cost is not exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissingPrices([bool; PriceKind::ALL.len()]);

impl PriceKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::AudioInput,
        Self::ImageInput,
        Self::AudioOutput,
        Self::ImageOutput,
        Self::ServiceTier,
        Self::Picture,
    ];

    /// Returns its name, which is the field name in a price document.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AudioInput => "audio_input",
            Self::ImageInput => "image_input",
            Self::AudioOutput => "audio_output",
            Self::ImageOutput => "image_output",
            Self::ServiceTier => "service_tier",
            Self::Picture => "pictures",
        }
    }
}

impl MissingPrices {
    /// Adds a price.
    pub(super) fn add(&mut self, kind: PriceKind) {
        self.0[kind as usize] = true;
    }

    /// Returns these prices and the prices in `other`.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own |= other;
        }
        self
    }

    /// Returns the prices.
    pub fn iter(&self) -> impl Iterator<Item = PriceKind> {
        let is_missing = |kind: &PriceKind| self.0[*kind as usize];
        PriceKind::ALL.into_iter().filter(is_missing)
    }

    /// Returns true if no price is missing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

/// The names, with a space between each two.
impl fmt::Display for MissingPrices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, kind) in self.iter().enumerate() {
            let space = if i > 0 { " " } else { "" };
            write!(f, "{space}{}", kind.as_str())?;
        }
        Ok(())
    }
}
