#!/bin/sh
# Packs the programs of `cargo xtask dist` for a release: an archive, a Debian package, the list of the crates in them
# (CycloneDX), and checksums of these. It needs cargo-cyclonedx. From the root of the repository:
#
#   crates/server/packaging/pack.sh NAME FOLDER
set -eu

name=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
sources=crates/server/packaging
program=target/dist/sluicegate
contents=$folder/$name
rm -rf "$contents"
mkdir -p "$contents/completions"

"$program" manual "$contents/man"
gzip -9 -n "$contents"/man/*
"$program" config init > "$contents/sluicegate.toml"
for shell in bash zsh fish; do
  "$program" completions "$shell" > "$contents/completions/$shell"
done
cp target/dist/sluicegate target/dist/sluicegate-lean LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md "$contents"
tar -czf "$contents.tar.gz" -C "$folder" "$name"

if command -v dpkg-deb > /dev/null; then
  root=$folder/deb
  rm -rf "$root"
  share=$root/usr/share
  install -D "$program" "$root/usr/bin/sluicegate"
  install -D -m 644 -t "$share/man/man1" "$contents"/man/*
  install -D -m 644 "$contents/completions/bash" "$share/bash-completion/completions/sluicegate"
  install -D -m 644 "$contents/completions/fish" "$share/fish/vendor_completions.d/sluicegate.fish"
  install -D -m 644 "$contents/completions/zsh" "$share/zsh/vendor-completions/_sluicegate"
  install -D -m 644 -t "$share/doc/sluicegate" LICENSE-MIT LICENSE-APACHE
  install -D -m 640 "$contents/sluicegate.toml" "$root/etc/sluicegate/sluicegate.toml"
  install -d -m 700 "$root/etc/sluicegate/credentials"
  install -D -m 644 "$sources/systemd/sluicegate.service" "$root/lib/systemd/system/sluicegate.service"
  install -D -m 644 "$sources/systemd/sluicegate.sysusers" "$root/usr/lib/sysusers.d/sluicegate.conf"
  install -D -t "$root/DEBIAN" "$sources/debian/postinst" "$sources/debian/prerm"
  install -m 644 "$sources/debian/conffiles" "$root/DEBIAN"
  version=$("$program" -V | cut -d ' ' -f 2)
  sed "s/VERSION/$version/; s/ARCHITECTURE/$(dpkg --print-architecture)/" "$sources/debian/control" > "$root/DEBIAN/control"
  dpkg-deb --root-owner-group --build "$root" "$folder"
  rm -r "$root"
fi
rm -r "$contents"

cargo cyclonedx --manifest-path crates/server/Cargo.toml --format json --override-filename "$name.cdx"
mv "crates/server/$name.cdx.json" "$folder"
cd "$folder"
find . -type f ! -name '*.sha256' -exec shasum -a 256 {} + > "$name.sha256"
