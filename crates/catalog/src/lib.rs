#![doc = include_str!("../README.md")]

mod catalog;
mod facts;
mod list;
mod model;
pub mod upstream_list;

pub use catalog::{Catalog, DEFAULT_IMAGE_MODEL};
pub use facts::{Capability, Facts, Modality};
pub use list::{Entry, List, Page};
pub use model::{Allowed, Family, Model, Protocol};
