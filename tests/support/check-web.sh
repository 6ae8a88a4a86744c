#!/bin/bash
# check-web.sh BUILD: reports against a database, a browser and their schema; ends with "N passed, N failed, N skipped".
# The libraries come from the package registry, the browser and Prometheus's parser from Debian.
set -u
export XLOG_BUILD=$(cd "$1" && pwd) XLOG_ROOT=$PWD
skip() { echo "web: skipped: $*"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
find_browser() { command -v chromium || command -v chromium-browser || command -v google-chrome; }
command -v node >/dev/null && command -v npm >/dev/null || skip "no npm"
missing=
find_browser >/dev/null || missing+=" chromium"
/usr/bin/python3 -c "import prometheus_client" 2>/dev/null || missing+=" python3-prometheus-client"
if [ -n "$missing" ] && command -v apt-get >/dev/null; then
  if [ "$(id -u)" = 0 ]; then as=; else as="sudo -n"; fi
  echo "web: installing$missing" >&2
  { $as apt-get -qq update && DEBIAN_FRONTEND=noninteractive $as apt-get -qq install -y --no-install-recommends $missing; } >/dev/null 2>&1
fi
XLOG_CHROMIUM=$(find_browser) || skip "no chromium"
export XLOG_CHROMIUM
web=$XLOG_BUILD/tests-web
if ! cmp -s tests/web/package-lock.json "$web/package-lock.json"; then
  rm -rf "$web" && mkdir -p "$web" && cp tests/web/package*.json "$web/"
  (cd "$web" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >"$XLOG_BUILD/web-npm.log" 2>&1 || { rm -rf "$web"; skip "the libraries could not be fetched"; }
fi
cp tests/web/* "$web/"
log=$XLOG_BUILD/web.log
(cd "$web" && timeout 600 node --test --test-reporter=tap) > "$log" 2>&1
passed=$(sed -nE 's/^# pass ([0-9]+)/\1/p' "$log"); failed=$(sed -nE 's/^# (fail|cancelled) ([0-9]+)/\2/p' "$log" | paste -sd+); failed=$((${failed:-1}))
[ "${failed:-1}" = 0 ] || grep -vE 'duration_ms|^ *---|^ *\.\.\.' "$log" | grep -A12 'not ok' | head -80
echo "${passed:-0} passed, ${failed:-1} failed, 0 skipped"
