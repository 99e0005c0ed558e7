//! Writes shapes as SVG, in the colours that light and style give them.

use std::collections::HashMap;
use std::fmt::Write as _;

use engine::Quality;

use crate::colour::Colour;
use crate::prompt::Style;

/// The text stops growing here: the last shapes are then missing. No sensible scene comes to this
/// length.
const LONGEST_SVG: usize = 400_000;

/// The paint of a shape.
pub(super) enum Fill {
    Flat(Colour),
    /// Lit from the upper left.
    Lit(Colour),
    /// Lit from the upper left, as a ball is.
    Round(Colour),
    /// A gradient element with its attributes, and its stops at even distances with their
    /// opacities.
    Gradient(String, Vec<(Colour, f32)>),
}

impl Fill {
    fn fades(&self) -> bool {
        matches!(self, Self::Gradient(_, stops) if stops.iter().any(|(_, opacity)| *opacity < 1.0))
    }
}

/// An SVG document that is being written.
pub(super) struct Canvas {
    body: String,
    definitions: String,
    gradients: HashMap<String, usize>,
    style: Style,
    pub(super) detail: Quality,
    /// The colours that are mixed into every colour that follows, each with its share.
    pub(super) tints: Vec<(Colour, f32)>,
    opacity: f32,
    /// The size of one unit of the innermost group in units of the canvas.
    scale: f32,
}

impl Canvas {
    pub(super) fn new(style: Style, detail: Quality) -> Self {
        Self {
            body: String::with_capacity(1 << 14),
            definitions: String::new(),
            gradients: HashMap::new(),
            style,
            detail,
            tints: Vec::new(),
            opacity: 1.0,
            scale: 1.0,
        }
    }

    /// Draws a group with a `transform` and an opacity of its own.
    pub(super) fn group(&mut self, transform: &str, opacity: f32, draw: impl FnOnce(&mut Self)) {
        let outer = (self.scale, self.opacity);
        self.scale *= scale_of(transform);
        self.opacity *= opacity;
        if !transform.is_empty() {
            let _ = write!(self.body, "<g transform=\"{transform}\">");
        }
        draw(self);
        if !transform.is_empty() {
            self.body.push_str("</g>");
        }
        (self.scale, self.opacity) = outer;
    }

    /// Fills a shape, given as the name of its element with its attributes.
    pub(super) fn shape(&mut self, shape: &str, fill: &Fill) {
        if self.is_full() {
            return;
        }
        let paint = self.paint(fill);
        let opacity = self.opacity_of("fill");
        let _ = write!(self.body, "<{shape} fill=\"{paint}\"{opacity}");
        if self.style.outline && !fill.fades() {
            let width = OUTLINE / self.scale;
            let _ = write!(
                self.body,
                " stroke=\"{INK}\" stroke-width=\"{width:.2}\" stroke-linejoin=\"round\""
            );
        }
        self.body.push_str("/>");
    }

    /// Fills a shape whose parts overlap and are seen as one.
    pub(super) fn merged(&mut self, shape: &str, fill: &Fill) {
        if self.style.outline {
            self.stroke(shape, INK, 2.0 * OUTLINE / self.scale);
            let _ = write!(self.body, "<{shape} fill=\"#ffffff\"/>");
        } else {
            self.shape(shape, fill);
        }
    }

    /// Draws a line along a shape. In a line drawing a broad one is seen by its two edges.
    pub(super) fn line(&mut self, shape: &str, colour: Colour, width: f32) {
        if !self.style.outline {
            let colour = self.hex(colour);
            return self.stroke(shape, &colour, width);
        }
        let edge = OUTLINE / self.scale;
        let broad = width > edge * 3.0;
        self.stroke(shape, INK, if broad { width } else { width.min(edge) });
        if broad {
            self.stroke(shape, "#ffffff", width - edge * 2.0);
        }
    }

    fn stroke(&mut self, shape: &str, colour: &str, width: f32) {
        if self.is_full() {
            return;
        }
        let opacity = self.opacity_of("stroke");
        let _ = write!(
            self.body,
            "<{shape} fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width:.2}\" stroke-linecap=\"round\" stroke-linejoin=\"round\"{opacity}/>"
        );
    }

    /// Writes text that is escaped for XML, centered at a point of its baseline.
    pub(super) fn text(
        &mut self,
        escaped: &str,
        (x, y): (f32, f32),
        size: f32,
        colour: Colour,
        weight: f32,
    ) {
        if self.is_full() {
            return;
        }
        let colour = self.hex(colour);
        let opacity = self.opacity_of("fill");
        let _ = write!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size:.1}\" text-anchor=\"middle\" fill=\"{colour}\" stroke=\"{colour}\" stroke-width=\"{weight:.2}\" stroke-linejoin=\"round\"{opacity}>{escaped}</text>"
        );
    }

    /// The finished document of a canvas `width` by `height` units.
    pub(super) fn finish(self, width: f32, height: f32) -> String {
        let crisp = if self.style.pixels {
            " shape-rendering=\"crispEdges\""
        } else {
            ""
        };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.3} {height:.3}\" preserveAspectRatio=\"none\"{crisp}><defs>{}</defs>{}</svg>",
            self.definitions, self.body
        )
    }

    /// The opacity of fills or strokes as an attribute: the opacity of an element would cost a
    /// layer of its own.
    fn opacity_of(&self, paint: &str) -> String {
        let opacity = self.opacity * if self.style.watercolour { 0.86 } else { 1.0 };
        if opacity < 0.999 {
            format!(" {paint}-opacity=\"{opacity:.3}\"")
        } else {
            String::new()
        }
    }

    fn is_full(&self) -> bool {
        self.body.len() > LONGEST_SVG
    }

    fn paint(&mut self, fill: &Fill) -> String {
        let flat = self.style.flat || self.detail < Quality::Medium;
        match fill {
            fill if self.style.outline => if fill.fades() { "none" } else { "#ffffff" }.to_owned(),
            Fill::Flat(colour) => self.hex(*colour),
            Fill::Lit(colour) | Fill::Round(colour) if flat => self.hex(*colour),
            Fill::Lit(colour) => self.shaded(LIT, *colour, (0.22, 0.2)),
            Fill::Round(colour) => self.shaded(ROUND, *colour, (0.45, 0.28)),
            Fill::Gradient(kind, stops) => self.gradient(kind, stops),
        }
    }

    /// A gradient of a colour from its light side to its dark one: the finer the picture, the more
    /// steps, at last with the light that the ground reflects.
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
            let _ = write!(
                inner,
                "<stop offset=\"{at:.2}\" stop-color=\"{colour}\" stop-opacity=\"{opacity:.2}\"/>"
            );
        }
        let next = self.gradients.len();
        let id = *self
            .gradients
            .entry(format!("{kind}{inner}"))
            .or_insert(next);
        if id == next {
            let name = kind.split(' ').next().unwrap_or(kind);
            let _ = write!(self.definitions, "<{kind} id=\"g{id}\">{inner}</{name}>");
        }
        format!("url(#g{id})")
    }

    fn hex(&self, colour: Colour) -> String {
        let tinted = self
            .tints
            .iter()
            .fold(colour, |colour, (tint, part)| colour.mix(*tint, *part));
        let thinned = if self.style.watercolour {
            tinted.lighter(0.18)
        } else {
            tinted
        };
        let [r, g, b] = if self.style.grey {
            thinned.grey()
        } else {
            thinned
        }
        .rgb;
        format!("#{r:02x}{g:02x}{b:02x}")
    }
}

/// The height of one unit after a transform.
fn scale_of(transform: &str) -> f32 {
    let inside = transform
        .split_once("scale(")
        .and_then(|(_, rest)| rest.split_once(')'));
    let scale = inside.and_then(|(numbers, _)| numbers.split(' ').next_back()?.parse::<f32>().ok());
    scale.map_or(1.0, |scale| scale.abs().max(1e-3))
}

/// The lines of a line drawing, and their width in units of the canvas.
const INK: &str = "#26262e";
const OUTLINE: f32 = 5.0;
const LIT: &str = "linearGradient x1=\"0\" y1=\"0\" x2=\"0.55\" y2=\"1\"";
const ROUND: &str = "radialGradient cx=\"0.36\" cy=\"0.3\" r=\"0.78\"";
