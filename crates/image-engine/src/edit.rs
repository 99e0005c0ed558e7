//! Edits: a plan read from the prompt, carried out on the references.

mod backdrop;
mod clause;
mod erase;
mod filter;
mod place;
mod plan;
mod recolour;

use engine::{Background, EngineError, ImageTraits, Pixels};
use image::{RgbaImage, imageops};

use crate::fit::{Source, cover};
use crate::inputs::Inputs;
use crate::mask::Window;
use crate::prompt::Prompt;
use crate::render;
pub(crate) use backdrop::lay_on;
use clause::Step;
pub(crate) use plan::Plan;
use plan::Roles;

pub(crate) struct Edit {
    pub(crate) plan: Plan,
    pub(crate) inputs: Inputs,
}

/// The edit of one picture.
struct Session<'a> {
    edit: &'a Edit,
    traits: ImageTraits,
    seed: u64,
    /// The rectangle around all that the mask opens.
    window: Option<Window>,
}

impl Edit {
    /// Makes the edited picture, with straight alpha. All steps scale with the size.
    pub(crate) fn make(&self, traits: ImageTraits, seed: u64) -> Result<RgbaImage, EngineError> {
        let size = traits.size;
        let window = self
            .inputs
            .mask
            .as_ref()
            .map(|mask| mask.window(size).unwrap_or(whole(size)));
        let session = Session {
            edit: self,
            traits,
            seed,
            window,
        };
        let lies = self.plan.turns() && window.is_none();
        let mut canvas = session.compose(if lies {
            Pixels::new(size.height, size.width)
        } else {
            size
        });
        for step in &self.plan.steps {
            canvas = session.apply(step, canvas)?;
            if window.is_some() && canvas.size() != size {
                canvas = cover(&canvas, size);
            }
        }
        if traits.background == Background::Transparent
            && canvas.pixels().all(|pixel| pixel[3] == u8::MAX)
        {
            // A picture that is called transparent has to be, even if no step of the prompt made it
            // so.
            backdrop::cut(&mut canvas, window);
        }
        if let Some(mask) = &self.inputs.mask {
            mask.restore(&self.inputs.references[0], &mut canvas);
        }
        Ok(canvas)
    }
}

impl Session<'_> {
    /// The references in their roles.
    fn compose(&self, size: Pixels) -> RgbaImage {
        let references = &self.edit.inputs.references;
        if references.len() == 1 {
            return cover(&references[0], size);
        }
        match self.edit.plan.roles {
            Roles::Place { object } => {
                let window = self.window.unwrap_or(whole(size));
                let position = self.edit.plan.place;
                place::place(
                    &references[1 - object],
                    &references[object],
                    size,
                    window,
                    position,
                    self.seed,
                )
            }
            Roles::Before { object } => {
                place::before(&references[1 - object], &references[object], size)
            }
            Roles::SideBySide => place::side_by_side(&references[0], &references[1], size),
            Roles::Style { from } => {
                recolour::like(cover(&references[1 - from], size), &references[from])
            }
        }
    }

    fn apply(&self, step: &Step, mut canvas: RgbaImage) -> Result<RgbaImage, EngineError> {
        match step {
            Step::Recolour { from, to, thing } => {
                let masked = self.window.is_some();
                let named = || {
                    if *thing && !masked {
                        recolour::subject(&canvas)
                    } else {
                        None
                    }
                };
                let from = from.or_else(named);
                recolour::towards(&mut canvas, from, *to, masked);
            }
            Step::Shift => recolour::shift(&mut canvas, self.seed),
            Step::Filter(filter) => return Ok(filter::apply(*filter, canvas)),
            Step::CutBackdrop => backdrop::cut(&mut canvas, self.window),
            Step::Backdrop(scene) => {
                backdrop::cut(&mut canvas, self.window);
                let mut behind =
                    self.paint(&Prompt::read(scene), canvas.size(), Background::Opaque)?;
                imageops::overlay(&mut behind, &canvas, 0, 0);
                return Ok(behind);
            }
            Step::BackdropColour(colour) => {
                backdrop::cut(&mut canvas, self.window);
                lay_on(&mut canvas, *colour);
            }
            Step::Frame(colour) => place::frame(&mut canvas, *colour),
            Step::Add(scene) => {
                self.lay(&Prompt::read(scene), Background::Transparent, &mut canvas)?;
            }
            Step::Fill(scene) => self.fill(scene, &mut canvas)?,
            Step::Erase { colour } => {
                let marked = self
                    .edit
                    .inputs
                    .mask
                    .as_ref()
                    .map(|mask| mask.region(canvas.size()));
                erase::erase(&mut canvas, *colour, marked);
            }
            Step::Keep => {}
        }
        Ok(canvas)
    }

    /// Draws a scene in place of the window.
    fn fill(&self, scene: &str, canvas: &mut RgbaImage) -> Result<(), EngineError> {
        let prompt = Prompt::read(scene).into_filling();
        if self.traits.background == Background::Transparent && !prompt.has_backdrop() {
            backdrop::clear(canvas, self.window.unwrap_or(whole(canvas.size())));
            return self.lay(&prompt, Background::Transparent, canvas);
        }
        self.lay(&prompt, Background::Opaque, canvas)
    }

    fn lay(
        &self,
        prompt: &Prompt,
        background: Background,
        canvas: &mut RgbaImage,
    ) -> Result<(), EngineError> {
        let window = self.window.unwrap_or(whole(canvas.size()));
        let layer = self.paint(prompt, window.size, background)?;
        if layer.pixels().all(|pixel| pixel[3] == 0) {
            // There was nothing to draw: other colours at least, and not the same picture again.
            recolour::shift(canvas, self.seed);
        }
        imageops::overlay(canvas, &layer, window.x.into(), window.y.into());
        Ok(())
    }

    fn paint(
        &self,
        prompt: &Prompt,
        size: Pixels,
        background: Background,
    ) -> Result<RgbaImage, EngineError> {
        render::paint(
            prompt,
            ImageTraits {
                size,
                background,
                ..self.traits
            },
            self.seed,
        )
    }
}

fn whole(size: Pixels) -> Window {
    Window { x: 0, y: 0, size }
}
