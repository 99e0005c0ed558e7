//! The layer table: which room of the house may know which (ARCHITECTURE.md).

/// One crate of `crates/`.
pub(crate) struct Room {
    /// Its folder.
    pub(crate) name: &'static str,
    /// Its row, counted from the ground.
    pub(crate) row: u8,
    /// The rooms that it may depend on, all of them in rows below its own.
    pub(crate) may: May,
    /// Rooms that its tests may use beside those.
    pub(crate) tests_may: &'static [&'static str],
}

/// A choice of rooms.
pub(crate) enum May {
    /// These.
    Use(&'static [&'static str]),
    /// All those in rows under this one.
    UseBelow(u8),
}

impl Room {
    /// Whether the room may depend on `other`, in its tests or everywhere.
    pub(crate) fn may_use(&self, other: &Room, in_tests: bool) -> bool {
        let allowed = match self.may {
            May::Use(names) => names.contains(&other.name),
            May::UseBelow(row) => other.row < row,
        };
        allowed || in_tests && (self.name == other.name || self.tests_may.contains(&other.name))
    }

    /// Whether the room must stay free of I/O: no runtime, no sockets.
    pub(crate) fn is_pure(&self) -> bool {
        self.row < FIRST_ROW_WITH_IO
    }

    /// Whether the room is of use alone and so has to build alone.
    pub(crate) fn stands_alone(&self) -> bool {
        self.row < FIRST_ROW_THAT_COMBINES
    }
}

/// The room in the folder `name`.
pub(crate) fn room(name: &str) -> Option<&'static Room> {
    LAYERS.iter().find(|room| room.name == name)
}

/// The table, top row first.
pub(crate) const LAYERS: &[Room] = &[
    Room { name: "server", row: 5, may: May::UseBelow(5), tests_may: &["simulator"] },
    Room { name: "simulator", row: 5, may: May::UseBelow(4), tests_may: &[] },
    Room { name: "upstream", row: 4, may: May::UseBelow(4), tests_may: &[] },
    Room { name: "text-engine", row: 4, may: May::Use(&["engine", "picture", "wire"]), tests_may: &[] },
    Room { name: "image-engine", row: 4, may: May::Use(&["engine", "picture", "wire"]), tests_may: &[] },
    Room { name: "fetch", row: 4, may: May::Use(&["picture", "wire"]), tests_may: &[] },
    Room { name: "translate", row: 3, may: May::UseBelow(3), tests_may: &[] },
    Room { name: "catalog", row: 3, may: May::UseBelow(3), tests_may: &[] },
    Room { name: "responses", row: 2, may: May::Use(&["sse", "wire"]), tests_may: &[] },
    Room { name: "chat", row: 2, may: May::Use(&["sse", "wire"]), tests_may: &[] },
    Room { name: "messages", row: 2, may: May::Use(&["sse", "wire"]), tests_may: &[] },
    Room { name: "images", row: 2, may: May::Use(&["picture", "sse", "wire"]), tests_may: &[] },
    Room { name: "engine", row: 1, may: May::Use(&["wire"]), tests_may: &[] },
    Room { name: "auth", row: 1, may: May::Use(&[]), tests_may: &[] },
    Room { name: "picture", row: 1, may: May::Use(&[]), tests_may: &[] },
    Room { name: "wire", row: 0, may: May::Use(&[]), tests_may: &[] },
    Room { name: "sse", row: 0, may: May::Use(&[]), tests_may: &[] },
];

const FIRST_ROW_THAT_COMBINES: u8 = 3;
const FIRST_ROW_WITH_IO: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_permission_points_strictly_down() {
        for room in LAYERS {
            for other in LAYERS.iter().filter(|other| room.may_use(other, false)) {
                assert!(other.row < room.row, "{} may use {}", room.name, other.name);
            }
        }
    }

    #[test]
    fn every_name_in_the_table_is_a_room_of_its_own() {
        for (i, one) in LAYERS.iter().enumerate() {
            assert!(LAYERS[i + 1..].iter().all(|other| other.name != one.name), "{} twice", one.name);
            let May::Use(names) = one.may else { continue };
            assert!(names.iter().chain(one.tests_may).all(|name| room(name).is_some()), "{}", one.name);
        }
    }
}
