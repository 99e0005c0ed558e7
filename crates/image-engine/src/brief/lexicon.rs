//! The kinds of things that a brief is made of.

/// What can be drawn for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub(crate) enum Thing {
    Circle, Square, Rectangle, Triangle, Star, Heart, Hexagon, Pentagon, Octagon, Ellipse, Ring, Cross, Diamond, Arrow,
    Line, Crescent, Spiral, Cube,
    Sun, Moon, Cloud, Rainbow, Planet, Lightning,
    Tree, Pine, Palm, Flower, Leaf, Mushroom, Cactus, Bush, Mountain, Rock,
    House, Castle, Lighthouse, Bridge, Tower, Tent, Windmill, Fence,
    Car, Bus, Boat, PaperBoat, Ship, Rocket, Plane, AirBalloon, Bicycle, Train,
    Fish, Bird, Cat, Dog, Butterfly, Duck, Whale, Rabbit, Bee, Owl,
    Person, Woman, Robot, Snowman, Ghost,
    Apple, Cherry, Orange, Lemon, Banana, Cake, Cup, Bowl, IceCream, Pizza, Egg, Pumpkin,
    Balloon, Ball, Book, Umbrella, Chair, Table, Lamp, Vase, Gift, Candle, Clock, Flag, Kite, Hat, Key, Sign,
}

/// Where a picture plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub(crate) enum Place {
    Sky, Sea, Lake, Shore, Cliff, Mountains, Hills, Forest, Desert, Field, Snow, City, Street, Space, Room, Tabletop,
    Underwater,
}

impl Place {
    /// Whether far things are seen in it.
    pub(crate) const fn has_horizon(self) -> bool {
        !matches!(self, Self::Sky | Self::Space | Self::Room | Self::Tabletop | Self::Underwater)
    }
}

/// The time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Light {
    Day,
    Morning,
    Sunset,
    Night,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Weather {
    Clouds,
    Rain,
    Storm,
    Fog,
    Snowfall,
    Starry,
}

/// How large a thing is beside its like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scale {
    Tiny,
    Small,
    #[default]
    Usual,
    Big,
    Huge,
}

impl Scale {
    pub(crate) const fn factor(self) -> f32 {
        match self {
            Self::Tiny => 0.36,
            Self::Small => 0.62,
            Self::Usual => 1.0,
            Self::Big => 1.28,
            Self::Huge => 1.55,
        }
    }
}

/// A place on the picture: −1 is left or top, 1 is right or bottom; `None` leaves it open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) across: Option<i8>,
    pub(crate) down: Option<i8>,
    pub(crate) depth: Option<Depth>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    Back,
    Front,
}

/// Where a thing is, as seen from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Relation {
    Above,
    Below,
    On,
    Inside,
    Behind,
    Before,
    LeftOf,
    RightOf,
}

/// In what manner a picture is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    /// Lines on paper, no fills.
    pub(crate) outline: bool,
    /// No gradients.
    pub(crate) flat: bool,
    /// Coarse squares.
    pub(crate) pixels: bool,
    /// Thin, light paint.
    pub(crate) watercolour: bool,
    /// Greys only.
    pub(crate) grey: bool,
    /// A mark: one thing, centred, nothing around it.
    pub(crate) logo: bool,
}
