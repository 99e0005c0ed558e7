#!/bin/sh
# Packs the programs of `cargo xtask dist` for a release: an archive, a Debian package, the list of the crates in them
# (CycloneDX), and checksums of these. The same programs at the same commit give the same files. It needs cargo-cyclonedx, and
# on macOS the tar of GNU as `gtar`. From the root of the repository:
#
#   crates/server/packaging/pack.sh NAME FOLDER
set -eu

name=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
sources=crates/server/packaging
programs=${CARGO_TARGET_DIR:-target}/dist
program=$programs/sluicegate
contents=$folder/$name
# The time of the files in the packages; dpkg-deb and cargo-cyclonedx read it, too.
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}"
rm -rf "$contents"
mkdir -p "$contents/completions"

"$program" manual "$contents/man"
gzip -9 -n "$contents"/man/*
"$program" config init > "$contents/sluicegate.toml"
for shell in bash zsh fish; do
  "$program" completions "$shell" > "$contents/completions/$shell"
done
cp "$program" "$programs/sluicegate-lean" LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md "$contents"
tar=$(command -v gtar || echo tar)
"$tar" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$folder" -cf - "$name" |
  gzip -9 -n > "$contents.tar.gz"

if command -v dpkg-deb > /dev/null; then
  root=$folder/deb
  rm -rf "$root"
  share=$root/usr/share
  install -D "$program" "$root/usr/bin/sluicegate"
  install -D -m 644 -t "$share/man/man1" "$contents"/man/*
  install -D -m 644 "$contents/completions/bash" "$share/bash-completion/completions/sluicegate"
  install -D -m 644 "$contents/completions/fish" "$share/fish/vendor_completions.d/sluicegate.fish"
  install -D -m 644 "$contents/completions/zsh" "$share/zsh/vendor-completions/_sluicegate"
  install -D -m 644 LICENSE-MIT "$share/doc/sluicegate/copyright"
  echo "
Or the Apache License, Version 2.0, at your option: /usr/share/common-licenses/Apache-2.0" >> "$share/doc/sluicegate/copyright"
  install -d -m 750 "$root/etc/sluicegate"
  install -m 640 "$contents/sluicegate.toml" "$root/etc/sluicegate"
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

cargo cyclonedx --format json --spec-version 1.5 --override-filename "$name.cdx"
mv "crates/server/$name.cdx.json" "$folder"
# It writes a list for every crate of the workspace.
find crates fuzz tests xtask -name "$name.cdx.json" -delete
cd "$folder"
find . -type f ! -name '*.sha256' | LC_ALL=C sort | xargs shasum -a 256 > "$name.sha256"
