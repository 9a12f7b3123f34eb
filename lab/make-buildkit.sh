#!/usr/bin/env bash
# The image moby/buildkit:lab for the engine of DOCKER_HOST: buildkitd, buildctl, and what they start. One that is there is left alone.
#   make-buildkit.sh [--keep FOLDER]      (sources, compiler and compiled parts stay in FOLDER, and are used from there the next time)
# Root on Debian compiles it, without any image registry: Debian has the whole of BuildKit among the sources for its
# Docker package, and each Go library that it needs. They are unpacked, not installed. Elsewhere it is pulled.
set -euo pipefail

image=${BUILDKIT_IMAGE:-moby/buildkit:lab}
public=moby/buildkit:v0.25.2
version=v0.25.2+lab          # what the package below was made from; its Go code does not say it
suite=${BUILDKIT_SUITE:-forky}

keep=
case ${1:-} in
  '') ;;
  --keep) keep=${2:?--keep FOLDER} ;;
  *) echo "make-buildkit.sh: no such option: $1 (--keep FOLDER)" >&2; exit 2 ;;
esac

if docker image inspect "$image" >/dev/null 2>&1; then echo "$image: there"; exit; fi

if [ "$(id -u)" != 0 ] || ! command -v dpkg-deb >/dev/null || ! apt-cache show busybox >/dev/null 2>&1; then
  docker pull -q "$public" >/dev/null
  docker tag "$public" "$image"
  echo "$image: pulled as $public"
  exit
fi

if [ -n "$keep" ]; then
  mkdir -p "$keep"
  work=$(readlink -f "$keep")
else
  work=$(mktemp -d "${TMPDIR:-/tmp}/busbar-buildkit.XXXXXX")
  trap 'rm -rf "$work"' EXIT
fi

begin=$SECONDS
part=$SECONDS
took() { echo "$image: $* ($((SECONDS - part)) s)"; part=$SECONDS; }

# only what the two programs import: the dependencies that these packages declare are five times as many
libraries=(
  golang-github-agext-levenshtein-dev golang-github-anchore-go-struct-converter-dev golang-github-appc-cni-dev
  golang-github-armon-circbuf-dev golang-github-beorn7-perks-dev golang-github-cenkalti-backoff-v5-dev
  golang-github-cespare-xxhash-v2-dev golang-github-containerd-accelerated-container-image-dev
  golang-github-containerd-console-dev golang-github-containerd-containerd-api-dev
  golang-github-containerd-containerd-dev golang-github-containerd-continuity-dev golang-github-containerd-errdefs-dev
  golang-github-containerd-go-cni-dev golang-github-containerd-go-runc-dev golang-github-containerd-log-dev
  golang-github-containerd-platforms-dev golang-github-containerd-stargz-snapshotter-dev
  golang-github-containerd-ttrpc-dev golang-github-containerd-typeurl-dev golang-github-containernetworking-plugins-dev
  golang-github-coreos-bbolt-dev golang-github-coreos-go-systemd-dev golang-github-cpuguy83-go-md2man-v2-dev
  golang-github-cyphar-filepath-securejoin-dev golang-github-distribution-reference-dev
  golang-github-docker-docker-credential-helpers-dev golang-github-docker-docker-dev golang-github-docker-go-units-dev
  golang-github-felixge-fgprof-dev golang-github-felixge-httpsnoop-dev golang-github-fsnotify-fsnotify-dev
  golang-github-go-logr-logr-dev golang-github-go-logr-stdr-dev golang-github-gofrs-flock-dev
  golang-github-gogo-protobuf-dev golang-github-golang-protobuf-1-5-dev golang-github-google-go-cmp-dev
  golang-github-google-pprof-dev golang-github-google-shlex-dev golang-github-google-uuid-dev
  golang-github-grpc-ecosystem-grpc-gateway-dev golang-github-hashicorp-go-cleanhttp-dev
  golang-github-hashicorp-go-immutable-radix-v2-dev golang-github-hashicorp-golang-lru-v2-dev
  golang-github-in-toto-attestation-dev golang-github-in-toto-in-toto-golang-dev golang-github-klauspost-compress-dev
  golang-github-mitchellh-hashstructure-dev golang-github-moby-docker-image-spec-dev golang-github-moby-go-archive-dev
  golang-github-moby-locker-dev golang-github-moby-patternmatcher-dev golang-github-moby-sys-dev
  golang-github-morikuni-aec-dev golang-github-munnerz-goautoneg-dev golang-github-opencontainers-go-digest-dev
  golang-github-opencontainers-image-spec-dev golang-github-opencontainers-runtime-tools-dev
  golang-github-opencontainers-selinux-dev golang-github-opencontainers-specs-dev
  golang-github-package-url-packageurl-go-dev golang-github-pelletier-go-toml-dev golang-github-pkg-errors-dev
  golang-github-pkg-profile-dev golang-github-planetscale-vtprotobuf-dev golang-github-prometheus-client-golang-dev
  golang-github-prometheus-client-model-dev golang-github-prometheus-common-dev
  golang-github-prometheus-otlptranslator-dev golang-github-prometheus-procfs-dev
  golang-github-russross-blackfriday-v2-dev golang-github-secure-systems-lab-go-securesystemslib-dev
  golang-github-shibumi-go-pathspec-dev golang-github-sirupsen-logrus-dev golang-github-spdx-tools-golang-dev
  golang-github-tonistiigi-dchapes-mode-dev golang-github-tonistiigi-fsutil-dev
  golang-github-tonistiigi-go-archvariant-dev golang-github-tonistiigi-units-dev golang-github-tonistiigi-vt100-dev
  golang-github-urfave-cli-dev golang-github-vbatts-tar-split-dev golang-github-vishvananda-netlink-dev
  golang-github-vishvananda-netns-dev golang-gocapability-dev golang-golang-x-crypto-dev golang-golang-x-exp-dev
  golang-golang-x-mod-dev golang-golang-x-net-dev golang-golang-x-sync-dev golang-golang-x-sys-dev
  golang-golang-x-text-dev golang-golang-x-time-dev golang-google-genproto-dev golang-google-grpc-dev
  golang-google-protobuf-dev golang-gopkg-yaml.v2-dev golang-gopkg-yaml.v3-dev golang-k8s-sigs-yaml-dev
  golang-opentelemetry-contrib-dev golang-opentelemetry-otel-dev golang-opentelemetry-proto-dev
  golang-tags.cncf-container-device-interface-dev)

# The lists and packages of another suite, beside those of this machine and without a trace in them.
suite_apt() {
  local mirror
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 -E '/debian/?$')
  mkdir -p "$work"/apt/{etc/apt/preferences.d,state/lists/partial,cache/archives/partial} "$work/packages"
  touch "$work/apt/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" > "$work/apt/etc/apt/sources.list"
  cat > "$work/apt/apt.conf" <<EOF
Dir "$work/apt";
Dir::Etc "$work/apt/etc/apt";
Dir::Etc::parts "/etc/apt/apt.conf.d";
Dir::State "$work/apt/state";
Dir::State::status "$work/apt/status";
Dir::Cache "$work/apt/cache";
APT::Sandbox::User "root";
Acquire::Languages "none";
// signed lists of this suite are valid for a week, and a mirror may be older
Acquire::Check-Valid-Until "false";
EOF
  export APT_CONFIG=$work/apt/apt.conf
}

fetch_sources() {
  local go package
  (
    suite_apt
    apt-get update -qq
    go=$(apt-cache depends golang-go | grep -m 1 -oE 'golang-[0-9.]+-go')
    cd "$work/packages"
    apt-get download -qq "$go" "${go%-go}-src" "${libraries[@]}" >/dev/null
  )
  took "fetched $(find "$work/packages" -name '*.deb' | wc -l) packages, $(du -sm "$work/packages" | cut -f 1) MB"
  mkdir -p "$work/root"
  for package in "$work"/packages/*.deb; do dpkg-deb -x "$package" "$work/root"; done
  took unpacked
}

# What is left out needs libraries that Debian has not: caches of three clouds, two snapshotters, and the containerd worker.
strip_sources() {
  local source=$1 worker
  cp -a "$work/root/usr/share/gocode/src/github.com/moby/buildkit" "$source"
  cd "$source"
  rm -r cache/remotecache/{azblob,gha,s3} cmd/buildkitd/main_containerd_worker*.go
  sed -i -E '/remotecache\/(azblob|gha|s3)"/d; /^\t+"(gha|s3|azblob)": /d' cmd/buildkitd/main.go
  worker=cmd/buildkitd/main_oci_worker.go
  sed -i -E '
    /^\t[a-z]+ "github.com\/containerd\/(fuse-overlayfs-snapshotter\/v2|stargz-snapshotter\/.*)"$/d
    /^\tcase "fuse-overlayfs":/,/^\tdefault:/{/^\tdefault:/!d}
    s/if err2 := fuseoverlayfs.Supported\(commonRoot\); err2 == nil/if err2 := err; false/
    /^const \($/,$d
    /^\t"(fmt|path\/filepath|strings)"$/d
    /^\t"github.com\/(pelletier\/go-toml|sirupsen\/logrus|moby\/buildkit\/util\/resolver|containerd\/containerd\/v2\/pkg\/reference)"$/d
  ' "$worker"
  # Debian has these under the names of their first versions
  grep -rlE --include='*.go' 'coreos/go-systemd/v22|mitchellh/hashstructure/v2' . |
    xargs sed -i -E 's#(coreos/go-systemd)/v22#\1#; s#(mitchellh/hashstructure)/v2#\1#'
  # and the profile of Docker not at all: containerd's is kept equal to it
  sed -i -E 's#github.com/moby/profiles/seccomp#github.com/containerd/containerd/v2/contrib/seccomp#
    s#s.Linux.Seccomp, err = seccomp.GetDefaultProfile\(s\)#s.Linux.Seccomp = seccomp.DefaultProfile(s)#' executor/oci/spec_linux.go
}

compile() {
  local source=$work/go/src/github.com/moby/buildkit
  rm -rf "$source"
  mkdir -p "$(dirname "$source")" "$work/bin"
  (
    strip_sources "$source"
    GOROOT=$(echo "$work"/root/usr/lib/go-*)
    export GOROOT GOPATH=$work/go:$work/root/usr/share/gocode GOCACHE=$work/cache
    export GO111MODULE=off GOTOOLCHAIN=local GOFLAGS='' CGO_ENABLED=0
    # one call for both programs, which share most of what they import
    nice "$GOROOT/bin/go" build -trimpath -tags 'netgo osusergo' -ldflags "-s -w -X github.com/moby/buildkit/version.Version=$version" \
      -o "$work/bin/" ./cmd/buildctl ./cmd/buildkitd
  )
  took compiled
}

# copy_program ROOT FILE NAME: a program with the shared libraries that ldd names
copy_program() {
  local root=$1 file=$2 name=$3 library
  install -D "$(readlink -f "$file")" "$root/usr/bin/$name"
  for library in $(ldd "$file" | grep -oE '/[^ )]+'); do install -D "$(readlink -f "$library")" "$root$library"; done
}

# Names and places as in the official image, on the files of busybox:lab.
make_root() {
  local root=$1 container core plugin program missing=()
  command -v git >/dev/null || missing+=(git)
  command -v ssh >/dev/null || missing+=(openssh-client)
  command -v iptables >/dev/null || missing+=(iptables)
  [ ${#missing[@]} = 0 ] || apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  mkdir -p "$work/tools"
  (cd "$work/tools" && apt-get -o APT::Sandbox::User=root download -qq runc containernetworking-plugins >/dev/null &&
    for package in *.deb; do dpkg-deb -x "$package" .; done)

  "$(dirname "${BASH_SOURCE[0]}")/make-images.sh" busybox >/dev/null
  container=$(docker create busybox:lab)
  docker export "$container" | tar -C "$root" -x
  docker rm "$container" >/dev/null
  rm -f "$root/.dockerenv"

  install -m 755 "$work"/bin/{buildctl,buildkitd} "$root/usr/bin/"
  copy_program "$root" "$work/tools/usr/sbin/runc" buildkit-runc
  for plugin in bridge loopback host-local firewall; do
    copy_program "$root" "$work/tools/usr/lib/cni/$plugin" "buildkit-cni-$plugin"
  done
  core=$(git --exec-path)
  copy_program "$root" "$(command -v git)" git
  copy_program "$root" "$(command -v ssh)" ssh
  copy_program "$root" "$core/git-remote-http" git-remote-http
  mkdir -p "$root$core"
  mv "$root/usr/bin/git-remote-http" "$root$core/"
  ln -s git-remote-http "$root$core/git-remote-https"
  ln -s /usr/bin/git "$root$core/git"
  # the older variant also works where the kernel has no nf_tables
  copy_program "$root" "$(command -v xtables-legacy-multi)" xtables-legacy-multi
  for program in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
    ln -sf xtables-legacy-multi "$root/usr/bin/$program"
  done
  (cd / && cp -a --parents usr/lib/*/xtables "$root")
  mkdir -p "$root/var/lib/buildkit" "$root/etc/buildkit"
}

if [ ! -x "$work/bin/buildkitd" ]; then
  fetch_sources
  compile
fi
rm -rf "$work/image"
mkdir "$work/image"
make_root "$work/image"
tar -C "$work/image" --numeric-owner --sort=name -c . | docker import \
  --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' --change 'VOLUME /var/lib/buildkit' \
  --change 'LABEL io.busbar.lab=1' --change 'ENTRYPOINT ["buildkitd"]' - "$image" >/dev/null
took imported
echo "$image: $version, compiled from Debian's sources in $((SECONDS - begin)) s"
