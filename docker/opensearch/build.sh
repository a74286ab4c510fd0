#!/usr/bin/env bash
# Builds an OpenSearch image with the plugins for security and k-NN from what the project publishes on Maven Central, for
# machines that can pull no image. Server and plugins are the project's, unchanged; docs/images.md says what lacks.
# Needs Maven, a JDK 25 and a container engine on Linux.
here="$(cd "$(dirname "$0")" && pwd)"
source "$here/../java/base.sh"
need mvn=maven docker=docker.io flock=util-linux openssl
jdk="$(find_jdk)"
version="$OPENSEARCH_VERSION"

home=/usr/share/opensearch
server="$built/server$home"
state="$built/state"
mkdir -p "${server%/*}" "$state"/{data,logs}

maven --file "$here/pom.xml" -Dversion.opensearch="$version" -Dinto="$built/unpacked" generate-resources
mv "$built/unpacked/opensearch-$version" "$server"
for module in lang-painless reindex; do
  mkdir "$server/modules/$module"
  maven --file "$here/pom.xml" -Dversion.opensearch="$version" --activate-profiles "$module" \
    dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$built/jars/$module"
  for jar in "$built/jars/$module"/*.jar; do
    # A jar that the server has too is refused at the start.
    [ -e "$server/lib/${jar##*/}" ] || cp "$jar" "$server/modules/$module/"
  done
done

# Modules are published without the descriptor that a distribution adds.
describe() {
  cat > "$server/modules/$1/plugin-descriptor.properties" << END
name=$1
description=$1
version=$version
opensearch.version=$version
java.version=21
classname=$2
extended.plugins=${3:-}
has.native.controller=false
END
}
describe analysis-common org.opensearch.analysis.common.CommonAnalysisModulePlugin lang-painless
describe lang-painless org.opensearch.painless.PainlessModulePlugin
describe mapper-extras org.opensearch.index.mapper.MapperExtrasModulePlugin
describe parent-join org.opensearch.join.ParentJoinModulePlugin
describe reindex org.opensearch.index.reindex.ReindexModulePlugin

# The security plugin offers an extension to the module rule-framework, which is not published: its descriptor must not
# insist on it, as it does not on workload-management.
security="$server/plugins/opensearch-security"
sed -i 's/^\(extended\.plugins=.*rule-framework\)$/\1;optional=true/' "$security/plugin-descriptor.properties"
grep -q '^extended\.plugins=.*rule-framework;optional=true' "$security/plugin-descriptor.properties" \
  || fail "the security plugin of OpenSearch $version depends on other modules than this script knows of"

mv "$server/config" "$state/config"
mv "$security/config" "$state/config/opensearch-security"
rm -rf "$security/tools" "$server"/{bin,data,logs,lib/tools} "$state/config/jvm.options"
cp "$here"/{jvm.options,log4j2.properties,opensearch.yml} "$state/config/"
install -D -m 755 "$here/start" "$server/bin/start"
# Security insists on TLS between nodes. This node has no other, and nobody else trusts what it shows.
openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /O=arecall/CN=node -addext subjectAltName=DNS:localhost \
  -addext extendedKeyUsage=serverAuth,clientAuth -keyout "$state/config/node.key" -out "$state/config/node.pem" 2> /dev/null
find "$built/server" "$state" -type d -exec chmod 755 {} +
find "$built/server" "$state" -type f -not -path '*/bin/*' -exec chmod 644 {} +
chmod -R go= "$state/config"

java_root "$built/java" opensearch "$home"

docker build --quiet --tag "${1:-$OPENSEARCH_IMAGE:$version}" --file "$here/Dockerfile" "$built"
