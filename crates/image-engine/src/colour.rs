//! Colours: what they are called, and how one is made of another.

/// An opaque sRGB colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Colour {
    /// Red, green, blue.
    pub(crate) rgb: [u8; 3],
}

impl Colour {
    pub(crate) const WHITE: Self = Self::hex(0xff_ff_ff);

    /// The colour written `#rrggbb`.
    pub(crate) const fn hex(rgb: u32) -> Self {
        Self { rgb: [(rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8] }
    }

    /// The colour at `hue` degrees; saturation and lightness are 0 to 1.
    pub(crate) fn hsl(hue: f32, saturation: f32, lightness: f32) -> Self {
        let reach = saturation * lightness.min(1.0 - lightness);
        let channel = |n: f32| {
            let k = (n + hue.rem_euclid(360.0) / 30.0) % 12.0;
            let value = lightness - reach * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
            (value * 255.0).round() as u8
        };
        Self { rgb: [channel(0.0), channel(8.0), channel(4.0)] }
    }

    /// Hue in degrees, saturation and lightness from 0 to 1.
    pub(crate) fn to_hsl(self) -> (f32, f32, f32) {
        let [r, g, b] = self.rgb.map(|channel| f32::from(channel) / 255.0);
        let (high, low) = (r.max(g).max(b), r.min(g).min(b));
        let (lightness, chroma) = (f32::midpoint(high, low), high - low);
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
        (hue * 60.0, chroma / (1.0 - (2.0 * lightness - 1.0).abs()), lightness)
    }

    /// This colour with a `part` of another, 0 to 1.
    pub(crate) fn mix(self, other: Self, part: f32) -> Self {
        let channel = |i: usize| {
            let (from, to) = (f32::from(self.rgb[i]), f32::from(other.rgb[i]));
            (from + (to - from) * part.clamp(0.0, 1.0)).round() as u8
        };
        Self { rgb: [channel(0), channel(1), channel(2)] }
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

    /// How bright it looks, 0 to 1.
    pub(crate) fn luma(self) -> f32 {
        let [r, g, b] = self.rgb.map(f32::from);
        (0.299 * r + 0.587 * g + 0.114 * b) / 255.0
    }

    /// The grey that looks as bright.
    pub(crate) fn grey(self) -> Self {
        Self { rgb: [(self.luma() * 255.0).round() as u8; 3] }
    }
}

/// What is said of a colour before its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shade {
    Light,
    Dark,
    Bright,
}

impl Shade {
    /// The shade that a word tells, if any.
    pub(crate) fn named(word: &str) -> Option<Self> {
        Some(match word {
            "light" | "pale" | "pastel" | "soft" | "powder" | "baby" => Self::Light,
            "dark" | "deep" | "midnight" => Self::Dark,
            "bright" | "vivid" | "neon" | "hot" => Self::Bright,
            _ => return None,
        })
    }

    /// The colour in this shade.
    pub(crate) fn of(self, colour: Colour) -> Colour {
        let (hue, saturation, lightness) = colour.to_hsl();
        match self {
            Self::Light => Colour::hsl(hue, saturation * 0.9, lightness + (1.0 - lightness) * 0.5),
            Self::Dark => Colour::hsl(hue, saturation, lightness * 0.5),
            Self::Bright if saturation < 0.05 => colour.lighter(0.3),
            Self::Bright => Colour::hsl(hue, (saturation * 1.3).min(1.0), lightness.max(0.52)),
        }
    }
}

/// The colour of a `#rgb` or `#rrggbb`, without its sign.
pub(crate) fn from_hex(digits: &str) -> Option<Colour> {
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let value = u32::from_str_radix(digits, 16).ok()?;
    match digits.len() {
        6 => Some(Colour::hex(value)),
        3 => {
            let [r, g, b] = [value >> 8, value >> 4, value].map(|digit| (digit & 15) * 17);
            Some(Colour::hex(r << 16 | g << 8 | b))
        }
        _ => None,
    }
}

/// The colour that a lowercase word names: the CSS names, and what English says besides.
///
/// Plain names are answered with the tone that looks well on a page, not with a full channel.
pub(crate) fn named(word: &str) -> Option<Colour> {
    let at = NAMES.binary_search_by_key(&word, |(name, _)| name).ok()?;
    Some(Colour::hex(NAMES[at].1))
}

/// Sorted by name.
#[rustfmt::skip]
const NAMES: &[(&str, u32)] = &[
    ("aliceblue", 0xf0f8ff), ("amber", 0xffb000), ("antiquewhite", 0xfaebd7), ("apricot", 0xfbceb1),
    ("aqua", 0x00d8e8), ("aquamarine", 0x7fffd4), ("azure", 0xf0ffff), ("beige", 0xf5e9d0), ("bisque", 0xffe4c4),
    ("black", 0x1c1c22), ("blanchedalmond", 0xffebcd), ("blond", 0xf0d58a), ("blonde", 0xf0d58a),
    ("blue", 0x2456d6), ("blueviolet", 0x8a2be2), ("bronze", 0xb0702e), ("brown", 0x8a5a33), ("burgundy", 0x7a1530),
    ("burlywood", 0xdeb887), ("cadetblue", 0x5f9ea0), ("caramel", 0xc07a3a), ("charcoal", 0x36393f),
    ("chartreuse", 0x7fff00), ("chocolate", 0x7b3f1d), ("cobalt", 0x1747ad), ("copper", 0xb87333),
    ("coral", 0xff7f50), ("cornflowerblue", 0x6495ed), ("cornsilk", 0xfff8dc), ("cream", 0xfff4d6),
    ("crimson", 0xdc143c), ("cyan", 0x14c8dc), ("darkblue", 0x12308c), ("darkcyan", 0x008b8b),
    ("darkgoldenrod", 0xb8860b), ("darkgray", 0x5a5d66), ("darkgreen", 0x0b5d2a), ("darkgrey", 0x5a5d66),
    ("darkkhaki", 0xbdb76b), ("darkmagenta", 0x8b008b), ("darkolivegreen", 0x556b2f), ("darkorange", 0xff8c00),
    ("darkorchid", 0x9932cc), ("darkred", 0x8b1018), ("darksalmon", 0xe9967a), ("darkseagreen", 0x8fbc8f),
    ("darkslateblue", 0x483d8b), ("darkslategray", 0x2f4f4f), ("darkslategrey", 0x2f4f4f),
    ("darkturquoise", 0x00ced1), ("darkviolet", 0x9400d3), ("deeppink", 0xff1493), ("deepskyblue", 0x00bfff),
    ("dimgray", 0x696969), ("dimgrey", 0x696969), ("dodgerblue", 0x1e90ff), ("emerald", 0x1f9d63),
    ("firebrick", 0xb22222), ("floralwhite", 0xfffaf0), ("forestgreen", 0x228b22), ("fuchsia", 0xe628c8),
    ("gainsboro", 0xdcdcdc), ("ghostwhite", 0xf8f8ff), ("ginger", 0xd9782d), ("gold", 0xf2b705),
    ("golden", 0xf2b705), ("goldenrod", 0xdaa520), ("gray", 0x8b8f98), ("green", 0x2a9d4a),
    ("greenyellow", 0xadff2f), ("grey", 0x8b8f98), ("honeydew", 0xf0fff0), ("hotpink", 0xff69b4),
    ("indianred", 0xcd5c5c), ("indigo", 0x4b2a9c), ("ivory", 0xfffff0), ("jade", 0x2aa876), ("khaki", 0xd9c77e),
    ("lavender", 0xc9b8f0), ("lavenderblush", 0xfff0f5), ("lawngreen", 0x7cfc00), ("lemonchiffon", 0xfffacd),
    ("lightblue", 0xa4d3f2), ("lightcoral", 0xf08080), ("lightcyan", 0xd6f6fa), ("lightgoldenrodyellow", 0xfafad2),
    ("lightgray", 0xd3d5da), ("lightgreen", 0x98dfa0), ("lightgrey", 0xd3d5da), ("lightpink", 0xffb6c1),
    ("lightsalmon", 0xffa07a), ("lightseagreen", 0x20b2aa), ("lightskyblue", 0x87cefa),
    ("lightslategray", 0x778899), ("lightslategrey", 0x778899), ("lightsteelblue", 0xb0c4de),
    ("lightyellow", 0xfff7b8), ("lilac", 0xc4a4e0), ("lime", 0x7ed321), ("limegreen", 0x32cd32),
    ("linen", 0xfaf0e6), ("magenta", 0xd924b4), ("maroon", 0x7a1f2b), ("mauve", 0xb784a7),
    ("mediumaquamarine", 0x66cdaa), ("mediumblue", 0x1f3fc0), ("mediumorchid", 0xba55d3),
    ("mediumpurple", 0x9370db), ("mediumseagreen", 0x3cb371), ("mediumslateblue", 0x7b68ee),
    ("mediumspringgreen", 0x00fa9a), ("mediumturquoise", 0x48d1cc), ("mediumvioletred", 0xc71585),
    ("midnightblue", 0x191970), ("mint", 0x98e6c0), ("mintcream", 0xf5fffa), ("mistyrose", 0xffe4e1),
    ("moccasin", 0xffe4b5), ("mustard", 0xd9a521), ("navajowhite", 0xffdead), ("navy", 0x14275e),
    ("ochre", 0xcc7722), ("oldlace", 0xfdf5e6), ("olive", 0x808000), ("olivedrab", 0x6b8e23), ("orange", 0xf58220),
    ("orangered", 0xff4500), ("orchid", 0xda70d6), ("palegoldenrod", 0xeee8aa), ("palegreen", 0x98fb98),
    ("paleturquoise", 0xafeeee), ("palevioletred", 0xdb7093), ("papayawhip", 0xffefd5), ("peach", 0xffc09f),
    ("peachpuff", 0xffdab9), ("periwinkle", 0x9aa5ee), ("peru", 0xcd853f), ("pink", 0xf48fb1), ("plum", 0xa0569a),
    ("powderblue", 0xb0e0e6), ("purple", 0x7b2fbf), ("rebeccapurple", 0x663399), ("red", 0xdc2626),
    ("rose", 0xf0718f), ("rosybrown", 0xbc8f8f), ("royalblue", 0x4169e1), ("ruby", 0xc4143c), ("rust", 0xb7410e),
    ("saddlebrown", 0x8b4513), ("salmon", 0xfa8072), ("sandybrown", 0xf4a460), ("sapphire", 0x1846b0),
    ("scarlet", 0xe02416), ("seagreen", 0x2e8b57), ("seashell", 0xfff5ee), ("sienna", 0xa0522d),
    ("silver", 0xc0c5ce), ("silvery", 0xc0c5ce), ("skyblue", 0x87ceeb), ("slateblue", 0x6a5acd),
    ("slategray", 0x708090), ("slategrey", 0x708090), ("springgreen", 0x00ff7f), ("steelblue", 0x4682b4),
    ("tan", 0xd2b48c), ("teal", 0x008080), ("thistle", 0xd8bfd8), ("tomato", 0xff6347), ("turquoise", 0x30cfc0),
    ("vermilion", 0xe34234), ("violet", 0x8f4fd6), ("wheat", 0xf5deb3), ("white", 0xffffff),
    ("whitesmoke", 0xf5f5f5), ("yellow", 0xffd21f), ("yellowgreen", 0x9acd32),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_found() {
        assert!(NAMES.is_sorted_by_key(|(name, _)| name));
        assert_eq!(named("teal"), Some(Colour::hex(0x00_80_80)));
        assert_eq!(named("cornflowerblue"), Some(Colour::hex(0x64_95_ed)));
        assert_eq!(named("house"), None);
    }

    #[test]
    fn hex_is_read_in_both_lengths() {
        assert_eq!(from_hex("ff8800"), Some(Colour::hex(0xff_88_00)));
        assert_eq!(from_hex("f80"), Some(Colour::hex(0xff_88_00)));
        assert_eq!(from_hex("ff880"), None);
        assert_eq!(from_hex("+f8"), None);
    }

    #[test]
    fn hsl_comes_back() {
        for colour in NAMES.iter().map(|(_, rgb)| Colour::hex(*rgb)) {
            let (hue, saturation, lightness) = colour.to_hsl();
            let back = Colour::hsl(hue, saturation, lightness);
            assert!(colour.rgb.iter().zip(back.rgb).all(|(a, b)| a.abs_diff(b) <= 1), "{colour:?} {back:?}");
        }
    }

    #[test]
    fn shades_go_the_way_they_say() {
        let blue = named("blue").unwrap();
        assert!(Shade::Light.of(blue).luma() > blue.luma());
        assert!(Shade::Dark.of(blue).luma() < blue.luma());
    }
}
