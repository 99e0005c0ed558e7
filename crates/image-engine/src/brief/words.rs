//! What words mean. Each table answers for one kind of meaning, with the singular of lowercase words.

use super::lexicon::{Light, Place, Relation, Scale, Style, Thing, Weather};

/// A noun, or two that make one.
#[rustfmt::skip]
pub(super) fn thing(noun: &str) -> Option<Thing> {
    Some(match noun {
        "circle" | "disc" | "disk" | "dot" => Thing::Circle,
        "square" => Thing::Square,
        "rectangle" | "bar" | "stripe" => Thing::Rectangle,
        "triangle" => Thing::Triangle,
        "star" => Thing::Star,
        "heart" => Thing::Heart,
        "hexagon" => Thing::Hexagon,
        "pentagon" => Thing::Pentagon,
        "octagon" => Thing::Octagon,
        "ellipse" | "oval" => Thing::Ellipse,
        "ring" | "donut" | "doughnut" | "hoop" | "wheel" => Thing::Ring,
        "cross" | "plus sign" => Thing::Cross,
        "diamond" | "rhombus" | "gem" => Thing::Diamond,
        "arrow" => Thing::Arrow,
        "line" => Thing::Line,
        "crescent" | "crescent moon" => Thing::Crescent,
        "spiral" | "swirl" => Thing::Spiral,
        "cube" | "box" | "crate" => Thing::Cube,
        "sun" => Thing::Sun,
        "moon" => Thing::Moon,
        "cloud" => Thing::Cloud,
        "rainbow" => Thing::Rainbow,
        "planet" | "saturn" | "jupiter" | "mars" | "earth" | "globe" => Thing::Planet,
        "lightning" | "lightning bolt" | "bolt" => Thing::Lightning,
        "tree" | "oak" | "oak tree" | "apple tree" | "birch" => Thing::Tree,
        "pine" | "pine tree" | "fir" | "fir tree" | "spruce" | "christmas tree" | "evergreen" => Thing::Pine,
        "palm" | "palm tree" => Thing::Palm,
        "flower" | "tulip" | "daisy" | "sunflower" | "poppy" | "blossom" | "red rose" => Thing::Flower,
        "leaf" => Thing::Leaf,
        "mushroom" | "toadstool" => Thing::Mushroom,
        "cactus" | "cacti" => Thing::Cactus,
        "bush" | "shrub" | "hedge" => Thing::Bush,
        "rock" | "stone" | "boulder" => Thing::Rock,
        "house" | "cottage" | "cabin" | "hut" | "home" | "barn" | "farmhouse" | "villa" => Thing::House,
        "castle" | "fortress" | "palace" => Thing::Castle,
        "lighthouse" | "light house" => Thing::Lighthouse,
        "bridge" => Thing::Bridge,
        "tower" | "skyscraper" | "building" => Thing::Tower,
        "tent" => Thing::Tent,
        "windmill" | "mill" => Thing::Windmill,
        "fence" => Thing::Fence,
        "car" | "taxi" | "automobile" | "vehicle" => Thing::Car,
        "bus" | "van" | "truck" | "lorry" => Thing::Bus,
        "boat" | "sailboat" | "sailing boat" | "yacht" | "dinghy" => Thing::Boat,
        "paper boat" | "paper ship" | "origami boat" => Thing::PaperBoat,
        "ship" | "ferry" | "steamer" | "cruise ship" => Thing::Ship,
        "rocket" | "spaceship" | "spacecraft" | "space shuttle" | "rocket ship" => Thing::Rocket,
        "plane" | "airplane" | "aeroplane" | "jet" | "paper plane" => Thing::Plane,
        "air balloon" => Thing::AirBalloon,
        "bicycle" | "bike" => Thing::Bicycle,
        "train" | "locomotive" => Thing::Train,
        "fish" | "goldfish" | "shark" | "salmon" => Thing::Fish,
        "bird" | "seagull" | "gull" | "sparrow" | "robin" | "crow" | "parrot" | "eagle" => Thing::Bird,
        "cat" | "kitten" | "kitty" | "fox" => Thing::Cat,
        "dog" | "puppy" | "wolf" => Thing::Dog,
        "butterfly" | "moth" => Thing::Butterfly,
        "duck" | "duckling" | "goose" | "swan" => Thing::Duck,
        "whale" | "dolphin" => Thing::Whale,
        "rabbit" | "bunny" | "hare" => Thing::Rabbit,
        "bee" | "bumblebee" | "wasp" => Thing::Bee,
        "owl" => Thing::Owl,
        "person" | "man" | "boy" | "child" | "human" | "kid" | "figure" | "character" => Thing::Person,
        "woman" | "girl" | "lady" | "princess" => Thing::Woman,
        "robot" | "android" => Thing::Robot,
        "snowman" | "snowmen" => Thing::Snowman,
        "ghost" => Thing::Ghost,
        "apple" => Thing::Apple,
        "cherry" => Thing::Cherry,
        "lemon" | "lime fruit" => Thing::Lemon,
        "banana" => Thing::Banana,
        "cake" | "birthday cake" | "cupcake" => Thing::Cake,
        "cup" | "mug" | "coffee cup" | "teacup" | "coffee" | "tea" => Thing::Cup,
        "bowl" | "basket" | "dish" => Thing::Bowl,
        "ice cream" | "icecream" | "ice-cream" => Thing::IceCream,
        "pizza" => Thing::Pizza,
        "egg" => Thing::Egg,
        "pumpkin" | "jack-o-lantern" => Thing::Pumpkin,
        "balloon" => Thing::Balloon,
        "ball" | "sphere" | "football" | "basketball" | "beach ball" | "orb" => Thing::Ball,
        "book" | "notebook" => Thing::Book,
        "umbrella" | "parasol" => Thing::Umbrella,
        "chair" | "stool" | "armchair" => Thing::Chair,
        "table" | "desk" => Thing::Table,
        "lamp" | "table lamp" | "desk lamp" | "lantern" | "street lamp" | "lamppost" | "streetlight" => Thing::Lamp,
        "vase" | "pot" | "flowerpot" => Thing::Vase,
        "gift" | "present" | "gift box" => Thing::Gift,
        "candle" => Thing::Candle,
        "clock" | "watch" => Thing::Clock,
        "flag" => Thing::Flag,
        "kite" => Thing::Kite,
        "hat" | "top hat" => Thing::Hat,
        "key" => Thing::Key,
        "sign" | "signpost" | "billboard" | "signboard" => Thing::Sign,
        "mountain" | "peak" | "volcano" => Thing::Mountain,
        _ => return None,
    })
}

/// Where it is.
#[rustfmt::skip]
pub(super) fn place(noun: &str) -> Option<Place> {
    Some(match noun {
        "sky" | "air" | "heaven" => Place::Sky,
        "sea" | "ocean" | "seascape" | "bay" | "harbour" | "harbor" | "wave" | "water" => Place::Sea,
        "lake" | "pond" | "river" | "pool" | "stream" | "lagoon" => Place::Lake,
        "shore" | "beach" | "coast" | "seaside" | "coastline" | "island" => Place::Shore,
        "cliff" | "headland" => Place::Cliff,
        "mountain" | "mountain range" | "alp" | "peak" | "summit" => Place::Mountains,
        "hill" | "hillside" | "valley" | "landscape" | "countryside" => Place::Hills,
        "forest" | "wood" | "woodland" | "jungle" | "grove" => Place::Forest,
        "desert" | "dune" | "sahara" | "sand" => Place::Desert,
        "field" | "meadow" | "grass" | "lawn" | "garden" | "park" | "farm" | "prairie" | "grassland" | "pasture" => Place::Field,
        "snow" | "winter" | "arctic" | "ice" | "snowscape" => Place::Snow,
        "city" | "skyline" | "town" | "cityscape" | "downtown" | "village" => Place::City,
        "street" | "road" | "highway" | "alley" => Place::Street,
        "space" | "outer space" | "galaxy" | "universe" | "cosmos" | "orbit" => Place::Space,
        "room" | "kitchen" | "bedroom" | "office" | "indoor" | "interior" | "wall" => Place::Room,
        "tabletop" | "countertop" | "shelf" => Place::Tabletop,
        "underwater" | "seabed" | "reef" | "aquarium" => Place::Underwater,
        _ => return None,
    })
}

pub(super) fn light(word: &str) -> Option<Light> {
    Some(match word {
        "day" | "daytime" | "noon" | "sunny" | "midday" | "summer" | "afternoon" => Light::Day,
        "morning" | "sunrise" | "dawn" | "daybreak" => Light::Morning,
        "sunset" | "dusk" | "evening" | "twilight" => Light::Sunset,
        "night" | "nighttime" | "midnight" | "moonlight" | "moonlit" | "nocturnal" => Light::Night,
        _ => return None,
    })
}

pub(super) fn weather(word: &str) -> Option<Weather> {
    Some(match word {
        "cloudy" | "overcast" => Weather::Clouds,
        "rain" | "rainy" | "raining" | "drizzle" => Weather::Rain,
        "storm" | "stormy" | "thunderstorm" | "tempest" => Weather::Storm,
        "fog" | "foggy" | "mist" | "misty" | "haze" | "hazy" => Weather::Fog,
        "snowing" | "snowfall" | "blizzard" | "snowflake" | "snowstorm" => Weather::Snowfall,
        "starry" | "starlit" | "starlight" => Weather::Starry,
        _ => return None,
    })
}

/// A place told by an adjective: it brings the place, but is no noun of its own.
pub(super) fn placing(word: &str) -> Option<Place> {
    Some(match word {
        "snowy" | "wintry" | "frozen" => Place::Snow,
        "grassy" => Place::Field,
        "sandy" => Place::Shore,
        "hilly" | "rolling" => Place::Hills,
        _ => return None,
    })
}

pub(super) fn scale(word: &str) -> Option<Scale> {
    Some(match word {
        "tiny" | "miniature" | "minuscule" => Scale::Tiny,
        "small" | "little" | "short" => Scale::Small,
        "big" | "large" | "tall" => Scale::Big,
        "huge" | "giant" | "enormous" | "gigantic" | "massive" => Scale::Huge,
        _ => return None,
    })
}

pub(super) fn relation(word: &str) -> Option<Relation> {
    Some(match word {
        "above" | "over" | "atop" => Relation::Above,
        "below" | "under" | "beneath" | "underneath" => Relation::Below,
        "on" | "upon" | "crossing" | "riding" => Relation::On,
        "in" | "inside" | "within" => Relation::Inside,
        "behind" => Relation::Behind,
        _ => return None,
    })
}

/// −1, 0 or 1 across and down.
pub(super) fn position(word: &str) -> Option<(Option<i8>, Option<i8>)> {
    Some(match word {
        "left" => (Some(-1), None),
        "right" => (Some(1), None),
        "top" | "upper" => (None, Some(-1)),
        "bottom" | "lower" => (None, Some(1)),
        "centre" | "center" | "middle" | "centred" | "centered" => (Some(0), Some(0)),
        _ => return None,
    })
}

/// Parts of things: they take a colour and leave the thing its own.
pub(super) fn is_part(noun: &str) -> bool {
    matches!(
        noun,
        "roof"
            | "door"
            | "window"
            | "sail"
            | "wing"
            | "scarf"
            | "stripe"
            | "handle"
            | "ribbon"
            | "eye"
            | "tail"
            | "petal"
            | "trunk"
            | "shirt"
            | "dress"
            | "cover"
            | "flame"
            | "icing"
            | "spot"
    )
}

/// What a person wears: its colour is what is seen first.
pub(super) fn is_garment(noun: &str) -> bool {
    matches!(noun, "shirt" | "dress" | "coat" | "jacket" | "sweater")
}

/// Whether a picture in this manner was asked for; two words may make one.
pub(super) fn apply_style(word: &str, style: &mut Style) -> bool {
    match word {
        "outline" | "outlined" | "lineart" | "line art" | "line drawing" | "sketch" | "contour" | "coloring page"
        | "colouring page" => style.outline = true,
        "flat" | "minimal" | "minimalist" | "simple" => style.flat = true,
        "pixel art" | "pixelart" | "pixelated" | "8-bit" | "8 bit" => style.pixels = true,
        "watercolor" | "watercolour" | "aquarelle" => style.watercolour = true,
        "monochrome" | "grayscale" | "greyscale" | "monochromatic" => style.grey = true,
        "logo" | "icon" | "emblem" => (style.logo, style.flat) = (true, true),
        _ => return false,
    }
    true
}

/// Words that open a new noun phrase, so that what was said before belongs to what was before.
pub(super) fn is_determiner(word: &str) -> bool {
    matches!(word, "a" | "an" | "the" | "its" | "his" | "her" | "their" | "my" | "this" | "that" | "some" | "another")
}
