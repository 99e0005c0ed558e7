//! The layer table: the allowed dependencies between the crates (ARCHITECTURE.md).

/// One crate of `crates/`.
pub(crate) struct LayerCrate {
    /// Its folder.
    pub(crate) name: &'static str,
    /// Its row, counted from the bottom.
    pub(crate) row: u8,
    /// The crates that it may depend on, all of them in lower rows.
    pub(crate) may: May,
    /// Crates that its tests may use in addition.
    pub(crate) tests_may: &'static [&'static str],
}

/// A set of crates.
pub(crate) enum May {
    /// The listed crates.
    Use(&'static [&'static str]),
    /// All crates in rows below this one.
    UseBelow(u8),
}

impl LayerCrate {
    /// Returns true if the crate may depend on `other`, in its tests or everywhere.
    pub(crate) fn may_use(&self, other: &LayerCrate, in_tests: bool) -> bool {
        let allowed = match self.may {
            May::Use(names) => names.contains(&other.name),
            May::UseBelow(row) => other.row < row,
        };
        allowed || in_tests && (self.name == other.name || self.tests_may.contains(&other.name))
    }

    /// Returns true if the crate must be free of I/O: no runtime, no sockets.
    pub(crate) fn is_pure(&self) -> bool {
        self.row < FIRST_ROW_WITH_IO
    }

    /// Returns true if the crate is useful by itself and so has to build alone.
    pub(crate) fn builds_alone(&self) -> bool {
        self.row < FIRST_ROW_THAT_COMBINES
    }
}

/// The crate in the folder `name`.
pub(crate) fn find(name: &str) -> Option<&'static LayerCrate> {
    LAYERS.iter().find(|krate| krate.name == name)
}

/// The table, top row first.
pub(crate) const LAYERS: &[LayerCrate] = &[
    LayerCrate {
        name: "server",
        row: 6,
        may: May::UseBelow(6),
        tests_may: &["simulator"],
    },
    LayerCrate {
        name: "simulator",
        row: 6,
        may: May::UseBelow(4),
        tests_may: &[],
    },
    LayerCrate {
        name: "upstream",
        row: 5,
        may: May::Use(&["engine", "net", "translate"]),
        tests_may: &[],
    },
    LayerCrate {
        name: "fetch",
        row: 5,
        may: May::Use(&["net", "picture"]),
        tests_may: &[],
    },
    LayerCrate {
        name: "text-engine",
        row: 4,
        may: May::Use(&["engine", "picture", "wire"]),
        tests_may: &[],
    },
    LayerCrate {
        name: "image-engine",
        row: 4,
        may: May::Use(&["engine", "picture", "wire"]),
        tests_may: &[],
    },
    LayerCrate {
        name: "accounting",
        row: 4,
        may: May::Use(&["auth", "quota"]),
        tests_may: &[],
    },
    LayerCrate {
        name: "lease",
        row: 4,
        may: May::Use(&["quota"]),
        tests_may: &[],
    },
    LayerCrate {
        name: "net",
        row: 4,
        may: May::Use(&[]),
        tests_may: &[],
    },
    LayerCrate {
        name: "translate",
        row: 3,
        may: May::UseBelow(3),
        tests_may: &[],
    },
    LayerCrate {
        name: "catalog",
        row: 3,
        may: May::UseBelow(3),
        tests_may: &[],
    },
    LayerCrate {
        name: "responses",
        row: 2,
        may: May::Use(&["sse", "wire"]),
        tests_may: &[],
    },
    LayerCrate {
        name: "chat",
        row: 2,
        may: May::Use(&["sse", "wire"]),
        tests_may: &[],
    },
    LayerCrate {
        name: "messages",
        row: 2,
        may: May::Use(&["sse", "wire"]),
        tests_may: &[],
    },
    LayerCrate {
        name: "images",
        row: 2,
        may: May::Use(&["picture", "sse", "wire"]),
        tests_may: &[],
    },
    LayerCrate {
        name: "engine",
        row: 1,
        may: May::Use(&["wire"]),
        tests_may: &[],
    },
    LayerCrate {
        name: "quota",
        row: 1,
        may: May::Use(&[]),
        tests_may: &[],
    },
    LayerCrate {
        name: "auth",
        row: 1,
        may: May::Use(&[]),
        tests_may: &[],
    },
    LayerCrate {
        name: "picture",
        row: 1,
        may: May::Use(&[]),
        tests_may: &[],
    },
    LayerCrate {
        name: "wire",
        row: 0,
        may: May::Use(&[]),
        tests_may: &[],
    },
    LayerCrate {
        name: "sse",
        row: 0,
        may: May::Use(&[]),
        tests_may: &[],
    },
];

const FIRST_ROW_THAT_COMBINES: u8 = 3;
const FIRST_ROW_WITH_IO: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_permission_points_strictly_down() {
        for krate in LAYERS {
            for other in LAYERS.iter().filter(|other| krate.may_use(other, false)) {
                assert!(
                    other.row < krate.row,
                    "{} may use {}",
                    krate.name,
                    other.name
                );
            }
        }
    }

    #[test]
    fn every_crate_is_in_the_table_once() {
        for (i, one) in LAYERS.iter().enumerate() {
            assert!(
                LAYERS[i + 1..].iter().all(|other| other.name != one.name),
                "{} twice",
                one.name
            );
            let May::Use(names) = one.may else { continue };
            assert!(
                names
                    .iter()
                    .chain(one.tests_may)
                    .all(|name| find(name).is_some()),
                "{}",
                one.name
            );
        }
    }
}
