//! Writes shapes as SVG, in the colours that light and manner give them.

use std::collections::HashMap;
use std::fmt::Write as _;

use engine::Quality;

use crate::brief::Style;
use crate::colour::Colour;

/// The text stops growing here: what is drawn last is then missing, which no sensible scene comes to.
const LONGEST_SVG: usize = 400_000;

/// What a shape is filled with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fill {
    Flat(Colour),
    /// Lit from the upper left.
    Lit(Colour),
    /// One colour at the top, another at the bottom.
    Down(Colour, Colour),
    /// A colour that is densest in the middle and fades to nothing.
    Glow(Colour),
    /// One colour in the middle, another at the edge.
    Spot(Colour, Colour),
    /// Lit from the upper left, as a ball is.
    Round(Colour),
}

impl From<Colour> for Fill {
    fn from(colour: Colour) -> Self {
        Self::Flat(colour)
    }
}

pub(super) struct Pen {
    body: String,
    definitions: String,
    gradients: HashMap<String, usize>,
    style: Style,
    detail: Quality,
    /// What light does to every colour.
    tint: Option<(Colour, f32)>,
    opacity: f32,
    /// How many units one unit of the thing at hand is.
    scale: f32,
}

impl Pen {
    pub(super) fn new(style: Style, detail: Quality) -> Self {
        Self {
            body: String::with_capacity(1 << 14),
            definitions: String::new(),
            gradients: HashMap::new(),
            style,
            detail,
            tint: None,
            opacity: 1.0,
            scale: 1.0,
        }
    }

    /// Whether things of this degree of detail are drawn.
    pub(super) fn fine(&self, from: Quality) -> bool {
        self.detail >= from
    }

    pub(super) const fn detail(&self) -> Quality {
        self.detail
    }

    pub(super) fn set_tint(&mut self, tint: Option<(Colour, f32)>) {
        self.tint = tint;
    }

    /// The opacity of all that follows, until it is set again.
    pub(super) fn set_opacity(&mut self, opacity: f32) {
        self.opacity = opacity;
    }

    /// Draws something in a frame of its own: moved, turned and scaled.
    pub(super) fn within(&mut self, at: (f32, f32), scale: (f32, f32), turn: f32, draw: impl FnOnce(&mut Self)) {
        let outer = self.scale;
        self.scale *= scale.1.abs().max(1e-3);
        let _ = write!(
            self.body,
            "<g transform=\"translate({:.1} {:.1}) rotate({turn:.1}) scale({:.4} {:.4})\">",
            at.0, at.1, scale.0, scale.1
        );
        draw(self);
        self.body.push_str("</g>");
        self.scale = outer;
    }

    pub(super) fn path(&mut self, path: &str, fill: impl Into<Fill>) {
        self.shape(fill.into(), |body| {
            let _ = write!(body, "<path d=\"{path}\"");
        });
    }

    /// A path whose parts overlap and are seen as one.
    pub(super) fn merged(&mut self, path: &str, fill: impl Into<Fill>) {
        let fill = fill.into();
        if self.style.outline {
            self.stroke(path, INK, 2.0 * OUTLINE / self.scale);
            let _ = write!(self.body, "<path d=\"{path}\" fill=\"#ffffff\"/>");
        } else {
            self.path(path, fill);
        }
    }

    pub(super) fn rect(&mut self, at: (f32, f32), size: (f32, f32), round: f32, fill: impl Into<Fill>) {
        self.shape(fill.into(), |body| {
            let (x, y, w, h) = (at.0, at.1, size.0, size.1);
            let _ = write!(body, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\"");
            if round > 0.0 {
                let _ = write!(body, " rx=\"{round:.1}\"");
            }
        });
    }

    pub(super) fn ellipse(&mut self, at: (f32, f32), radius: (f32, f32), fill: impl Into<Fill>) {
        self.shape(fill.into(), |body| {
            let (x, y, rx, ry) = (at.0, at.1, radius.0, radius.1);
            let _ = write!(body, "<ellipse cx=\"{x:.1}\" cy=\"{y:.1}\" rx=\"{rx:.1}\" ry=\"{ry:.1}\"");
        });
    }

    pub(super) fn circle(&mut self, at: (f32, f32), radius: f32, fill: impl Into<Fill>) {
        self.ellipse(at, (radius, radius), fill);
    }

    pub(super) fn polygon(&mut self, points: &[(f32, f32)], fill: impl Into<Fill>) {
        self.shape(fill.into(), |body| {
            body.push_str("<polygon points=\"");
            for (x, y) in points {
                let _ = write!(body, "{x:.1},{y:.1} ");
            }
            body.push('"');
        });
    }

    /// A line along a path. In a line drawing a broad one is seen by its two edges.
    pub(super) fn line(&mut self, path: &str, colour: Colour, width: f32) {
        if !self.style.outline {
            let colour = self.hex(colour);
            return self.stroke(path, &colour, width);
        }
        let edge = OUTLINE / self.scale;
        let broad = width > edge * 3.0;
        self.stroke(path, INK, if broad { width } else { width.min(edge) });
        if broad {
            self.stroke(path, "#ffffff", width - edge * 2.0);
        }
    }

    fn stroke(&mut self, path: &str, colour: &str, width: f32) {
        if self.is_full() {
            return;
        }
        let opacity = self.alpha("stroke-opacity");
        let _ = write!(
            self.body,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width:.2}\" stroke-linecap=\"round\" stroke-linejoin=\"round\"{opacity}/>"
        );
    }

    /// Text that was made fit for XML, centred at a point of its baseline.
    pub(super) fn text(&mut self, escaped: &str, at: (f32, f32), size: f32, colour: Colour, weight: f32) {
        if self.is_full() {
            return;
        }
        let (colour, opacity) = (self.hex(colour), self.alpha("fill-opacity"));
        let _ = write!(
            self.body,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"{size:.1}\" text-anchor=\"middle\" fill=\"{colour}\" stroke=\"{colour}\" stroke-width=\"{weight:.2}\" stroke-linejoin=\"round\"{opacity}>{escaped}</text>",
            at.0, at.1
        );
    }

    /// The finished document of a canvas `width` by `height` units.
    pub(super) fn finish(self, width: f32, height: f32) -> String {
        let crisp = if self.style.pixels { " shape-rendering=\"crispEdges\"" } else { "" };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.3} {height:.3}\" preserveAspectRatio=\"none\"{crisp}><defs>{}</defs>{}</svg>",
            self.definitions, self.body
        )
    }

    fn shape(&mut self, fill: Fill, open: impl FnOnce(&mut String)) {
        if self.is_full() {
            return;
        }
        let paint = self.paint(fill);
        let stroke = match fill {
            Fill::Glow(_) => String::new(),
            _ if self.style.outline => {
                format!(" stroke=\"{INK}\" stroke-width=\"{:.2}\" stroke-linejoin=\"round\"", OUTLINE / self.scale)
            }
            _ => String::new(),
        };
        let opacity = self.alpha("fill-opacity");
        open(&mut self.body);
        let _ = write!(self.body, " fill=\"{paint}\"{stroke}{opacity}/>");
    }

    /// The opacity at hand for fills or strokes: that of an element would cost a layer of its own.
    fn alpha(&self, of: &str) -> String {
        let thin = if self.style.watercolour { 0.86 } else { 1.0 };
        let opacity = self.opacity * thin;
        if opacity < 0.999 { format!(" {of}=\"{opacity:.3}\"") } else { String::new() }
    }

    fn is_full(&self) -> bool {
        self.body.len() > LONGEST_SVG
    }

    fn paint(&mut self, fill: Fill) -> String {
        let flat = self.style.flat || !self.fine(Quality::Medium);
        match fill {
            Fill::Glow(_) if self.style.outline => "none".to_owned(),
            _ if self.style.outline => "#ffffff".to_owned(),
            Fill::Lit(colour) | Fill::Round(colour) if flat => self.hex(colour),
            Fill::Flat(colour) => self.hex(colour),
            Fill::Lit(colour) => self.shaded(LIT, colour, (0.22, 0.2)),
            Fill::Round(colour) => self.shaded(ROUND, colour, (0.45, 0.28)),
            Fill::Down(top, bottom) => self.gradient(DOWN, &[(top, 1.0), (bottom, 1.0)]),
            Fill::Spot(middle, edge) => self.gradient(SPOT, &[(middle, 1.0), (edge, 1.0)]),
            Fill::Glow(colour) => self.gradient(GLOW, &[(colour, 1.0), (colour, 0.35), (colour, 0.0)]),
        }
    }

    /// A colour from its light side to its dark one: the finer the picture, the more steps, at last with the light
    /// that comes back from the ground.
    fn shaded(&mut self, kind: &str, colour: Colour, (light, dark): (f32, f32)) -> String {
        let steps: &[f32] = match self.detail {
            Quality::Low | Quality::Medium => &[-1.0, 0.0, 1.0],
            Quality::High => &[-1.15, -0.5, 0.0, 1.0],
            Quality::XHigh => &[-1.3, -0.55, 0.0, 0.45, 1.15],
            Quality::Max => &[-1.5, -0.8, -0.3, 0.0, 0.4, 1.2, 0.65],
        };
        let stop = |step: &f32| match *step {
            step if step < 0.0 => (colour.lighter(-step * light), 1.0),
            step => (colour.darker(step * dark), 1.0),
        };
        let stops: Vec<_> = steps.iter().map(stop).collect();
        self.gradient(kind, &stops)
    }

    /// The reference to a gradient, which is defined once however often it is used.
    fn gradient(&mut self, kind: &str, stops: &[(Colour, f32)]) -> String {
        let mut inner = String::new();
        for (i, (colour, opacity)) in stops.iter().enumerate() {
            let at = i as f32 / (stops.len() - 1).max(1) as f32;
            let colour = self.hex(*colour);
            let _ = write!(inner, "<stop offset=\"{at:.2}\" stop-color=\"{colour}\" stop-opacity=\"{opacity:.2}\"/>");
        }
        let next = self.gradients.len();
        let id = *self.gradients.entry(format!("{kind}{inner}")).or_insert(next);
        if id == next {
            let name = kind.split(' ').next().unwrap_or(kind);
            let _ = write!(self.definitions, "<{kind} id=\"g{id}\">{inner}</{name}>");
        }
        format!("url(#g{id})")
    }

    fn hex(&self, colour: Colour) -> String {
        let mut colour = colour;
        if let Some((tint, part)) = self.tint {
            colour = colour.mix(tint, part);
        }
        if self.style.watercolour {
            colour = colour.lighter(0.18);
        }
        if self.style.grey {
            colour = colour.grey();
        }
        let [r, g, b] = colour.rgb;
        format!("#{r:02x}{g:02x}{b:02x}")
    }
}

/// The lines of a line drawing, and their width in units of the canvas.
const INK: &str = "#26262e";
const OUTLINE: f32 = 5.0;
const LIT: &str = "linearGradient x1=\"0\" y1=\"0\" x2=\"0.55\" y2=\"1\"";
const DOWN: &str = "linearGradient x1=\"0\" y1=\"0\" x2=\"0\" y2=\"1\"";
const ROUND: &str = "radialGradient cx=\"0.36\" cy=\"0.3\" r=\"0.78\"";
const SPOT: &str = "radialGradient cx=\"0.5\" cy=\"0.42\" r=\"0.75\"";
const GLOW: &str = "radialGradient";
