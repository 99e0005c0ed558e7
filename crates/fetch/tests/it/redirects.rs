//! Redirects.

use sluicegate_fetch::FetchError;

use crate::world::{Reply, World, png, redirect, response};

/// Returns a network whose host redirects `/1` to `/2` and so on, `steps` times, to an image.
fn chain(steps: usize) -> World {
    let world = World::new();
    for step in 1..=steps {
        world.reply(
            &format!("ok.example/{step}"),
            redirect(302, &format!("/{}", step + 1)),
        );
    }
    world.reply(
        &format!("ok.example/{}", steps + 1),
        Reply::Bytes(response("200 OK", &[], &png(1, 1))),
    );
    world
}

/// Fetches a URL that redirects to `location`.
async fn redirected(location: &str) -> (Result<(), FetchError>, World) {
    let world = World::new();
    world.reply("ok.example/a/b", redirect(302, location));
    for url in ["ok.example/a/c", "ok.example/c", "other.ok.example/"] {
        world.reply(url, Reply::Bytes(response("200 OK", &[], &png(1, 1))));
    }
    (
        world.fetch("https://ok.example/a/b").await.map(|_| ()),
        world,
    )
}

/// Three redirects are followed, and a fourth fails.
#[tokio::test]
async fn f05_three_are_followed_and_a_fourth_is_not() {
    assert!(chain(3).fetch("https://ok.example/1").await.is_ok());
    let world = chain(4);
    assert_eq!(
        world.fetch("https://ok.example/1").await,
        Err(FetchError::Redirect("too many redirects"))
    );
    assert_eq!(world.take_requests().len(), 4);
}

/// A redirect loop ends.
#[tokio::test]
async fn f05_a_loop_ends() {
    let world = World::new();
    world.reply("ok.example/", redirect(301, "https://ok.example/"));
    assert_eq!(
        world.fetch("https://ok.example/").await,
        Err(FetchError::Redirect("too many redirects"))
    );
    assert_eq!(
        world.take_dialed().len(),
        4,
        "each redirect uses a new connection"
    );
}

#[tokio::test]
async fn every_kind_is_followed() {
    for status in [301, 302, 303, 307, 308] {
        let world = World::new();
        world.reply("ok.example/", redirect(status, "/b"));
        world.reply(
            "ok.example/b",
            Reply::Bytes(response("200 OK", &[], &png(1, 1))),
        );
        assert!(world.fetch("https://ok.example/").await.is_ok(), "{status}");
    }
}

/// Relative redirects are followed.
#[tokio::test]
async fn f05_relative_ones_are_followed() {
    for location in [
        "c",
        "/c",
        "../c",
        "//other.ok.example",
        "https://other.ok.example:443/",
    ] {
        let (result, _) = redirected(location).await;
        assert_eq!(result, Ok(()), "{location}");
    }
}

/// A redirected request has the same headers as the first one.
#[tokio::test]
async fn f05_no_step_sends_more_than_the_first() {
    let (result, world) = redirected("https://other.ok.example/").await;
    assert_eq!(result, Ok(()));
    let [first, second] = &world.take_requests()[..] else {
        panic!("two requests")
    };
    let second = second
        .replace("host: other.ok.example", "host: ok.example")
        .replace("GET / ", "GET /a/b ");
    assert_eq!(*first, second);
}

/// A redirect to a URL that is not allowed is rejected.
#[tokio::test]
async fn f05_redirect_to_a_forbidden_url_is_rejected() {
    let long = format!("/{}", "a".repeat(9 << 10));
    for location in [
        "http://ok.example/",
        "//ok.example:8443/",
        "https://a@ok.example/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://localhost/",
        "https://metadata.google.internal/",
        "file:///etc/passwd",
        "data:image/png;base64,AAAA",
        "/c#d",
        "/\\other.ok.example/",
        &long,
    ] {
        let (result, world) = redirected(location).await;
        assert_eq!(
            result,
            Err(FetchError::Redirect("its URL is not allowed")),
            "{location}"
        );
        assert_eq!(world.take_dialed().len(), 1, "{location}");
    }
}

/// A redirect to a name with a private address is rejected.
#[tokio::test]
async fn f05_a_name_with_a_refused_address_is_not_followed() {
    let world = World::new();
    world.reply("ok.example/", redirect(302, "https://inside.ok.example/"));
    world.name(
        "inside.ok.example",
        &[&["192.168.0.1:443".parse().unwrap()]],
    );
    assert_eq!(
        world
            .fetch("https://ok.example/")
            .await
            .unwrap_err()
            .reason(),
        "address"
    );
    assert_eq!(world.take_dialed().len(), 1);
}

/// A redirect with a missing, repeated, invalid or oversized Location is rejected.
#[tokio::test]
async fn f05_there_is_one_location_of_a_sane_size() {
    for (head, reason) in [
        ("", "redirect"),
        ("Location: /c\r\nLocation: /c\r\n", "redirect"),
        ("Location: \u{fffd}\r\n", "status"),
        (
            &format!("Location: /{}\r\n", "a".repeat(200 << 10)),
            "unreachable",
        ),
    ] {
        let world = World::new();
        let reply = format!("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n{head}\r\n");
        world.reply("ok.example/", Reply::Bytes(reply.into_bytes()));
        assert_eq!(
            world
                .fetch("https://ok.example/")
                .await
                .unwrap_err()
                .reason(),
            reason
        );
    }
}
