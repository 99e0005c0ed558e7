//! Laws that hold for any input.

use proptest::prelude::*;
use serde_json::Value;
use sluicegate_images::{Edit, Generation};
use wire::Shape;

proptest! {
    #[test]
    fn the_diagnosis_agrees_with_the_parser(document in wire::strategy::changed(requests())) {
        let text = document.to_string();
        let generation = serde_json::from_str::<Generation>(&text);
        let diagnosis = Shape::of::<Generation>().diagnose(&document);
        prop_assert_eq!(generation.is_ok(), diagnosis.is_empty(), "{:?} {} {}", generation.err(), diagnosis, text);
        let edit = serde_json::from_str::<Edit>(&text);
        let diagnosis = Shape::of::<Edit>().diagnose(&document);
        prop_assert_eq!(edit.is_ok(), diagnosis.is_empty(), "{:?} {} {}", edit.err(), diagnosis, text);
    }

    #[test]
    fn what_is_read_is_written_and_read_again_the_same(document in wire::strategy::changed(requests())) {
        if let Ok(request) = Edit::read(document.to_string().as_bytes()) {
            let written = serde_json::to_vec(&request).unwrap();
            prop_assert_eq!(Edit::read(&written).unwrap(), request);
        }
    }
}

fn requests() -> Vec<Value> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let requests = files.filter(|path| path.extension().is_some_and(|kind| kind == "json"));
    requests.map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()).collect()
}
