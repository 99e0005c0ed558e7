//! How each thing looks. Every one is drawn on a field 100 high with its foot in the middle of the lower edge at 0.

mod animals;
mod buildings;
mod food;
mod forms;
mod household;
mod nature;
mod people;
mod shapes;
mod toys;
mod vehicles;

use super::layout::Actor;
use super::pen::Pen;
pub(super) use forms::{aspect, colours, height, is_free_in_colour, stands, surface, tilts, turns};

/// Draws a thing on its field.
pub(super) fn draw(pen: &mut Pen, actor: &Actor) {
    let families = [
        shapes::draw,
        nature::draw,
        buildings::draw,
        vehicles::draw,
        animals::draw,
        people::draw,
        food::draw,
        household::draw,
        toys::draw,
    ];
    for family in families {
        if family(pen, actor) {
            return;
        }
    }
}
