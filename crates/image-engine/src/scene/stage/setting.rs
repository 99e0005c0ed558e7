//! What goes with what: the backdrop, ground and water that subjects and words bring along.

use engine::Background;

use super::{Backdrop, Ground};
use crate::brief::{Brief, Light, Place, Thing, Weather};
use crate::colour::Colour;
use crate::scene::dice::Dice;

/// What is behind, as it was told or as it goes with what is seen.
pub(super) fn backdrop(brief: &Brief, background: Background, dice: &mut Dice) -> Backdrop {
    if background == Background::Transparent {
        return Backdrop::Clear;
    }
    if let Some(colour) = brief.plain {
        return Backdrop::Plain(colour);
    }
    let open = brief.places.iter().any(|(place, _)| place.has_horizon());
    let told = [
        (Place::Space, Backdrop::Space),
        (Place::Underwater, Backdrop::Underwater),
        (Place::Tabletop, Backdrop::Tabletop),
        (Place::Room, Backdrop::Room),
    ];
    let found = told.into_iter().find(|(place, _)| brief.has(*place) && !(open && *place == Place::Space));
    let lit = brief.light.is_some() || !brief.weather.is_empty();
    match found {
        Some((_, backdrop)) => backdrop,
        None if open => Backdrop::Outdoors,
        None if brief.style.logo || brief.style.outline => Backdrop::Plain(Colour::WHITE),
        None if brief.has(Place::Sky) => {
            if stands(brief) {
                Backdrop::Outdoors
            } else {
                Backdrop::Air
            }
        }
        None if brief.subjects.is_empty() && !lit => bare(brief, dice),
        None => implied(brief, lit, dice),
    }
}

/// Nothing but words, or not even those.
fn bare(brief: &Brief, dice: &mut Dice) -> Backdrop {
    if brief.letterings.is_empty() { Backdrop::Abstract } else { studio(brief, dice) }
}

/// Where things of this kind are usually found.
fn implied(brief: &Brief, lit: bool, dice: &mut Dice) -> Backdrop {
    let any = |things: &[Thing]| things.iter().any(|thing| brief.shows(*thing));
    let by_night = brief.light == Some(Light::Night);
    if brief.shows(Thing::Rocket) || brief.shows(Thing::Planet) {
        return Backdrop::Space;
    }
    if any(&[Thing::Fish, Thing::Whale]) && !lit {
        return Backdrop::Underwater;
    }
    let outdoors = any(&OUTDOORS) || (lit && stands(brief));
    match () {
        () if outdoors => Backdrop::Outdoors,
        () if any(&AIRBORNE) || lit || by_night => Backdrop::Air,
        () => studio(brief, dice),
    }
}

fn studio(brief: &Brief, dice: &mut Dice) -> Backdrop {
    let hue = brief.colours().next().map_or_else(|| dice.range(0.0, 360.0), |colour| colour.to_hsl().0 + 180.0);
    Backdrop::Studio(Colour::hsl(hue + dice.jitter(25.0), 0.42, 0.92))
}

fn stands(brief: &Brief) -> bool {
    brief.subjects.iter().any(|subject| !AIRBORNE.contains(&subject.thing) && !flies(subject.thing))
}

/// What may hang in the air over any land.
pub(in crate::scene) const fn flies(thing: Thing) -> bool {
    use Thing::{
        AirBalloon, Arrow, Balloon, Bee, Bird, Butterfly, Circle, Cloud, Crescent, Ghost, Heart, Kite, Lightning, Moon,
        Plane, Planet, Rainbow, Rocket, Star, Sun,
    };
    matches!(
        thing,
        AirBalloon
            | Arrow
            | Balloon
            | Bee
            | Bird
            | Butterfly
            | Circle
            | Cloud
            | Crescent
            | Ghost
            | Heart
            | Kite
            | Lightning
            | Moon
            | Plane
            | Planet
            | Rainbow
            | Rocket
            | Star
            | Sun
    )
}

/// What swims when there is water.
pub(in crate::scene) const fn swims(thing: Thing) -> bool {
    matches!(thing, Thing::Boat | Thing::PaperBoat | Thing::Ship | Thing::Duck | Thing::Whale | Thing::Fish)
}

pub(super) fn has_water(brief: &Brief) -> bool {
    if [Place::Sea, Place::Lake, Place::Shore, Place::Cliff].into_iter().any(|place| brief.has(place)) {
        return true;
    }
    let dry = brief.places.iter().any(|(place, _)| place.has_horizon());
    !dry && brief.subjects.iter().any(|subject| swims(subject.thing))
}

pub(super) fn ground(brief: &Brief, water: bool) -> Option<Ground> {
    let told = [
        (Place::Cliff, Ground::Cliff),
        (Place::Snow, Ground::Snow),
        (Place::Street, Ground::Street),
        (Place::Shore, Ground::Sand),
        (Place::Desert, Ground::Desert),
        (Place::Hills, Ground::Hills),
        (Place::Field, Ground::Field),
    ];
    if let Some((_, ground)) = told.into_iter().find(|(place, _)| brief.has(*place)) {
        return Some(ground);
    }
    let walkers = brief.subjects.iter().any(|subject| !flies(subject.thing) && !swims(subject.thing));
    match () {
        () if brief.shows(Thing::Snowman) => Some(Ground::Snow),
        () if brief.shows(Thing::Cactus) => Some(Ground::Desert),
        () if brief.has(Place::City) && !water => Some(Ground::Street),
        () if water && walkers => Some(Ground::Sand),
        () if brief.has(Place::Lake) => Some(Ground::Bank),
        () if water => None,
        () => Some(Ground::Field),
    }
}

/// Things that bring their land with them.
const OUTDOORS: [Thing; 20] = [
    Thing::Tree,
    Thing::Pine,
    Thing::Palm,
    Thing::Cactus,
    Thing::Bush,
    Thing::House,
    Thing::Castle,
    Thing::Lighthouse,
    Thing::Bridge,
    Thing::Tower,
    Thing::Tent,
    Thing::Windmill,
    Thing::Fence,
    Thing::Boat,
    Thing::PaperBoat,
    Thing::Ship,
    Thing::Duck,
    Thing::Snowman,
    Thing::Train,
    Thing::Bus,
];

/// Things that bring the sky with them.
const AIRBORNE: [Thing; 9] = [
    Thing::Sun,
    Thing::Moon,
    Thing::Cloud,
    Thing::Rainbow,
    Thing::Bird,
    Thing::Plane,
    Thing::AirBalloon,
    Thing::Kite,
    Thing::Lightning,
];

/// Whether thunder and rain darken the day.
pub(in crate::scene) fn is_gloomy(brief: &Brief) -> bool {
    brief.weather.iter().any(|weather| matches!(weather, Weather::Storm | Weather::Rain | Weather::Clouds))
}
