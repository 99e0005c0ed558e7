//! The addresses of a configuration: whether a process can listen on all of them.

use std::net::SocketAddr;

use crate::error::ConfigError;
use crate::file::Config;

impl Config {
    /// Checks that its addresses, which may come from the command line, can be listened on at the same
    /// time.
    ///
    /// # Errors
    /// Returns a problem for each address that an earlier one excludes.
    pub fn check_addresses(&self) -> Result<(), ConfigError> {
        let clients = self.listen.iter().enumerate();
        let clients = clients.map(|(index, address)| (format!("listen[{index}]"), address));
        let admin = self
            .admin
            .iter()
            .map(|address| ("admin".to_owned(), address));
        let all: Vec<_> = clients.chain(admin).collect();
        let problems = all
            .iter()
            .enumerate()
            .filter_map(|(number, (name, address))| {
                let earlier = all.iter().take(number);
                let (other_name, other) = earlier
                    .into_iter()
                    .find(|(_, other)| exclude(address, other))?;
                Some(format!(
                    "{name}: is {address}, but {other_name} is {other}: choose another port"
                ))
            });
        let problems: Vec<_> = problems.collect();
        match problems.is_empty() {
            true => Ok(()),
            false => Err(ConfigError::new(problems)),
        }
    }
}

/// Returns true if a process cannot listen on both addresses. The system chooses a free port for port 0.
/// Whether `[::]` excludes addresses of IPv4 depends on a setting of the system.
fn exclude(one: &SocketAddr, other: &SocketAddr) -> bool {
    let is_for_all = one.ip().is_unspecified() || other.ip().is_unspecified();
    let is_same_port = one.port() == other.port() && one.port() != 0;
    is_same_port && (one == other || is_for_all && one.is_ipv4() == other.is_ipv4())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(listen: &[&str], admin: Option<&str>) -> String {
        let config = Config {
            listen: listen.iter().map(|text| text.parse().unwrap()).collect(),
            admin: admin.map(|text| text.parse().unwrap()),
            ..Config::default()
        };
        let checked = config.check_addresses();
        checked.map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn addresses_that_exclude_each_other_are_refused() {
        let same = "127.0.0.1:8080";
        assert_eq!(
            problems(&[same, "127.0.0.1:8081", same], None),
            "listen[2]: is 127.0.0.1:8080, but listen[0] is 127.0.0.1:8080: choose another port"
        );
        assert_eq!(
            problems(&["0.0.0.0:8080"], Some(same)),
            "admin: is 127.0.0.1:8080, but listen[0] is 0.0.0.0:8080: choose another port"
        );
        assert_eq!(
            problems(&["[::1]:8080", "[::]:8080"], None),
            "listen[1]: is [::]:8080, but listen[0] is [::1]:8080: choose another port"
        );
    }

    #[test]
    fn other_addresses_are_accepted() {
        let any = "127.0.0.1:0";
        assert_eq!(problems(&[any, any], Some(any)), "");
        assert_eq!(problems(&["127.0.0.1:8080", "127.0.0.2:8080"], None), "");
        assert_eq!(problems(&["[::]:8080", "0.0.0.0:8080"], None), "");
        assert_eq!(problems(&["127.0.0.1:8080"], Some("127.0.0.1:9090")), "");
    }
}
