import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type Docker from 'dockerode'

/** A program in `/usr/local/bin`, which does of a tool what a Dockerfile needs to be built and to run. */
type Programs = Readonly<Record<string, string>>

interface StandIn {
  readonly programs: Programs
  /** Further instructions. */
  readonly more?: string
}

const go = `#!/bin/sh
# go mod download, go build -o FILE .
set -e
cache=\${GOMODCACHE:-/go/pkg/mod}
case "$1 $2" in
  "mod download") test -s go.mod; mkdir -p "$cache"; cp go.mod "$cache/downloaded" ;;
  "build -o")
    test -e "$cache/downloaded" || { echo 'no modules' >&2; exit 1; }
    test -s main.go
    mkdir -p "$(dirname "$3")"
    cp /usr/bin/busybox "$3" ;;
  *) exit 2 ;;
esac
`

const python = `#!/bin/sh
# python -m venv DIR: a pip that installs each requirement as a program
set -e
test "$1 $2" = "-m venv"
mkdir -p "$3/bin"
cp /usr/local/share/pip "$3/bin/pip"
`

const pip = `#!/bin/sh
# pip install -r FILE
set -e
here=$(dirname "$0")
mkdir -p /root/.cache/pip
while read -r name; do
  test -n "$name" || continue
  date > "/root/.cache/pip/$name"
  printf '#!/bin/sh\\nexec httpd -f -p 8080 -h "$PWD/static"\\n' > "$here/\${name%%=*}"
  chmod 755 "$here/\${name%%=*}"
  echo "Successfully installed $name"
done < "$3"
`

const cargo = `#!/bin/sh
set -e
test "$1 $2" = "build --release"
test -s Cargo.toml
mkdir -p target/release /usr/local/cargo/registry
date > /usr/local/cargo/registry/index
cp /usr/bin/busybox target/release/httpd
`

const mvn = `#!/bin/sh
# mvn … dependency:go-offline, mvn … package
set -e
test -s pom.xml
mkdir -p "$HOME/.m2"
for goal in "$@"; do
  case $goal in
    dependency:go-offline) date > "$HOME/.m2/offline" ;;
    package) test -e "$HOME/.m2/offline"; mkdir -p target; cp src/main/java/index.html target/app-1.0.jar ;;
  esac
done
`

const java = `#!/bin/sh
# java … -jar FILE
set -e
for file in "$@"; do :; done
mkdir -p /tmp/www
cp "$file" /tmp/www/index.html
exec httpd -f -p 8080 -h /tmp/www
`

const bundle = `#!/bin/sh
set -e
case $1 in
  install) test -s Gemfile.lock; mkdir -p "$BUNDLE_PATH/ruby/gems"; cp Gemfile.lock "$BUNDLE_PATH/ruby/gems/list" ;;
  exec) test -s "$BUNDLE_PATH/ruby/gems/list"; exec httpd -f -p 8080 -h public ;;
esac
`

const composer = `#!/bin/sh
set -e
test -s composer.json
mkdir -p vendor
echo '<?php' > vendor/autoload.php
`

const pnpm = `#!/bin/sh
set -e
case $1 in
  install) test -s pnpm-lock.yaml; mkdir -p node_modules "$PNPM_HOME/store"; echo "$*" > node_modules/how; date >> "$PNPM_HOME/store/index" ;;
  run) test -s node_modules/how; mkdir -p dist; cp src/* dist/; cp node_modules/how dist/built-with ;;
  start) exec httpd -f -p 8080 -h /app/dist ;;
esac
`

const adduser = `#!/bin/sh
# adduser [-SDH] [-u UID] [-G GROUP] [-h HOME] [-g NAME] [-s SHELL] USER
set -e
uid=100 group= home= shell=/bin/sh
while getopts SDHu:G:h:g:s: option; do
  case $option in u) uid=$OPTARG ;; G) group=$OPTARG ;; h) home=$OPTARG ;; s) shell=$OPTARG ;; esac
done
shift $((OPTIND - 1))
if [ -z "$group" ]; then group=$1; echo "$1:x:$uid:" >> /etc/group; fi
gid=$(awk -F: -v group="$group" '$1 == group { print $3 }' /etc/group)
echo "$1:x:$uid:\${gid:?}::\${home:-/home/$1}:$shell" >> /etc/passwd
`

const addgroup = `#!/bin/sh
# addgroup [-S] [-g GID] GROUP
set -e
gid=101
while getopts Sg: option; do case $option in g) gid=$OPTARG ;; esac; done
shift $((OPTIND - 1))
echo "$1:x:$gid:" >> /etc/group
`

/** By the names that people give them. */
const standIns: Readonly<Record<string, StandIn>> = {
  'alpine:lab': { programs: {} },
  'golang:lab': { programs: { go } },
  'python:lab': { programs: { python }, more: program('/usr/local/share/pip', pip) },
  'rust:lab': { programs: { cargo } },
  'maven:lab': { programs: { mvn }, more: 'ENV HOME=/root' },
  'eclipse-temurin:lab': { programs: { java } },
  'ruby:lab': { programs: { bundle } },
  'composer:lab': { programs: { composer } },
  'pnpm:lab': { programs: { pnpm } },
  // What its makers have those do who build upon it.
  'onbuild:lab': {
    programs: {},
    more: 'WORKDIR /usr/src/app\nONBUILD COPY . /usr/src/app\nONBUILD RUN echo "built upon $(cat index.html)" > triggered'
  }
}

function program(path: string, text: string): string {
  return `RUN echo ${Buffer.from(text).toString('base64')} | base64 -d > ${path} && chmod 755 ${path}`
}

const dockerfileOf = ({ programs, more }: StandIn): string =>
  [
    'FROM busybox:lab',
    'RUN mkdir -p /usr/local/bin /usr/local/share',
    ...Object.entries({ adduser, addgroup, ...programs }).map(([name, text]) =>
      program(`/usr/local/bin/${name}`, text)
    ),
    ...(more === undefined ? [] : [more]),
    ''
  ].join('\n')

const madeFrom = 'busbar-lab-made-from'

/** Puts them on the machine's engine, as an operator does who pulls an image. As base images they stay for the next run. */
export async function ensureStandIns(docker: Docker): Promise<void> {
  for (const [name, standIn] of Object.entries(standIns)) {
    const text = dockerfileOf(standIn)
    const hash = createHash('sha256').update(text).digest('hex').slice(0, 16)
    const there = await docker
      .getImage(name)
      .inspect()
      .catch(() => undefined)
    if (there?.Config.Labels?.[madeFrom] === hash) continue
    // A trigger would be carried out by an instruction that follows it.
    await build(name, text.replace('\n', `\nLABEL ${madeFrom}=${hash}\n`))
  }
}

async function build(name: string, text: string): Promise<void> {
  const child = spawn('docker', ['build', '--quiet', '--force-rm', '--tag', name, '-'], {
    stdio: ['pipe', 'ignore', 'inherit'],
    env: { ...process.env, DOCKER_BUILDKIT: '0' }
  })
  child.stdin.end(text)
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`${name} could not be made`)
}
