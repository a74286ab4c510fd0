#!/usr/bin/env bash
# Builds the OpenFGA image from its Go module, for machines that can pull no image. Needs Go and a container engine.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
source "$here/../.env"

command -v go > /dev/null || {
  echo "go is needed to build $OPENFGA_IMAGE:$OPENFGA_VERSION: install Go, or pull the image elsewhere and load it" >&2
  exit 1
}

built="$(mktemp -d)"
trap 'rm -rf "$built"' EXIT
# GOFLAGS of the caller could change what is built; the version is what the server tells of itself.
export GOFLAGS= CGO_ENABLED=0 GOBIN="$built"
go install -trimpath -ldflags "-s -w -X $OPENFGA_MODULE/internal/build.Version=$OPENFGA_VERSION" \
  "$OPENFGA_MODULE/cmd/openfga@$OPENFGA_VERSION"
go install -trimpath -ldflags "-s -w" "$OPENFGA_HEALTH_PROBE_MODULE@$OPENFGA_HEALTH_PROBE_VERSION"
mv "$built/grpc-health-probe" "$built/grpc_health_probe"
docker build --quiet --tag "${1:-$OPENFGA_IMAGE:$OPENFGA_VERSION}" --file "$here/Dockerfile" "$built"
