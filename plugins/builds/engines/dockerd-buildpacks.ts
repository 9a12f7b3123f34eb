import { createHash, randomBytes } from 'node:crypto'
import type { BuildpacksBuild, BuildpacksProgram, EngineCommand } from '../api.js'
import { engineVolumePath } from './engine-program.js'
import { limitStepsNetwork } from './steps-network.js'

/** Of bases that were loaded, for `pack`. */
const packImage = 'busbar-base'
/** Keeps what was loaded. A Dockerfile may name what the engine has, so no tenant can know this name. */
export const keptImage = `busbar-kept-${randomBytes(10).toString('hex')}`
/** Of images that the engine has pulled as everybody may, by what they were pulled as. */
const pulledImage = 'busbar-pulled'
/** Of images that builds make, which are there for as long as one is handed over. */
export const resultImage = 'busbar-result'
/** Each build has one for its containers: they are known by it. */
const network = 'busbar-pack'
const cachesLabel = 'busbar-caches'
const cachePrefix = 'busbar-cnb-'
/** What `pack` makes for one run, and removes unless it is killed. */
const runVolumes = '^pack-(layers|app)-'
const runImages = 'pack.local/*/*'

/** What the command ends with where `pack` ended well and made nothing. */
export const noImageCode = 90

const pull = `set -e
docker image inspect "$2" >/dev/null 2>&1 && exit
docker pull "$1"
docker tag "$1" "$2"
docker rmi "$1" >/dev/null`

const metadata = '{{index .Config.Labels "io.buildpacks.builder.metadata"}}'

/**
 * The variables of the application are named in arguments, and become those of `pack` alone: what else is run here would obey
 * some of them. Names that begin with busbar_ are none of an application.
 */
const build = `set -e
busbar_directory=$1 busbar_program=$2 busbar_caches=$3 busbar_limits=$4 busbar_variables=$5; shift 5
busbar_id=\${busbar_directory##*/}
busbar_result=${resultImage}:$busbar_id
trap 'exit 143' TERM
docker network create --label "${cachesLabel}=$busbar_caches" "${network}-$busbar_id" >/dev/null
sh -ec "$busbar_limits"
(
  cd "$busbar_directory/context"
  busbar_at=0
  while [ "$busbar_at" -lt "$busbar_variables" ]; do
    eval "busbar_value=\\$BUSBAR_VARIABLE_$busbar_at"
    unset "BUSBAR_VARIABLE_$busbar_at"
    export "$1=$busbar_value"
    shift
    busbar_at=$((busbar_at + 1))
  done
  exec "$busbar_program" "$@"
)
docker image inspect "$busbar_result" >/dev/null 2>&1 || exit ${noImageCode}
mkdir "$busbar_directory/out"
docker save "$busbar_result" | tar -x -C "$busbar_directory/out"
find "$busbar_directory/out" -type l | while read -r link; do ln -f "$(readlink -f "$link")" "$link"; done`

/** With nothing else in it than words that the engine has made. */
const cleaning = `clean() {
  containers=$(docker ps --all --quiet --filter "network=${network}-$1")
  if [ -n "$containers" ]; then
    volumes=$(docker inspect --format '{{range .Mounts}}{{println .Name}}{{end}}' $containers | grep -E '${runVolumes}' | sort -u || true)
    docker rm --force --volumes $containers >/dev/null
    [ -z "$volumes" ] || docker volume rm --force $volumes >/dev/null
  fi
  docker network inspect "${network}-$1" >/dev/null 2>&1 && docker network rm "${network}-$1" >/dev/null
  docker rmi --force "${resultImage}:$1" >/dev/null 2>&1
  [ -z "$(docker network ls --quiet --filter "name=^${network}-$1\\$")" ]
}`

/**
 * Of deployments that are not live. What `pack` makes for one run does not say whose it is: it is nobody's where no build that is
 * under way has begun before it was seen.
 */
export const forgetBuildpacks = `${cleaning}
live=" $1 "
volumes=$(docker volume ls --quiet --filter dangling=true | grep -E '${runVolumes}' || true)
images=$(docker images --format '{{.Repository}}:{{.Tag}}' '${runImages}')
docker network ls --format '{{.Name}}' --filter 'name=^${network}-' | while read -r name; do
  id=\${name#${network}-}
  case $live in *" $id "*) ;; *) clean "$id" ;; esac
done
if [ -z "$(docker network ls --quiet --filter 'name=^${network}-')" ]; then
  [ -z "$volumes" ] || docker volume rm --force $volumes >/dev/null || true
  [ -z "$images" ] || docker rmi --force $images >/dev/null || true
fi`

/** Where nothing is under way, no name is left by which a Dockerfile could ask for what the platform does not give it any more. */
export const forgetNames = `if [ -z "$1" ]; then
  docker images --no-trunc --format '{{.Repository}}:{{.Tag}} {{.ID}}' | while read -r name id; do
    case $name in
      ${keptImage}:*) ;;
      ${packImage}:*|busbar-kept-*) docker tag "$id" ${keptImage}:"\${id#sha256:}" && docker rmi "$name" >/dev/null ;;
    esac
  done
fi`

/**
 * Removes caches of applications that no build uses, the oldest first, until so many bytes are left of them: `rest` is what other caches may have.
 * With nothing to be left, images go, too, that can be pulled again.
 */
export const pruneBuildpacks = `kept=$1
total=0
if cd ${engineVolumePath}/docker/volumes 2>/dev/null; then
  busy=" $(docker network ls --format '{{.Label "${cachesLabel}"}}' --filter 'name=^${network}-' | tr '\n' ' ') "
  for volume in $(ls -t -d ${cachePrefix}* 2>/dev/null); do
    size=$(($(du -s -k "$volume" | cut -f 1) * 1024))
    total=$((total + size))
    [ "$total" -gt "$kept" ] || continue
    case $busy in *" $volume "*) continue ;; esac
    if docker volume rm "$volume" >/dev/null; then total=$((total - size)); fi
  done
fi
if [ "$kept" = 0 ] && [ -z "$(docker network ls --quiet --filter 'name=^${network}-')" ]; then
  images=$(docker images --format '{{.Repository}}:{{.Tag}}' ${pulledImage})
  [ -z "$images" ] || docker rmi --force $images >/dev/null
fi
rest=$((kept - total))
[ "$rest" -gt 0 ] || rest=0`

const sh = (script: string, ...argv: readonly string[]): readonly string[] => [
  'sh',
  '-c',
  script,
  'sh',
  ...argv
]

/** How a Docker Engine in a build engine is used by `pack`. */
export const buildpacksOf = (env: Readonly<Record<string, string>>): BuildpacksProgram => {
  const plain = (argv: readonly string[]): EngineCommand => ({ argv, env })
  return {
    nameOfBase: digest => `${packImage}:${digest.replace('sha256:', '')}`,
    nameBase: digest => plain(['docker', 'tag', digest, `${packImage}:${digest.replace('sha256:', '')}`]),
    nameOfPulled: reference => `${pulledImage}:${createHash('sha256').update(reference).digest('hex')}`,
    pull: (reference, name) => plain(sh(pull, reference, name)),
    describe: (name, file) =>
      plain(sh('docker image inspect --format "$1" "$2" > "$3"', metadata, name, file)),
    build: one => buildCommand(one, env),
    cleanUp: deploymentId => plain(sh(`${cleaning}\nclean "$1"`, deploymentId))
  }
}

function buildCommand(one: BuildpacksBuild, env: Readonly<Record<string, string>>): EngineCommand {
  const { directory, tool, builder, runImage, lifecycleImage, buildpacks, caches, noCache } = one
  const variables = Object.entries(one.variables.env)
  const deploymentId = directory.slice(directory.lastIndexOf('/') + 1)
  const { build: buildCache, launch } = caches
  return {
    argv: [
      ...sh(build, directory, tool, `${buildCache} ${launch}`, limitStepsNetwork.at(-1) ?? ''),
      String(variables.length),
      ...variables.map(([name]) => name),
      'build',
      `${resultImage}:${deploymentId}`,
      '--no-color',
      '--path',
      `${directory}/context`,
      '--builder',
      builder,
      ...(runImage === undefined ? [] : ['--run-image', runImage]),
      ...(lifecycleImage === undefined ? [] : ['--lifecycle-image', lifecycleImage]),
      '--pull-policy',
      'if-not-present',
      '--docker-host',
      'inherit',
      '--network',
      `${network}-${deploymentId}`,
      '--cache',
      `type=build;format=volume;name=${buildCache};type=launch;format=volume;name=${launch}`,
      ...(noCache ? ['--clear-cache'] : []),
      ...buildpacks.flatMap(buildpack => ['--buildpack', buildpack]),
      ...one.variables.args
    ],
    env: {
      ...Object.fromEntries(variables.map(([, value], at) => [`BUSBAR_VARIABLE_${at}`, value])),
      ...env,
      HOME: `${directory}/home`,
      TMPDIR: `${directory}/tmp`,
      LANG: 'C.UTF-8',
      NO_COLOR: '1'
    }
  }
}
