//! Colours: their names, and how one is mixed from another.

use std::collections::HashMap;
use std::sync::LazyLock;

use image::Rgba;

/// An opaque sRGB colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Colour {
    pub(crate) rgb: [u8; 3],
}

impl Colour {
    pub(crate) const WHITE: Self = Self::hex(0xff_ff_ff);

    /// The colour written `#rrggbb`.
    pub(crate) const fn hex(rgb: u32) -> Self {
        Self {
            rgb: [(rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8],
        }
    }

    /// The colour that CSS writes `#rgb`, `#rrggbb` or `white`.
    pub(crate) fn from_css(text: &str) -> Option<Self> {
        let Some(digits) = text.strip_prefix('#') else {
            return (text == "white").then_some(Self::WHITE);
        };
        let value = u32::from_str_radix(digits, 16)
            .ok()
            .filter(|_| !digits.starts_with('+'))?;
        match digits.len() {
            6 => Some(Self::hex(value)),
            3 => Some(Self {
                rgb: [value >> 8, value >> 4, value].map(|digit| (digit & 15) as u8 * 17),
            }),
            _ => None,
        }
    }

    /// The colour at `hue` degrees; saturation and lightness are 0 to 1.
    pub(crate) fn hsl(hue: f32, saturation: f32, lightness: f32) -> Self {
        let reach = saturation * lightness.min(1.0 - lightness);
        let channel = |n: f32| {
            let k = (n + hue.rem_euclid(360.0) / 30.0) % 12.0;
            byte((lightness - reach * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0)) * 255.0)
        };
        Self {
            rgb: [channel(0.0), channel(8.0), channel(4.0)],
        }
    }

    /// Hue in degrees, saturation and lightness from 0 to 1.
    pub(crate) fn to_hsl(self) -> (f32, f32, f32) {
        let [r, g, b] = self.rgb.map(|channel| f32::from(channel) / 255.0);
        let high = r.max(g).max(b);
        let low = r.min(g).min(b);
        let lightness = f32::midpoint(high, low);
        let chroma = high - low;
        if chroma == 0.0 {
            return (0.0, 0.0, lightness);
        }
        let hue = if high == r {
            ((g - b) / chroma).rem_euclid(6.0)
        } else if high == g {
            (b - r) / chroma + 2.0
        } else {
            (r - g) / chroma + 4.0
        };
        (
            hue * 60.0,
            chroma / (1.0 - (2.0 * lightness - 1.0).abs()),
            lightness,
        )
    }

    /// This colour with a `part` of another, 0 to 1.
    pub(crate) fn mix(self, other: Self, part: f32) -> Self {
        let channel = |i: usize| {
            let from = f32::from(self.rgb[i]);
            byte(from + (f32::from(other.rgb[i]) - from) * part.clamp(0.0, 1.0))
        };
        Self {
            rgb: [channel(0), channel(1), channel(2)],
        }
    }

    pub(crate) fn lighter(self, part: f32) -> Self {
        self.mix(Self::WHITE, part)
    }

    /// Darker, and a little cooler, as a shadow is.
    pub(crate) fn darker(self, part: f32) -> Self {
        self.mix(Self::hex(0x14_0f_2d), part)
    }

    /// The hue turned by so many degrees.
    pub(crate) fn turned(self, degrees: f32) -> Self {
        let (hue, saturation, lightness) = self.to_hsl();
        Self::hsl(hue + degrees, saturation, lightness)
    }

    /// The apparent brightness, 0 to 1.
    pub(crate) fn luma(self) -> f32 {
        let [r, g, b] = self.rgb.map(f32::from);
        (0.299 * r + 0.587 * g + 0.114 * b) / 255.0
    }

    /// The grey that looks as bright.
    pub(crate) fn grey(self) -> Self {
        Self {
            rgb: [byte(self.luma() * 255.0); 3],
        }
    }

    /// The hue, 0 to 360 degrees; none for greys.
    pub(crate) fn hue(self) -> Option<f32> {
        (self.spread() >= 12).then(|| self.to_hsl().0.rem_euclid(360.0))
    }

    /// 0 for greys, 1 for clear colours.
    pub(crate) fn colourfulness(self) -> f32 {
        ((f32::from(self.spread()) - 24.0) / 40.0).clamp(0.0, 1.0)
    }

    /// The closeness to another colour, 0 to 1: by hue, or by lightness where that is a grey.
    pub(crate) fn nearness(self, to: Self) -> f32 {
        let Some(wanted) = to.hue() else {
            let away = (self.luma() * 255.0 - to.luma() * 255.0).abs();
            return (1.0 - self.colourfulness()) * (1.0 - (away - 40.0) / 30.0).clamp(0.0, 1.0);
        };
        let Some(own) = self.hue() else { return 0.0 };
        let away = (own - wanted).abs();
        let away = away.min(360.0 - away);
        self.colourfulness() * (1.0 - (away - 28.0) / 12.0).clamp(0.0, 1.0)
    }

    /// The distance of the strongest channel from the weakest.
    fn spread(self) -> u8 {
        let [r, g, b] = self.rgb;
        r.max(g).max(b) - r.min(g).min(b)
    }
}

impl From<&Rgba<u8>> for Colour {
    fn from(pixel: &Rgba<u8>) -> Self {
        Self {
            rgb: [pixel[0], pixel[1], pixel[2]],
        }
    }
}

/// The nearest value that a channel can have.
pub(crate) fn byte(value: f32) -> u8 {
    value.round() as u8
}

/// The change that a word makes to the colour after it.
pub(crate) fn shade(word: &str) -> Option<fn(Colour) -> Colour> {
    Some(match word {
        "light" | "pale" | "pastel" | "soft" | "powder" | "baby" => |colour| {
            let (hue, saturation, lightness) = colour.to_hsl();
            Colour::hsl(hue, saturation * 0.9, lightness + (1.0 - lightness) * 0.5)
        },
        "dark" | "deep" | "midnight" => |colour| {
            let (hue, saturation, lightness) = colour.to_hsl();
            Colour::hsl(hue, saturation, lightness * 0.5)
        },
        "bright" | "vivid" | "neon" | "hot" => |colour| match colour.to_hsl() {
            (_, ..0.05, _) => colour.lighter(0.3),
            (hue, saturation, lightness) => {
                Colour::hsl(hue, (saturation * 1.3).min(1.0), lightness.max(0.52))
            }
        },
        _ => return None,
    })
}

/// The colour that a lowercase word of a prompt names: `assets/colours.txt` has the CSS names, and
/// other English names.
///
/// Plain names have the tone that looks well on a page, not a full channel.
pub(crate) fn named(word: &str) -> Option<Colour> {
    static NAMES: LazyLock<HashMap<&str, Colour>> = LazyLock::new(|| names().collect());
    NAMES.get(word).copied()
}

fn names() -> impl Iterator<Item = (&'static str, Colour)> {
    let lines = include_str!("../assets/colours.txt").lines();
    lines
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, value)| Some((name, Colour::from_css(value)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_file_is_a_name() {
        assert_eq!(
            names().count(),
            include_str!("../assets/colours.txt").lines().count()
        );
        assert_eq!(named("teal"), Some(Colour::hex(0x00_80_80)));
        assert_eq!(named("cornflowerblue"), Some(Colour::hex(0x64_95_ed)));
        assert_eq!(named("house"), None);
    }

    #[test]
    fn hex_is_read_in_both_lengths() {
        assert_eq!(Colour::from_css("#ff8800"), Some(Colour::hex(0xff_88_00)));
        assert_eq!(Colour::from_css("#f80"), Some(Colour::hex(0xff_88_00)));
        assert_eq!(Colour::from_css("#ff880"), None);
        assert_eq!(Colour::from_css("#+f8"), None);
    }

    #[test]
    fn hsl_comes_back() {
        for colour in names().map(|(_, colour)| colour) {
            let (hue, saturation, lightness) = colour.to_hsl();
            let back = Colour::hsl(hue, saturation, lightness);
            assert!(
                colour
                    .rgb
                    .iter()
                    .zip(back.rgb)
                    .all(|(a, b)| a.abs_diff(b) <= 1),
                "{colour:?} {back:?}"
            );
        }
    }

    #[test]
    fn shades_go_the_way_they_say() {
        let blue = named("blue").unwrap();
        assert!(shade("light").unwrap()(blue).luma() > blue.luma());
        assert!(shade("dark").unwrap()(blue).luma() < blue.luma());
    }
}
