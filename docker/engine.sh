#!/usr/bin/env bash
# Makes sure that a container engine answers: on Debian as root it installs and starts one, elsewhere it says what to do.
set -euo pipefail

answers() { docker info > /dev/null 2>&1; }

if answers; then
  exit 0
fi
if [ -n "${DOCKER_HOST:-}" ]; then
  echo "no container engine answers at DOCKER_HOST=$DOCKER_HOST: start it, or unset the variable" >&2
  exit 1
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
  echo "no container engine answers: start Docker (or set DOCKER_HOST); live tests are skipped without it" >&2
  exit 1
fi
if ! command -v dockerd > /dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends docker.io iptables > /dev/null
fi
log="${TMPDIR:-/tmp}/arecall-dockerd.log"
setsid nohup dockerd > "$log" 2>&1 < /dev/null &
for _ in $(seq 120); do
  if answers; then
    exit 0
  fi
  sleep 0.5
done
echo "dockerd does not answer; its log is $log:" >&2
tail -n 20 "$log" >&2
exit 1
