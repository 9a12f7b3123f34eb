import type { EngineCommand, EngineProgram, ProgramBuild } from '../api.js'
import { familiarName } from './base-names.js'
import { pruneBases } from './base-pruning.js'
import { engineVolumePath } from './engine-program.js'
import { sshFlags, withKey } from './forwarded-key.js'
import { stepsGroup } from './steps-group.js'
import { mostSteps, stepsSubnet } from './steps-network.js'

const address = 'unix:///run/buildkit/buildkitd.sock'
const configPath = '/run/buildkitd.toml'
/** Each step would get it, and with it a way into the daemon: it is given to those that begin while the file is there. */
const tracingSocket = '/run/buildkit/otel-grpc.sock'

/** What no option of the daemon says. */
const config = `[otel]
socketPath = "${tracingSocket}"

[worker.oci]
defaultCgroupParent = "${stepsGroup}"
max-parallelism = ${mostSteps}
bridgeName = "buildkit0"
bridgeSubnet = "${stepsSubnet}"

[history]
maxAge = 0
maxEntries = 0
`

/**
 * Steps are in network name spaces of their own, which begin with IPv6. The plug-in that connects them is run by its name,
 * so one of ours takes that, and turns it off before there is a step: a step is not let to.
 */
const networkFolder = '/run/busbar-network'
const networkPlugin = `#!/bin/sh
"$(dirname "$0")/connect" "$@" || exit
[ "$CNI_COMMAND" = ADD ] || exit 0
exec nsenter --net="$CNI_NETNS" sh -c '
  for conf in /proc/sys/net/ipv6/conf/eth*/disable_ipv6; do [ ! -e "$conf" ] || echo 1 > "$conf" || exit 1; done'
`
const preparation = `set -e
printf %s "$1" > ${configPath}
mkdir -p ${networkFolder}
ln -sf "$(command -v buildkit-cni-bridge)" ${networkFolder}/connect
printf %s "$2" > ${networkFolder}/buildkit-cni-bridge
chmod 755 ${networkFolder}/buildkit-cni-bridge
export PATH="${networkFolder}:$PATH"
shift 2
exec "$@"`

/**
 * The daemon keeps what each build has printed, as it was printed: a secret too, of which the log of the platform has nothing. By its
 * settings it looks for what it is not to keep every two minutes. Those of builds that run cannot be removed, and fail.
 */
const prune = `"$1" "$2" "$3" prune-histories > /dev/null 2>&1
exec "$@"`

const base = { size: 'echo "$(du -s -k "$base" | cut -f 1)000"', remove: ':' }

/** The front-end for them is part of the daemon. */
const dockerfiles = 'dockerfile.v0'

const client = (...argv: readonly string[]): readonly string[] => ['buildctl', '--addr', address, ...argv]
const plain = (argv: readonly string[]): EngineCommand => ({ argv, env: {} })

/** A socket of its own, and nothing that listens: what steps reach of the engine's network is not the daemon. */
export const buildkitProgram: EngineProgram = {
  kind: 'buildkit',
  name: 'BuildKit',
  daemon: {
    argv: [
      'sh',
      '-c',
      preparation,
      'prepare',
      config,
      networkPlugin,
      'buildkitd',
      '--config',
      configPath,
      '--addr',
      address,
      '--root',
      `${engineVolumePath}/buildkit`,
      '--oci-worker-net=bridge'
    ],
    env: { TMPDIR: `${engineVolumePath}/tmp` }
  },
  ready: plain([
    'sh',
    '-c',
    `"$@" > /dev/null && rm -f ${tracingSocket}`,
    'ready',
    ...client('debug', 'workers')
  ]),
  takes: 'layout',
  makes: 'layout',
  build: buildCommand,
  prune: keptBytes =>
    plain([
      'sh',
      '-c',
      pruneBases('buildkit', keptBytes, base) + prune,
      'prune',
      ...client('prune', '--all', '--keep-storage', String(Math.floor(keptBytes / 1e6)))
    ])
}

function buildCommand(build: ProgramBuild): EngineCommand {
  const { directory, file, frontEnd, buildArgs, target, platform, noCache, bases } = build
  const { flags, env } = secretFlags(build)
  const options = {
    filename: file,
    // Where the first is said, no other front-end is looked for.
    ...(frontEnd === undefined ? { cmdline: dockerfiles } : { source: frontEnd }),
    ...(target !== undefined && { target }),
    ...(platform !== undefined && { platform }),
    ...Object.fromEntries(Object.entries(buildArgs).map(([key, value]) => [`build-arg:${key}`, value])),
    ...Object.fromEntries(
      bases.map(({ name, digest, foreignTo }, at) => [
        `context:${familiarName(name)}${foreignTo === undefined ? '' : `::${foreignTo}`}`,
        `oci-layout://base${at}@${digest}`
      ])
    )
  }
  const command: EngineCommand = {
    argv: client(
      'build',
      '--progress=plain',
      '--frontend',
      frontEnd === undefined ? dockerfiles : 'gateway.v0',
      '--local',
      `context=${directory}/context`,
      '--local',
      `dockerfile=${directory}/dockerfile`,
      ...Object.entries(options).flatMap(([key, value]) => ['--opt', `${key}=${value}`]),
      ...bases.flatMap(({ directory: path }, at) => ['--oci-layout', `base${at}=${path}`]),
      ...flags,
      ...sshFlags(build),
      ...(noCache ? ['--no-cache'] : []),
      '--output',
      // To pack what the engine of the platform unpacks at once would take longer than all else.
      `type=oci,tar=false,compression=uncompressed,dest=${directory}/out`
    ),
    env
  }
  return withKey(command, build)
}

/** By variables of the client alone: no argument and no file has the value. Their names are ours, whatever the ids are. */
export function secretFlags({ secrets }: Pick<ProgramBuild, 'secrets'>): {
  readonly flags: readonly string[]
  readonly env: Readonly<Record<string, string>>
} {
  const named = Object.entries(secrets).map(([id, value], at) => ({ id, value, name: `BUSBAR_SECRET_${at}` }))
  return {
    flags: named.flatMap(({ id, name }) => ['--secret', `id=${id},env=${name}`]),
    env: Object.fromEntries(named.map(({ name, value }) => [name, value]))
  }
}
