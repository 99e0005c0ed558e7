//! Tests that the document describes each path and each field.

use super::*;

#[test]
fn every_method_of_every_path_is_described() {
    let document = document();
    let paths = document["paths"].as_object().unwrap();
    let described = paths.iter().map(|(path, operations)| {
        let methods: Vec<_> = operations.as_object().unwrap().keys().cloned().collect();
        (path.as_str(), methods.join(" "))
    });
    let described: Vec<_> = described.collect();
    let expected = [
        ("/admin/v1/keys", "post get"),
        ("/admin/v1/keys/{id}", "get patch delete"),
        ("/admin/v1/keys/{id}/rotate", "post"),
        ("/admin/v1/usage", "get"),
        ("/admin/v1/usage/rows", "get"),
        ("/admin/v1/requests/{id}", "get"),
        ("/admin/v1/limits", "get"),
        ("/admin/v1/prices", "get"),
        ("/admin/v1/audit", "get"),
        ("/admin/v1/live", "get"),
        ("/admin/v1/live/{id}", "delete"),
        ("/admin/v1/requests", "get"),
        ("/admin/v1/requests/{id}/explain", "get"),
        ("/admin/v1/changes", "get"),
        ("/admin/v1/upstreams", "get"),
        ("/admin/v1/models", "get"),
        ("/admin/v1/about", "get"),
    ];
    assert_eq!(
        described,
        expected.map(|(path, methods)| (path, methods.to_owned()))
    );
}

#[test]
fn every_field_and_parameter_is_described() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut fields = 0;
    for (name, schema) in schemas {
        assert!(is_text(&schema["description"]), "{name}");
        // A type of words has none.
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
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
