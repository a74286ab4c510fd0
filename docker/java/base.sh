#!/usr/bin/env bash
# What the images that run on Java have in common; their build.sh sources it. Nothing is written outside of "$built",
# but for Maven's own cache.
#
# An image holds a Java runtime cut from the JDK of this machine, the C library that this JDK runs on, and busybox for a
# shell and for health checks: nothing of it comes from an image, as none can be pulled where images are built.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../.env"

built="$(mktemp -d)"
trap 'rm -rf "$built"' EXIT

fail() {
  echo "$*" >&2
  exit 1
}

# need COMMAND[=PACKAGE]...: all of them are here, or the error names what to install.
need() {
  local wanted missing=()
  for wanted in "$@"; do
    command -v "${wanted%=*}" > /dev/null || missing+=("${wanted#*=}")
  done
  [ ${#missing[@]} = 0 ] || fail "to build this image, install what is missing: ${missing[*]} (on Debian: apt-get install)"
}

# The official images bundle Java 25; other versions take other options and give other warnings.
find_jdk() {
  local home
  for home in "${JDK25_HOME:-}" "${JAVA_HOME:-}" /usr/lib/jvm/*25*; do
    if [ -n "$home" ] && [ -x "$home/bin/jlink" ] && grep -q '^JAVA_VERSION="25' "$home/release"; then
      echo "$home"
      return
    fi
  done
  fail "to build this image, install a JDK 25 (such as temurin-25-jdk or openjdk-25-jdk), or name one by JDK25_HOME"
}

# Maven's cache takes one writer at a time, and images may be built side by side.
maven() {
  mkdir -p "$HOME/.m2"
  # Maven's own libraries do what Java 25 warns of.
  JAVA_HOME="$jdk" MAVEN_OPTS="--sun-misc-unsafe-memory-access=allow ${MAVEN_OPTS:-}" \
    flock "$HOME/.m2/arecall.lock" mvn --batch-mode --no-transfer-progress --quiet -Dstyle.color=never "$@"
}

# java_root DIRECTORY USER HOME: what lies under / beside the server itself.
java_root() {
  local root="$1" user="$2" home="$3" library applet
  mkdir -p "$root"/{bin,etc,tmp}
  chmod 1777 "$root/tmp"

  # Thai: an analyzer of OpenSearch that needs its word boundaries is set up with every index.
  "$jdk/bin/jlink" --output "$root/jre" --strip-debug --no-header-files --no-man-pages --generate-cds-archive \
    --include-locales en,th --add-modules "$(paste -sd, - << 'END'
java.se
jdk.charsets
jdk.crypto.cryptoki
jdk.crypto.ec
jdk.incubator.vector
jdk.localedata
jdk.management
jdk.naming.dns
jdk.net
jdk.nio.mapmode
jdk.security.auth
jdk.security.jgss
jdk.unsupported
jdk.xml.dom
jdk.zipfs
END
    )"

  # Each library goes where the loader of this machine looks for it. The ones beside the C library are opened by name while
  # a server runs (the resolver, and old names that native code still asks for), so no linker tells of them.
  local runtime=("$root/jre/bin/java" "$root"/jre/lib/{libjli,libnet,libnio,libzip,server/libjvm}.so) c_library
  c_library="$(ldd "$root/jre/bin/java" | sed -n 's|.*=> \(/.*/libc\.so\.6\) .*|\1|p')"
  {
    ldd "${runtime[@]}" | grep -o '/[^ ]*\.so[^ ]*' | grep -v "^$root"
    ls "${c_library%/*}"/lib{dl,pthread,resolv,rt,nss_dns,nss_files}.so.? || true
  } 2> /dev/null | sort -u | while read -r library; do
    cp --dereference --parents "$library" "$root"
  done

  busybox_into "$root/bin"
  for applet in sh base64 cat env grep head ls ps sed sleep tail tr wget; do
    ln -s busybox "$root/bin/$applet"
  done
  install -m 755 "$(dirname "${BASH_SOURCE[0]}")/with-settings" "$root/bin/with-settings"
  echo "$user:x:1000:1000::$home:/bin/sh" > "$root/etc/passwd"
  echo "$user:x:1000:" > "$root/etc/group"
  echo "hosts: files dns" > "$root/etc/nsswitch.conf"
}

busybox_into() {
  local here
  # A busybox that is linked dynamically would need more libraries than Java does; ldd fails on the static one.
  if here="$(command -v busybox)" && ! ldd "$here" > /dev/null 2>&1; then
    cp --dereference "$here" "$1/busybox"
    return
  fi
  need apt-get=busybox-static dpkg-deb=busybox-static
  mkdir "$built/busybox"
  (
    cd "$built/busybox"
    download() { apt-get -qq -o APT::Sandbox::User=root download busybox-static; }
    # A new machine has no list of packages yet.
    download 2> /dev/null || { apt-get -qq update && download; }
    dpkg-deb --extract ./*.deb .
  )
  cp "$(find "$built/busybox" -path '*/bin/busybox' -type f)" "$1/busybox"
}
