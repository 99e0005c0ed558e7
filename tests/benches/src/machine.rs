//! The kind of machine that figures are from.

use std::collections::HashSet;
use std::fs;

/// Describes this machine: model and number of its cores, kernel, and whether it is virtual.
pub(crate) fn kind() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let siblings = (0..)
        .map(|core| {
            fs::read_to_string(format!(
                "/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"
            ))
        })
        .map_while(Result::ok)
        .collect::<Vec<_>>();
    describe(
        &read("/proc/cpuinfo"),
        &siblings,
        read("/proc/sys/kernel/osrelease").trim(),
    )
}

fn describe(cpuinfo: &str, siblings: &[String], kernel: &str) -> String {
    let value = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim())
    };
    let model = value("model name").unwrap_or("an unknown processor");
    let threads = cpuinfo
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let cores = siblings.iter().collect::<HashSet<_>>().len();
    let place = match value("flags").is_some_and(|flags| flags.contains(" hypervisor")) {
        true => "a virtual machine",
        false => "no virtual machine",
    };
    let shared = match cores != 0 && cores < threads {
        true => format!(" on {cores} physical"),
        false => String::new(),
    };
    format!("{threads} cores{shared} of {model}, Linux {kernel}, {place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_described_in_a_line() {
        let core = |number| {
            format!("processor\t: {number}\nmodel name\t: A B 7\nflags\t\t: fpu hypervisor sse\n\n")
        };
        let cpuinfo = core(0) + &core(1);
        let own = ["0\n".to_owned(), "1\n".to_owned()];
        assert_eq!(
            describe(&cpuinfo, &own, "6.1"),
            "2 cores of A B 7, Linux 6.1, a virtual machine"
        );
        let shared = ["0-1\n".to_owned(), "0-1\n".to_owned()];
        assert_eq!(
            describe(&cpuinfo.replace("hypervisor ", ""), &shared, "6.1"),
            "2 cores on 1 physical of A B 7, Linux 6.1, no virtual machine"
        );
    }
}
