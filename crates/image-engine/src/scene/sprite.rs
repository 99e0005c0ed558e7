//! Draws one drawing: its elements in the colours, and with the variations, that one occurrence of
//! it has.

use std::collections::HashMap;
use std::fmt::Write as _;

use engine::Quality;
use resvg::usvg::roxmltree::Node;

use super::canvas::{Canvas, Fill};
use super::random::Random;
use crate::colour::Colour;
use crate::drawing::{self, Drawing, Thing, declarations};

/// One occurrence of a drawing.
pub(super) struct Sprite<'a> {
    drawing: &'a Drawing,
    colours: Palette,
    /// The thing that it holds.
    contents: Option<Thing>,
    pub(super) random: Random,
}

impl<'a> Sprite<'a> {
    /// An occurrence with the colours that are known; all others follow from the drawing.
    pub(super) fn new(
        drawing: &'a Drawing,
        known: &[(&str, Colour)],
        contents: Option<Thing>,
        seed: u64,
    ) -> Self {
        let mut random = Random::new(seed, drawing.name);
        let mut colours = Palette(
            known
                .iter()
                .map(|(name, colour)| ((*name).to_owned(), *colour))
                .collect(),
        );
        for attribute in drawing.root().attributes() {
            if let Some(name) = attribute.name().strip_prefix("data-choose-") {
                let values: Vec<&str> = attribute.value().split(' ').collect();
                colours.declare(name, values[random.below(values.len())]);
            }
        }
        for (name, value) in drawing
            .root()
            .attribute("style")
            .into_iter()
            .flat_map(declarations)
        {
            colours.declare(name, value);
        }
        Self {
            drawing,
            colours,
            contents,
            random,
        }
    }

    /// Draws all of it on the unit field of the drawing.
    pub(super) fn draw(mut self, canvas: &mut Canvas) {
        self.children(canvas, self.drawing.root());
    }

    fn children(&mut self, canvas: &mut Canvas, of: Node<'_, '_>) {
        for child in of.children().filter(Node::is_element) {
            self.element(canvas, child);
        }
    }

    /// Draws an element, if it belongs to this occurrence and to pictures of this detail.
    pub(super) fn element(&mut self, canvas: &mut Canvas, node: Node<'_, '_>) {
        let left_out = node
            .attribute("data-chance")
            .is_some_and(|part| !self.random.chance(number(part)));
        let transform = self.transform(node);
        let too_fine = node
            .attribute("data-detail")
            .is_some_and(|least| canvas.detail < quality(least));
        if left_out || too_fine || matches!(node.tag_name().name(), "title" | "desc" | "defs") {
            return;
        }
        let opacity = node.attribute("opacity").map_or(1.0, number);
        let tints = canvas.tints.clone();
        if node.has_attribute("data-bright") {
            canvas.tints.clear();
        }
        canvas.group(&transform, opacity, |canvas| match node.tag_name().name() {
            "g" if has_class(node, "one-of") => self.one_of(canvas, node),
            "g" => self.children(canvas, node),
            "use" => self.link(canvas, node),
            _ => self.shape(canvas, node),
        });
        canvas.tints = tints;
    }

    /// The `transform` attribute, after the move and turn of `data-jitter`.
    fn transform(&mut self, node: Node<'_, '_>) -> String {
        let mut transform = String::new();
        if let Some(jitter) = node.attribute("data-jitter") {
            let mut reach = jitter.split(' ').map(number);
            let mut next = || self.random.jitter(reach.next().unwrap_or(0.0));
            let _ = write!(transform, "translate({:.1} {:.1})", next(), next());
            let turn = next();
            if turn != 0.0 {
                let _ = write!(transform, " rotate({turn:.1})");
            }
        }
        match node.attribute("transform") {
            Some(own) if transform.is_empty() => own.to_owned(),
            // The place, with which the attribute begins, comes first, so that things sway where
            // they are.
            Some(own) => own.replacen(')', &format!(") {transform}"), 1),
            None => transform,
        }
    }

    fn one_of(&mut self, canvas: &mut Canvas, group: Node<'_, '_>) {
        let choices: Vec<Node<'_, '_>> = group.children().filter(Node::is_element).collect();
        if let Some(chosen) = choices.get(self.random.below(choices.len())) {
            self.element(canvas, *chosen);
        }
    }

    /// Draws the target of a `use` element: the contents, another drawing, or an element of this
    /// one.
    fn link(&mut self, canvas: &mut Canvas, node: Node<'_, '_>) {
        let target = node.attribute("href").unwrap_or_default();
        if let Some(thing) = self.contents.filter(|_| target == "#contents") {
            let main = thing.main.turned(self.random.jitter(8.0));
            let known = [("main", main), ("accent", thing.accent)];
            Sprite::new(thing, &known, None, self.random.seed()).draw(canvas);
        } else if let Some(other) = target.strip_suffix(".svg").and_then(drawing::named) {
            let main = node
                .attribute("fill")
                .map(|fill| ("main", self.colours.read(fill)));
            Sprite::new(other, main.as_slice(), None, self.random.seed()).draw(canvas);
        } else if let Some(element) = target
            .strip_prefix('#')
            .and_then(|id| self.drawing.element(id))
        {
            self.element(canvas, element);
        }
    }

    fn shape(&mut self, canvas: &mut Canvas, node: Node<'_, '_>) {
        let mut shape = node.tag_name().name().to_owned();
        for attribute in node
            .attributes()
            .filter(|attribute| GEOMETRY.contains(&attribute.name()))
        {
            let _ = write!(shape, " {}=\"{}\"", attribute.name(), attribute.value());
        }
        if let Some(stroke) = node.attribute("stroke") {
            let width = node.attribute("stroke-width").map_or(1.0, number);
            canvas.line(&shape, self.colours.read(stroke), width);
        } else if has_class(node, "merged") {
            canvas.merged(&shape, &self.fill(node));
        } else {
            canvas.shape(&shape, &self.fill(node));
        }
    }

    pub(super) fn fill(&self, node: Node<'_, '_>) -> Fill {
        let fill = node.attribute("fill").unwrap_or_default();
        if let Some(gradient) = inside(fill, "url(#").and_then(|id| self.drawing.element(id)) {
            return self.gradient(gradient);
        }
        let colour = self.colours.read(fill);
        match node.attribute("class") {
            Some("lit") => Fill::Lit(colour),
            Some("round") => Fill::Round(colour),
            _ => Fill::Flat(colour),
        }
    }

    fn gradient(&self, gradient: Node<'_, '_>) -> Fill {
        let mut kind = gradient.tag_name().name().to_owned();
        for attribute in gradient
            .attributes()
            .filter(|attribute| attribute.name() != "id")
        {
            let _ = write!(kind, " {}=\"{}\"", attribute.name(), attribute.value());
        }
        let stop = |stop: Node<'_, '_>| {
            let colour = self
                .colours
                .read(stop.attribute("stop-color").unwrap_or_default());
            (colour, stop.attribute("stop-opacity").map_or(1.0, number))
        };
        Fill::Gradient(
            kind,
            gradient
                .children()
                .filter(Node::is_element)
                .map(stop)
                .collect(),
        )
    }
}

/// The named colours of one occurrence.
struct Palette(HashMap<String, Colour>);

impl Palette {
    /// Adds a colour, unless it is known already.
    fn declare(&mut self, name: &str, value: &str) {
        if !self.0.contains_key(name) {
            let colour = self.read(value);
            self.0.insert(name.to_owned(), colour);
        }
    }

    /// Evaluates the CSS colours that drawings use.
    fn read(&self, css: &str) -> Colour {
        self.evaluate(css).unwrap_or(Colour::hex(0))
    }

    fn evaluate(&self, css: &str) -> Option<Colour> {
        if let Some(name) = inside(css, "var(--") {
            return self.0.get(name).copied();
        }
        if let Some(mix) = inside(css, "color-mix(in srgb, ") {
            let (one, other) = mix.split_once(", ")?;
            let (other, part) = other.rsplit_once(' ')?;
            return Some(self.evaluate(one)?.mix(
                self.evaluate(other)?,
                number(part.trim_end_matches('%')) / 100.0,
            ));
        }
        if let Some(turned) = inside(css, "hsl(from ") {
            let (from, degrees) = turned.split_once(" calc(h + ")?;
            return Some(
                self.evaluate(from)?
                    .turned(number(degrees.trim_end_matches(") s l"))),
            );
        }
        Colour::from_css(css)
    }
}

/// The text between the opening of a function and its closing bracket.
fn inside<'a>(css: &'a str, open: &str) -> Option<&'a str> {
    css.strip_prefix(open)?.strip_suffix(')')
}

fn has_class(node: Node<'_, '_>, class: &str) -> bool {
    node.attribute("class") == Some(class)
}

pub(super) fn number(text: &str) -> f32 {
    text.parse().unwrap_or_default()
}

fn quality(name: &str) -> Quality {
    match name {
        "medium" => Quality::Medium,
        "high" => Quality::High,
        "xhigh" => Quality::XHigh,
        _ => Quality::Max,
    }
}

/// The attributes of a shape that are handed on as they are.
const GEOMETRY: [&str; 11] = [
    "d", "points", "x", "y", "width", "height", "rx", "ry", "cx", "cy", "r",
];
