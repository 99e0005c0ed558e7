//! The default folder of the journal of a database, which has no file beside which it could lie.

use std::ffi::OsString;
use std::path::PathBuf;

use url::form_urlencoded::byte_serialize;

/// Returns the folder of the journal for a database with this address, in the folder for the state
/// of this service or user, which `variable` of the environment names.
///
/// The last part of its path is the address: gateways with the same database share a folder, in
/// which each process has its own, and gateways with another database never send the entries of
/// this one.
///
/// # Errors
/// Returns the problem of the setting `state.journal` if the environment names no such folder.
pub(crate) fn of_database(
    address: &str,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, String> {
    let absolute = |name: &str| {
        let folder = PathBuf::from(variable(name)?);
        folder.is_absolute().then_some(folder)
    };
    // systemd separates several folders by colons.
    let of_service = absolute("STATE_DIRECTORY")
        .and_then(|folders| Some(folders.to_str()?.split(':').next()?.into()));
    let of_user = || {
        let states = absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
        states.map(|folder| folder.join("sluicegate"))
    };
    let folder: PathBuf = of_service.or_else(of_user).ok_or(
        "state.journal: must be a folder for the usage that waits for the database, because none of STATE_DIRECTORY, XDG_STATE_HOME and HOME is an absolute path",
    )?;
    let address = address.trim_start_matches("postgres://");
    let name: String = byte_serialize(address.as_bytes()).collect();
    if name.len() > MAX_NAME {
        return Err(
            "state.journal: must be set, because the address of the database is too long for the name of a folder"
                .to_owned(),
        );
    }
    Ok(folder.join("journal").join(name))
}

/// The longest name of a file.
const MAX_NAME: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn folder(variables: &[(&str, &str)]) -> Result<PathBuf, String> {
        of_database("postgres://db.example:6000/usage", |name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn folder_is_in_the_state_directory_of_the_service_or_user() {
        let service = [
            ("STATE_DIRECTORY", "/var/lib/sluicegate:/var/lib/b"),
            ("HOME", "/root"),
        ];
        let expected = "/var/lib/sluicegate/journal/db.example%3A6000%2Fusage";
        assert_eq!(folder(&service), Ok(expected.into()));
        let user = [
            ("XDG_STATE_HOME", "/users/ada/state"),
            ("HOME", "/users/ada"),
        ];
        let expected = "/users/ada/state/sluicegate/journal/db.example%3A6000%2Fusage";
        assert_eq!(folder(&user), Ok(expected.into()));
        let home = [("XDG_STATE_HOME", "state"), ("HOME", "/users/ada")];
        let expected = "/users/ada/.local/state/sluicegate/journal/db.example%3A6000%2Fusage";
        assert_eq!(folder(&home), Ok(expected.into()));
    }

    #[test]
    fn without_such_a_folder_the_setting_is_needed() {
        for variables in [&[][..], &[("HOME", "")]] {
            let error = folder(variables).unwrap_err();
            assert!(
                error.starts_with("state.journal: must be a folder"),
                "{error}"
            );
        }
        let hosts = ["host"; 60].join(",");
        let error = of_database(&hosts, |_| Some("/var".into())).unwrap_err();
        assert!(
            error.starts_with("state.journal: must be set, because"),
            "{error}"
        );
    }
}
