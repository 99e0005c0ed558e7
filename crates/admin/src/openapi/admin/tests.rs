//! Tests that the document describes each path and each field.

use http::Method;

use super::*;
use crate::api::route::Route;

#[test]
fn every_method_of_every_path_is_described() {
    let document = document();
    let mut described = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            let method: Method = method.to_uppercase().parse().unwrap();
            let route = Route::of(path).unwrap();
            assert!(route.allows(&method), "{method} {path}");
            described.push((path.as_str(), method));
        }
    }
    let of = |path: &str| {
        let methods = described.iter().filter(|(found, _)| *found == path);
        methods.count()
    };
    for (path, route) in [
        ("/admin/v1/keys", Route::Keys),
        ("/admin/v1/keys/{id}", Route::Key("{id}")),
        ("/admin/v1/keys/{id}/rotate", Route::Rotate("{id}")),
        ("/admin/v1/usage", Route::Usage),
        ("/admin/v1/usage/rows", Route::Rows),
        ("/admin/v1/requests/{id}", Route::Request("{id}")),
        ("/admin/v1/limits", Route::Limits),
        ("/admin/v1/prices", Route::Prices),
        ("/admin/v1/audit", Route::Audit),
    ] {
        assert_eq!(Route::of(path), Some(route));
        assert_eq!(of(path), route.methods().split(", ").count(), "{path}");
    }
    assert_eq!(described.len(), 12);
}

#[test]
fn every_field_and_parameter_is_described() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut fields = 0;
    for (name, schema) in schemas {
        assert!(is_text(&schema["description"]), "{name}");
        for (field, schema) in schema["properties"].as_object().unwrap() {
            assert!(is_text(&schema["description"]), "{name}.{field}");
            fields += 1;
        }
    }
    assert!(fields > 100, "{fields}");
    for operations in document["paths"].as_object().unwrap().values() {
        for operation in operations.as_object().unwrap().values() {
            for parameter in operation["parameters"].as_array().unwrap() {
                assert!(is_text(&parameter["description"]), "{parameter}");
            }
        }
    }
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

#[test]
fn a_key_is_described_as_it_is_read_and_written() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["NewKey"]["required"], json!(["name", "scopes"]));
    assert_eq!(schemas["NewKey"]["additionalProperties"], false);
    assert_eq!(schemas["KeyChange"]["required"], Value::Null);
    let created = &schemas["CreatedKey"]["properties"];
    assert!(created["key"].is_object() && created["id"].is_object());
    assert!(schemas["Key"]["properties"]["key"].is_null());
}
