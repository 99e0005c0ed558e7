//! Each fixture is read, and nothing of it is lost.

use serde_json::Value;
use sluicegate_images::{Edit, Generation};
use wire::ApiError;

#[test]
fn generations_are_valid_and_nothing_is_lost() {
    insta::glob!("fixtures/images-generate-request*.json", |path| {
        let body = std::fs::read(path).unwrap();
        let request = Generation::read(&body).unwrap();
        assert_eq!(serde_json::to_value(&request).unwrap(), serde_json::from_slice::<Value>(&body).unwrap());
        insta::assert_debug_snapshot!(*request.validate().unwrap());
    });
}

#[test]
fn edits_are_valid_and_nothing_is_lost() {
    insta::glob!("fixtures/images-edit-request-json*.json", |path| {
        let body = std::fs::read(path).unwrap();
        let request = Edit::read(&body).unwrap();
        assert_eq!(serde_json::to_value(&request).unwrap(), serde_json::from_slice::<Value>(&body).unwrap());
        let valid = request.validate().unwrap();
        assert!(valid.addresses().all(|address| address.starts_with("data:image/png;base64,")));
        assert_eq!(valid.addresses().count(), valid.images.as_ref().unwrap().len());
    });
}

#[test]
fn stored_files_are_refused_to_the_letter() {
    let fixture: Value =
        serde_json::from_str(include_str!("fixtures/images-edit-request-file-id-rejected.json")).unwrap();
    let found = Edit::read(fixture["request"].to_string().as_bytes()).unwrap().validate().unwrap_err();
    assert_eq!(serde_json::to_value(ApiError::from(found).body()).unwrap(), fixture["expect"]["body"]);
}
