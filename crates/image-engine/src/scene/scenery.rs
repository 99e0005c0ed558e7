//! Draws the surroundings: layers of drawings that are stretched over an area of the picture or
//! scattered in it.

use std::fmt::Write as _;

use resvg::usvg::roxmltree::Node;

use super::canvas::Canvas;
use super::random::Random;
use super::sprite::{Sprite, number};
use super::view::{Area, Backdrop, View};
use crate::colour::Colour;
use crate::drawing::named;
use crate::prompt::Prompt;

/// Draws all that is behind the subjects. `far` draws those subjects that are in the sky behind the
/// land.
pub(super) fn draw(
    canvas: &mut Canvas,
    prompt: &Prompt,
    view: &View,
    far: impl FnOnce(&mut Canvas),
) {
    let main = |colour: Option<Colour>| colour.map(|colour| ("main", colour));
    let bare = prompt.subjects.is_empty() && prompt.letterings.is_empty();
    match view.backdrop {
        Backdrop::Clear if bare => medallion(canvas, prompt, view),
        Backdrop::Clear => {}
        Backdrop::Plain(colour) => layers(canvas, view, "plain", &[("main", colour)]),
        Backdrop::Paper(colour) => layers(canvas, view, "paper", &[("main", colour)]),
        Backdrop::Air | Backdrop::Outdoors => {
            sky(canvas, prompt, view);
            far(canvas);
            if view.backdrop == Backdrop::Outdoors {
                land(canvas, prompt, view);
            }
        }
        Backdrop::Place(place) => layers(
            canvas,
            view,
            place.name,
            main(prompt.tint(place.name)).as_slice(),
        ),
        Backdrop::Abstract => abstraction(canvas, prompt, view),
    }
}

/// Draws rain, snow, fog and lightning, over everything but the words.
pub(super) fn weather(canvas: &mut Canvas, prompt: &Prompt, view: &View) {
    for weather in prompt
        .weather
        .iter()
        .filter(|weather| weather.is("over") && view.is_under_sky())
    {
        layers(canvas, view, weather.name, &[]);
    }
}

/// The sky with the lights and clouds that belong to the time of day and the weather.
fn sky(canvas: &mut Canvas, prompt: &Prompt, view: &View) {
    let turn = Random::new(view.seed, "sky").jitter(9.0);
    let top = view.light_colour("top").turned(turn);
    let low = view.light_colour("low").turned(turn * 0.6);
    let (mut top, mut low) = prompt
        .tint("sky")
        .map_or((top, low), |named| (named, named.lighter(0.62)));
    if view.gloomy {
        let grey = Colour::hex(0x5d_6b_80);
        (top, low) = (
            top.mix(grey.darker(0.25), 0.72),
            low.mix(grey.lighter(0.2), 0.72),
        );
    }
    if prompt.is_weather("fog") {
        (top, low) = (
            top.mix(Colour::hex(0xd5_dd_e4), 0.55),
            low.mix(Colour::hex(0xf1_ee_ea), 0.6),
        );
    }
    let known = [
        ("top", top),
        ("low", low),
        ("cloud", view.light_colour("cloud")),
    ];
    layers(canvas, view, "sky", &known);
    let lacks = |thing: &str| {
        prompt.shows(thing) || prompt.absent.iter().any(|absent| absent.name == thing)
    };
    let night = view.is_light("night");
    if night {
        layers(
            canvas,
            view,
            if prompt.is_weather("starry") {
                "starry"
            } else {
                "stars"
            },
            &known,
        );
    } else if (view.is_light("sunset") || view.is_light("morning")) && !view.gloomy {
        layers(
            canvas,
            view,
            if lacks("sun") { "low-light" } else { "low-sun" },
            &known,
        );
    }
    if view.gloomy && !lacks("cloud") {
        layers(canvas, view, "gloomy-clouds", &[]);
    } else if !night && !lacks("cloud") {
        layers(canvas, view, "clouds", &known);
    }
}

/// Everything below the sky, the farthest first.
fn land(canvas: &mut Canvas, prompt: &Prompt, view: &View) {
    let ground = view.ground.map_or("", |ground| ground.name);
    let tint = |place: &str| prompt.tint(place).map(|colour| ("main", colour));
    canvas.tints = view.tint().into_iter().collect();
    if prompt.has("mountains") {
        layers(canvas, view, "mountains", tint("mountains").as_slice());
    } else if prompt.has("lake") || (!view.water && ground != "desert") {
        let snow = (ground == "snow").then_some(("main", Colour::hex(0xd3_e0_ee)));
        layers(canvas, view, "far-hills", snow.as_slice());
    }
    if prompt.has("city") {
        layers(
            canvas,
            view,
            "city",
            &[("window", view.light_colour("window"))],
        );
    }
    if view.water {
        canvas.tints.clear();
        water(canvas, prompt, view);
        canvas.tints = view.tint().into_iter().collect();
    }
    layers(
        canvas,
        view,
        ground,
        tint(if ground == "bank" { "field" } else { ground }).as_slice(),
    );
    if prompt.is_weather("snowfall") && view.ground.is_some() {
        layers(canvas, view, "drifts", &[]);
    }
    if prompt.has("forest") {
        layers(canvas, view, "forest", &[]);
    }
    canvas.tints.clear();
}

fn water(canvas: &mut Canvas, prompt: &Prompt, view: &View) {
    let place = if prompt.has("lake") { "lake" } else { "sea" };
    let usual = |name| {
        view.light
            .and_then(|light| light.colour(name))
            .or(named(place)?.colour(name))
    };
    let (Some(far), Some(near)) = (usual("far"), usual("near")) else {
        return;
    };
    let (mut far, mut near) = prompt.tint(place).map_or((far, near), |named| {
        (named.lighter(0.35), named.darker(0.15))
    });
    if view.gloomy {
        let grey = Colour::hex(0x3e_50_68);
        (far, near) = (
            far.mix(grey.lighter(0.25), 0.7),
            near.mix(grey.darker(0.2), 0.7),
        );
    }
    let drawing = if place == "sea" && view.gloomy {
        "rough-sea"
    } else {
        place
    };
    layers(canvas, view, drawing, &[("far", far), ("near", near)]);
}

/// A composition for words that name nothing that can be drawn, in related colours.
fn abstraction(canvas: &mut Canvas, prompt: &Prompt, view: &View) {
    let colours: Vec<Colour> = prompt.colours().collect();
    let hue = (prompt.mood % 360) as f32 + Random::new(view.seed, "abstract").jitter(30.0);
    let base = colours
        .first()
        .copied()
        .unwrap_or_else(|| Colour::hsl(hue, 0.55, 0.55));
    let spread = if prompt.mood & 1 == 0 { 26.0 } else { -26.0 };
    let tone = |i: usize| {
        colours
            .get(i)
            .copied()
            .unwrap_or_else(|| base.turned(spread * i as f32))
    };
    layers(
        canvas,
        view,
        "abstract",
        &[("main", tone(0)), ("second", tone(1)), ("third", tone(2))],
    );
}

/// A place without its surroundings, which is to be cut out of it: a landscape in a round frame.
fn medallion(canvas: &mut Canvas, prompt: &Prompt, view: &View) {
    let night = (view.is_light("night")).then_some(("sky", Colour::hex(0x27_32_6b)));
    let main = prompt.colours().next().map(|colour| ("main", colour));
    let known: Vec<_> = night.into_iter().chain(main).collect();
    layers(canvas, view, "medallion", &known);
}

/// Draws a drawing layer by layer. Each has random numbers of its own, so that more of one moves
/// nothing in another.
fn layers(canvas: &mut Canvas, view: &View, name: &str, known: &[(&str, Colour)]) {
    let Some(drawing) = named(name) else { return };
    let mut sprite = Sprite::new(drawing, known, None, view.seed);
    let usual = canvas.tints.clone();
    for (i, node) in drawing
        .root()
        .children()
        .filter(Node::is_element)
        .enumerate()
    {
        sprite.random = Random::new(view.seed, &format!("{name} {i}"));
        if let Some(far) = node.attribute("data-far") {
            canvas.tints.push((view.light_colour("air"), number(far)));
        }
        let area = view.area(
            node.attribute("data-area")
                .unwrap_or(drawing.fact("data-area")),
        );
        layer(canvas, view, &mut sprite, node, area);
        canvas.tints.clone_from(&usual);
    }
}

fn layer(
    canvas: &mut Canvas,
    view: &View,
    sprite: &mut Sprite<'_>,
    node: Node<'_, '_>,
    area: Area,
) {
    let is_scattered = |node: Node<'_, '_>| {
        Scatter::NUMBERS
            .iter()
            .any(|number| node.has_attribute(*number))
    };
    if node.attribute("class") == Some("swell") {
        let fill = sprite.fill(node);
        let path = swell(view, &mut sprite.random, node, area);
        canvas.group(
            "",
            node.attribute("opacity").map_or(1.0, number),
            |canvas| canvas.shape(&path, &fill),
        );
    } else if is_scattered(node) {
        Scatter { node, area }.draw(canvas, view, sprite);
    } else if node.attribute("class") == Some("one-of") && node.children().any(is_scattered) {
        let choices: Vec<_> = node.children().filter(Node::is_element).collect();
        let chosen = choices[sprite.random.below(choices.len())];
        layer(canvas, view, sprite, chosen, area);
    } else {
        let x = area.width() / 100.0;
        let y = area.height() / 100.0;
        let place = format!(
            "translate({:.1} {:.1}) scale({x:.4} {y:.4})",
            area.left, area.top
        );
        canvas.group(&place, 1.0, |canvas| sprite.element(canvas, node));
    }
}

/// A path from edge to edge, closed along the bottom: a smooth wave.
fn swell(view: &View, random: &mut Random, node: Node<'_, '_>, area: Area) -> String {
    let value = |name| node.attribute(name).map_or(0.0, number);
    let y = area.top + area.height() * value("data-y") / 100.0;
    let rise = value("data-rise");
    let count = (value("data-waves") * (view.width / 1000.0).min(8.0))
        .ceil()
        .max(1.0) as usize;
    let step = view.width / count as f32;
    let mut path = format!("path d=\"M-4 {:.1}", y + random.jitter(rise));
    for i in 0..count {
        let x = step * i as f32;
        let middle = y + random.jitter(rise) * 1.6;
        let end = y + random.jitter(rise);
        let _ = write!(
            path,
            " S{:.1} {middle:.1} {:.1} {end:.1}",
            x + step * 0.5,
            x + step
        );
    }
    let _ = write!(
        path,
        " L{:.1} {y:.1} V{:.1} H-4Z\"",
        view.width + 4.0,
        view.height + 4.0
    );
    path
}

/// An element that is drawn many times in an area.
struct Scatter<'a, 'input> {
    node: Node<'a, 'input>,
    area: Area,
}

impl Scatter<'_, '_> {
    /// The number of occurrences for each 1000 units of width, in all, or in a row from edge to
    /// edge.
    const NUMBERS: [&'static str; 3] = ["data-count", "data-times", "data-row"];

    fn draw(&self, canvas: &mut Canvas, view: &View, sprite: &mut Sprite<'_>) {
        let wide = view.width / 1000.0;
        let [count, times, row] = Self::NUMBERS.map(|name| {
            // One number, or one for each detail from low on. The last number also counts for all
            // finer details.
            let numbers: Vec<f32> = self
                .node
                .attribute(name)
                .into_iter()
                .flat_map(|all| all.split(' ').map(number))
                .collect();
            numbers
                .get(canvas.detail as usize)
                .or(numbers.last())
                .copied()
                .unwrap_or_default()
        });
        let row = (row * wide.min(6.0)).ceil();
        let total = (count * wide.min(4.0) + times + row) as usize;
        let stray = self.node.attribute("data-stray").map_or(0.35, number);
        for i in 0..total {
            let across = if row > 0.0 {
                (i as f32 + 0.5 + sprite.random.jitter(stray)) / row
            } else {
                sprite.random.range(0.0, 1.0)
            };
            let transform = self.transform(&mut sprite.random, across);
            canvas.group(&transform, 1.0, |canvas| sprite.element(canvas, self.node));
        }
    }

    /// The place and the size of one occurrence. Far things are smaller, and nearer to each other.
    fn transform(&self, random: &mut Random, across: f32) -> String {
        let (least, most) = self.range("data-y").unwrap_or((0.0, 100.0));
        let near = self.range("data-near");
        let depth = random
            .range(0.0, 1.0)
            .powf(if near.is_some() { 1.4 } else { 1.0 });
        let down = (least + (most - least) * depth) / 100.0;
        let near = near.map_or(1.0, |(far, near)| far + (near - far) * down);
        let size = near * self.random(random, "data-size", (1.0, 1.0));
        let (wide, high) = match self.range("data-tall") {
            None => (size, size),
            Some(tall) => {
                let wide = self.random(random, "data-width", (100.0, 100.0)) / 100.0;
                (
                    wide,
                    random.range(tall.0, tall.1) / 100.0 * self.area.height() / 100.0,
                )
            }
        };
        let (left, right) = self.range("data-x").unwrap_or((0.0, 100.0));
        let across = (left + (right - left) * across) / 100.0;
        let x = self.area.left + self.area.width() * across;
        let y = self.area.top + self.area.height() * down;
        if (wide, high) == (1.0, 1.0) {
            return format!("translate({x:.1} {y:.1})");
        }
        format!("translate({x:.1} {y:.1}) scale({wide:.3} {high:.3})")
    }

    fn random(&self, random: &mut Random, name: &str, usual: (f32, f32)) -> f32 {
        let (least, most) = self.range(name).unwrap_or(usual);
        if least == most {
            least
        } else {
            random.range(least, most)
        }
    }

    fn range(&self, name: &str) -> Option<(f32, f32)> {
        let (least, most) = self.node.attribute(name)?.split_once(' ')?;
        Some((number(least), number(most)))
    }
}
