//! Words in the picture, broken into lines that fit, and escaped for XML.

use super::canvas::Canvas;
use super::view::Area;
use crate::colour::Colour;

/// The mean width of a character and the distance of lines, in parts of the font's size.
const ADVANCE: f32 = 0.6;
const LEADING: f32 = 1.14;

/// Writes text as large as the area lets it be.
pub(super) fn write(canvas: &mut Canvas, text: &str, area: Area, colour: Colour) {
    let (lines, size) = fit(text, (area.width(), area.height()));
    let x = f32::midpoint(area.left, area.right);
    let top =
        f32::midpoint(area.top, area.bottom) - size * LEADING * (lines.len() as f32 - 1.0) / 2.0;
    for (i, line) in lines.iter().enumerate() {
        let baseline = top + size * (LEADING * i as f32 + 0.34);
        canvas.text(&escape(line), (x, baseline), size, colour, size * 0.055);
    }
}

/// The lines, and the largest size at which they fit.
fn fit(text: &str, (width, height): (f32, f32)) -> (Vec<String>, f32) {
    let mut best = (vec![text.to_owned()], 0.0);
    for lines in 1..=8 {
        let broken = wrap(text, lines);
        let longest = broken
            .iter()
            .map(|line| line.chars().count())
            .max()
            .unwrap_or(1)
            .max(1);
        let size =
            (width / (longest as f32 * ADVANCE)).min(height / (broken.len() as f32 * LEADING));
        if size > best.1 {
            best = (broken, size);
        }
    }
    best
}

/// Breaks text between words into about so many lines of like length.
fn wrap(text: &str, lines: usize) -> Vec<String> {
    let target = text.chars().count().div_ceil(lines);
    let mut broken: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let length = word.chars().count();
        match broken.last_mut() {
            Some(line) if line.chars().count() + 1 + length <= target + 2 => {
                line.push(' ');
                line.push_str(word);
            }
            _ => broken.push(word.to_owned()),
        }
    }
    broken
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_only_text() {
        assert_eq!(
            escape("</text><a b=\"c\">&"),
            "&lt;/text&gt;&lt;a b=&quot;c&quot;&gt;&amp;"
        );
    }

    #[test]
    fn long_text_is_broken_between_words() {
        let (lines, size) = fit(
            "the quick brown fox jumps over the lazy dog",
            (300.0, 300.0),
        );
        assert!(lines.len() > 1 && size > 20.0, "{lines:?} {size}");
        assert_eq!(
            lines.join(" "),
            "the quick brown fox jumps over the lazy dog"
        );
    }

    #[test]
    fn short_text_stays_whole() {
        assert_eq!(fit("HELLO", (500.0, 200.0)).0, ["HELLO"]);
    }
}
