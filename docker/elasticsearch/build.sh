#!/usr/bin/env bash
# Builds an Elasticsearch image from what Elastic publishes on Maven Central, for machines that can pull no image. Security
# (authentication, roles, document- and field-level security) is Elastic's, unchanged; docs/images.md says what lacks.
# Needs Maven, a JDK 25 and a container engine on Linux.
here="$(cd "$(dirname "$0")" && pwd)"
source "$here/../java/base.sh"
need mvn=maven docker=docker.io flock=util-linux
jdk="$(find_jdk)"
version="$ELASTICSEARCH_VERSION"

home=/usr/share/elasticsearch
server="$built/server$home"
state="$built/state"
mkdir -p "$server"/{bin,lib,modules,plugins} "$state"/{config,data,logs}

# Every module has a class loader of its own, whose parents are those of the server and of what it extends. A jar that is
# in two of one chain is refused at the start.
parents=()
for part in server transport-netty4 x-pack-core x-pack-security stand-ins; do
  maven --file "$here/pom.xml" -Dversion.elasticsearch="$version" --activate-profiles "$part" \
    dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$built/jars/$part"
  case "$part" in
    server) into="$server/lib" parents=("$server/lib") ;;
    x-pack-security) into="$server/modules/$part" parents=("$server/lib" "$server/modules/x-pack-core") ;;
    *) into="$server/modules/$part" parents=("$server/lib") ;;
  esac
  mkdir -p "$into"
  for jar in "$built/jars/$part"/*.jar; do
    for parent in "${parents[@]}"; do
      if [ "$parent" != "$into" ] && [ -e "$parent/${jar##*/}" ]; then
        continue 2
      fi
    done
    cp "$jar" "$into/"
  done
done
for module in transport-netty4 x-pack-core x-pack-security; do
  # Published jars carry the descriptor of their module. Without its Java module name it is loaded from a class path, as
  # Elastic publishes no module descriptors for what it needs.
  descriptor="META-INF/es-plugins/$module/plugin-descriptor.properties"
  (cd "$built" && "$jdk/bin/jar" --extract --file "$server/modules/$module/$module-$version.jar" "$descriptor")
  sed '/^modulename=/d' "$built/$descriptor" > "$server/modules/$module/plugin-descriptor.properties"
done

"$jdk/bin/javac" -nowarn --release 21 -cp "$server/lib/*" -d "$built/launcher" "$here"/launcher/*.java
"$jdk/bin/jar" --create --file "$server/lib/arecall-launcher.jar" -C "$built/launcher" .
"$jdk/bin/javac" -nowarn --release 21 -cp "$server/lib/*:$server/modules/stand-ins/*" -d "$built/standins" "$here"/standins/*.java
"$jdk/bin/jar" --create --file "$server/modules/stand-ins/stand-ins.jar" -C "$built/standins" .
cat > "$server/modules/stand-ins/plugin-descriptor.properties" << END
name=stand-ins
description=Small stand-ins for modules that are not published: lang-mustache, analysis-common, rest-root
version=$version
elasticsearch.version=$version
java.version=21
classname=arecall.standins.StandIns
END

java_root "$built/java" elasticsearch "$home"
# The server compresses by the C library of zstd, which Elastic ships in an archive that it does not publish.
zstd="$(ldconfig -p | sed -n 's|.*libzstd\.so\.1 .*=> ||p' | head -n 1)"
[ -n "$zstd" ] || fail "to build this image, install libzstd (on Debian: apt-get install libzstd1)"
mkdir "$server/lib/native"
cp --dereference "$zstd" "$server/lib/native/libzstd.so"
install -m 755 "$here/start" "$server/bin/start"
cp "$here"/{elasticsearch.yml,jvm.options,log4j2.properties} "$state/config/"

docker build --quiet --tag "${1:-$ELASTICSEARCH_IMAGE:$version}" --file "$here/Dockerfile" "$built"
