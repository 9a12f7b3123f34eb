import { imageReferenceShape } from 'busbar/api/images'
import type { EngineCommand, EngineProgram, ProgramBuild } from '../api.js'
import { pruneBases } from './base-pruning.js'
import { secretFlags } from './buildkit-program.js'
import {
  buildpacksOf,
  forgetBuildpacks,
  forgetNames,
  keptImage,
  pruneBuildpacks,
  resultImage
} from './dockerd-buildpacks.js'
import { engineVolumePath } from './engine-program.js'
import { sshFlags, withKey } from './forwarded-key.js'
import { stepsGroup } from './steps-group.js'
import { buildNetworksSubnet, stepsGateway } from './steps-network.js'

const address = 'unix:///run/busbar-docker.sock'
const configPath = '/run/busbar-dockerd.json'

/** Newer ones keep images with containerd otherwise, by digests of their manifests, and `pack` exports to a registry then (buildpacks/pack#2272). */
const config = '{"features":{"containerd-snapshotter":false}}'
const preparation = `set -e
printf %s "$1" > ${configPath}
shift
exec "$@"`

const variables = {
  DOCKER_HOST: address,
  DOCKER_BUILDKIT: '1',
  // Its client would add records of the build, which older engines do not know as part of an image.
  BUILDX_NO_DEFAULT_ATTESTATIONS: '1',
  HOME: `${engineVolumePath}/tmp`
}
const plain = (argv: readonly string[]): EngineCommand => ({ argv, env: variables })

/**
 * Builds, and leaves the image as files. The engine keeps no image: the cache of its BuildKit is apart from images. Of what was
 * loaded each name means what it means now on the engine of the platform, and one that means nothing there any more is taken
 * away: the account with which it came may be gone.
 * Equal layers are links to one another in what an engine saves.
 */
const script = `set -e
directory=$1 bases=$2 missing=$3; shift 3
while [ "$bases" -gt 0 ]; do
  docker tag "$1" ${keptImage}:"\${1#sha256:}"
  docker tag "$1" "$2"; shift 2
  bases=$((bases - 1))
done
while [ "$missing" -gt 0 ]; do
  if id=$(docker image inspect --format '{{.Id}}' "$1" 2>/dev/null); then
    docker tag "$id" ${keptImage}:"\${id#sha256:}"
    docker rmi "$1" >/dev/null
  fi
  shift
  missing=$((missing - 1))
done
result=${resultImage}:"\${directory##*/}"
trap 'docker rmi --force "$result" >/dev/null 2>&1 || true' EXIT
trap 'exit 143' TERM
docker build --tag "$result" "$@" "$directory/context"
mkdir "$directory/out"
docker save "$result" | tar -x -C "$directory/out"
find "$directory/out" -type l | while read -r link; do ln -f "$(readlink -f "$link")" "$link"; done`

const forgetting = `${forgetBuildpacks}
${forgetNames}
docker images --format '{{.Tag}}' ${resultImage} | while read -r tag; do
  case $live in *" $tag "*) ;; *) docker rmi --force ${resultImage}:"$tag" ;; esac
done`

const base = {
  size: `docker image inspect --format '{{.Size}}' "sha256:$base" 2>/dev/null`,
  remove: 'docker rmi --force "sha256:$base" >/dev/null 2>&1 || true'
}
const pruning = `${pruneBuildpacks}
docker builder prune --force --all --keep-storage "$rest"`

export const dockerdProgram: EngineProgram = {
  kind: 'dockerd',
  name: 'Docker Engine',
  daemon: {
    argv: [
      'sh',
      '-c',
      preparation,
      'prepare',
      config,
      'dockerd',
      '--config-file',
      configPath,
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
      '--default-address-pool',
      `base=${buildNetworksSubnet},size=29`,
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
  buildpacks: buildpacksOf(variables),
  forget: live => ({ argv: ['sh', '-c', forgetting, 'forget', live.join(' ')], env: variables }),
  prune: keptBytes =>
    plain(['sh', '-c', pruneBases('dockerd', keptBytes, base) + pruning, 'prune', String(keptBytes)])
}

function buildCommand(build: ProgramBuild): EngineCommand {
  const { directory, file, frontEnd, buildArgs, target, platform, noCache } = build
  const { flags, env } = secretFlags(build)
  // Nothing that was loaded can be given a digest of a registry. A name means one image for all kinds of machines; for another
  // kind than it is made for, the engine asks the registry.
  const bases = build.bases.filter(({ name }) => !name.includes('@'))
  const missing = build.missing.filter(isTagged).map(withTag)
  const command: EngineCommand = {
    argv: [
      'sh',
      '-c',
      script,
      'build',
      directory,
      String(bases.length),
      String(missing.length),
      ...bases.flatMap(({ digest, name }) => [digest, name]),
      ...missing,
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

const isTagged = (name: string): boolean =>
  !name.includes('@') && !/^busbar-/.test(name) && imageReferenceShape.test(name)

/** Without its tag the engine could take it for the beginning of an id. */
export const withTag = (name: string): string =>
  name.includes(':', name.lastIndexOf('/') + 1) ? name : `${name}:latest`
