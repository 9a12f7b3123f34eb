import { docker, execute } from './commands.js'

/** A kind of build engine, and how a person uses it. */
export interface MeasuredKind {
  readonly kind: 'buildkit' | 'dockerd'
  readonly image: string
  /** Of the builds plugin. */
  readonly settings: Readonly<Record<string, unknown>>
  /** The daemon alone. */
  readonly daemon: readonly string[]
  /** In its container: builds the folder, and writes an archive of the image. */
  readonly script: string
}

const memory_mib = 1024

const kinds: readonly MeasuredKind[] = [
  {
    kind: 'buildkit',
    image: 'moby/buildkit:lab',
    settings: { build_engine: 'buildkit', buildkit_image: 'moby/buildkit:lab', memory_mib },
    daemon: ['buildkitd', '--root', '/tmp/data', '--addr', 'unix:///tmp/daemon.sock'],
    // What an operator has put on the machine lies beside the daemon as a layout.
    script: `base=$(echo /var/lib/builder/bases/buildkit/*)
digest=$(sed -E 's/.*"digest":"([^"]+)".*/\\1/' "$base/index.json")
buildctl --addr unix:///run/buildkit/buildkitd.sock build --progress=plain --frontend dockerfile.v0 --local context=$1 --local dockerfile=$1 \
  --oci-layout base="$base" --opt context:node:20=oci-layout://base@$digest --output type=docker,name=$2,dest=$1.tar`
  },
  {
    kind: 'dockerd',
    image: 'docker:lab',
    settings: { build_engine: 'dockerd', dockerd_image: 'docker:lab', memory_mib },
    daemon: [
      'dockerd',
      '--data-root',
      '/tmp/data',
      '--exec-root',
      '/tmp/exec',
      '--pidfile',
      '/tmp/pid',
      '--host',
      'unix:///tmp/daemon.sock',
      '--bridge=none',
      '--iptables=false',
      '--storage-driver=vfs'
    ],
    script: `export DOCKER_HOST=unix:///run/busbar-docker.sock DOCKER_BUILDKIT=1
docker build --tag $2 $1 && docker save --output $1.tar $2 && docker rmi --force $2`
  }
]

/** Those whose images are here. */
export async function measuredKinds(): Promise<readonly MeasuredKind[]> {
  const there = await Promise.all(
    kinds.map(
      async ({ image }) =>
        await docker('image', 'inspect', image).then(
          () => true,
          () => false
        )
    )
  )
  return kinds.filter((_, at) => there[at])
}

/** The name of its container. */
export const engineOf = async ({ kind }: MeasuredKind, projectId: string): Promise<string> =>
  (
    await docker('ps', '--filter', `name=^/?busbar.builder.${kind}.${projectId}`, '--format', '{{.Names}}')
  ).trim()

/** With the docker command: the folder goes into the engine, and the archive of the image out of it. */
export const buildInEngine =
  (measured: MeasuredKind, projectId: string) =>
  async (name: string, checkout: string): Promise<void> => {
    const engine = await engineOf(measured, projectId)
    const folder = `/tmp/${name}`
    await docker('cp', checkout, `${engine}:${folder}`)
    await docker('exec', engine, 'sh', '-ec', measured.script, 'build', folder, name)
    await execute('sh', ['-ec', 'docker cp "$0:$1.tar" - | tar -xO | docker load', engine, folder])
    await docker('exec', engine, 'rm', '-rf', folder, `${folder}.tar`)
  }

/** MiB that a container has in use, without what the kernel only keeps of files. */
export async function usedMib(container: string): Promise<number> {
  const [, value = '', unit = ''] =
    /^([\d.]+)([KMG]iB)/.exec(await docker('stats', '--no-stream', '--format', '{{.MemUsage}}', container)) ??
    []
  return Number(value) * ({ KiB: 1 / 1024, MiB: 1, GiB: 1024 }[unit] ?? Number.NaN)
}

/** Those of a build engine. */
const rights = ['--cap-add=SYS_ADMIN', '--cap-add=NET_ADMIN', '--security-opt=seccomp=unconfined'] as const

/** What the daemon uses that a person has just started. */
export async function usedMibByHand(
  { image, daemon }: MeasuredKind,
  settled: () => Promise<void>
): Promise<number> {
  const [entrypoint = '', ...args] = daemon
  const id = await docker('create', ...rights, '--entrypoint', entrypoint, image, ...args)
  try {
    await docker('start', id)
    await settled()
    return await usedMib(id)
  } finally {
    await docker('rm', '--force', '--volumes', id)
  }
}
