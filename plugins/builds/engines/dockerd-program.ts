import { secretFlags } from './buildkit-program.js'
import { type Command, type EngineProgram, engineVolumePath, type ProgramBuild } from './engine-program.js'
import { sshFlags, withKey } from './forwarded-key.js'
import { stepsGroup } from './steps-group.js'
import { stepsGateway } from './steps-network.js'

const address = 'unix:///run/busbar-docker.sock'
/** Of the images that builds make, which are there for as long as one is handed over. */
const result = 'busbar-result'

const variables = {
  DOCKER_HOST: address,
  DOCKER_BUILDKIT: '1',
  // Its client would add records of the build, which older engines do not know as part of an image.
  BUILDX_NO_DEFAULT_ATTESTATIONS: '1',
  HOME: `${engineVolumePath}/tmp`
}
const plain = (argv: readonly string[]): Command => ({ argv, env: variables })

/**
 * Builds, and leaves the image as files. The engine keeps no image: the cache of its BuildKit is apart from images. Of what was
 * loaded each name means what it means now on the engine of the platform.
 * Equal layers are links to one another in what an engine saves.
 */
const script = `set -e
directory=$1 bases=$2; shift 2
while [ "$bases" -gt 0 ]; do
  docker tag "$1" "$2"; shift 2
  bases=$((bases - 1))
done
result=${result}:"\${directory##*/}"
trap 'docker rmi --force "$result" >/dev/null 2>&1 || true' EXIT
trap 'exit 143' TERM
docker build --tag "$result" "$@" "$directory/context"
mkdir "$directory/out"
docker save "$result" | tar -x -C "$directory/out"
find "$directory/out" -type l | while read -r link; do ln -f "$(readlink -f "$link")" "$link"; done`

const forgetting = `live=" $1 "
docker images --format '{{.Tag}}' ${result} | while read -r tag; do
  case $live in *" $tag "*) ;; *) docker rmi --force ${result}:"$tag" ;; esac
done`

export const dockerdProgram: EngineProgram = {
  kind: 'dockerd',
  name: 'Docker Engine',
  daemon: {
    argv: [
      'dockerd',
      '--host',
      address,
      '--data-root',
      `${engineVolumePath}/docker`,
      '--exec-root',
      '/run/busbar-docker',
      '--pidfile',
      '/run/busbar-docker.pid',
      '--bip',
      stepsGateway,
      '--cgroup-parent',
      stepsGroup,
      '--log-level',
      'warn'
    ],
    // The entry point of the official image would add a listener of TCP.
    env: { DOCKER_TLS_CERTDIR: '', TMPDIR: `${engineVolumePath}/tmp` }
  },
  ready: plain(['docker', 'version']),
  takes: 'archive',
  makes: 'archive',
  // The empty folder says that it is there.
  addBase: directory => ({
    argv: ['sh', '-c', 'tar -C "$0" -c . | docker load --quiet && rm -rf "$0"/*', directory],
    env: variables
  }),
  build: buildCommand,
  forget: live => ({ argv: ['sh', '-c', forgetting, 'forget', live.join(' ')], env: variables }),
  prune: keptBytes =>
    plain(['docker', 'builder', 'prune', '--force', '--all', '--keep-storage', String(keptBytes)])
}

function buildCommand(build: ProgramBuild): Command {
  const { directory, file, frontEnd, buildArgs, target, platform, noCache, bases } = build
  const { flags, env } = secretFlags(build)
  const command: Command = {
    argv: [
      'sh',
      '-c',
      script,
      'build',
      directory,
      String(bases.length),
      ...bases.flatMap(({ digest, name }) => [digest, name]),
      '--progress=plain',
      '--file',
      `${directory}/dockerfile/${file}`,
      ...(frontEnd === undefined ? [] : ['--build-arg', `BUILDKIT_SYNTAX=${frontEnd}`]),
      ...Object.entries(buildArgs).flatMap(([key, value]) => ['--build-arg', `${key}=${value}`]),
      ...flags,
      ...sshFlags(build),
      ...(target === undefined ? [] : ['--target', target]),
      ...(platform === undefined ? [] : ['--platform', platform]),
      ...(noCache ? ['--no-cache'] : [])
    ],
    env: { ...variables, ...env }
  }
  return withKey(command, build)
}
