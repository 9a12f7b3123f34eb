import type { Readable } from 'node:stream'
import { bounded } from 'busbar/sdk'
import type Docker from 'dockerode'
import type { EngineClient } from '../engine-client.js'
import { imageInstanceLabel } from '../labels.js'
import { asReadable } from '../output-lines.js'
import { groupsFolder, unitsFolder } from './group-files.js'
import { lifeSeconds, removeTools, ToolLeftovers, toolsLabel } from './tool-leftovers.js'

/** What became of a program: 126 and 127 when there is none of that name, as shells say it. */
export interface Outcome {
  readonly code: number
  readonly output: string
  readonly errors: string
}

/** Programs of the engine's machine. */
export interface HostTools {
  /** `input` is what the program reads from its standard input. */
  run(argv: readonly [string, ...string[]], input?: string): Promise<Outcome>
}

/** What a container of them sees and may do. */
export interface ToolsKind {
  /** Completes "create a container …". */
  readonly purpose: string
  readonly label: string
  /** The container ends by itself after this, and is removed then. */
  readonly lifeSeconds: number
  /** Where the machine has them. */
  readonly files: readonly string[]
  readonly host: Docker.HostConfig
  /** What it may write to, where the machine has it. */
  readonly writable?: ReadonlyArray<{ readonly source: string; readonly target: string }>
  /** The same of volumes, by their names. */
  readonly volumes?: ReadonlyArray<{ readonly source: string; readonly target: string }>
  /** A program may say nothing for as long as the container lives. */
  readonly isSilent?: true
  /** Where AppArmor confines containers, not this one. */
  readonly isUnconfined?: true
}

const networkTools: ToolsKind = {
  purpose: 'for the packet filter',
  label: toolsLabel,
  lifeSeconds,
  /** By which programs of the older kind take turns with dockerd. */
  files: ['/run/xtables.lock'],
  host: { NetworkMode: 'host', CapAdd: ['NET_ADMIN', 'NET_RAW'] }
}

/** The mounts of the control groups, and how a machine's init system is told of some. */
export const groupTools: ToolsKind = {
  purpose: 'for control groups',
  label: 'busbar-system=group-tools',
  lifeSeconds,
  files: [],
  writable: [
    { source: '/sys/fs/cgroup', target: groupsFolder },
    { source: unitsFolder, target: unitsFolder }
  ],
  // The number of processes of the machine is told to those that see them, and not even root may write where control groups begin.
  host: { NetworkMode: 'none', PidMode: 'host', CapAdd: ['DAC_OVERRIDE'] }
}

/** Where systems keep the programs and what these load. */
const programFolders = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/etc/alternatives']
/** More than any packet filter or routing table that a person could read. */
const maxOutputBytes = 32 * 2 ** 20
const missingSource = /bind source path does not exist: (\S+)/

/**
 * Opens the tools for as long as `use` runs. The platform may be a guest in a container, without rights on the
 * machine, or on another one altogether: what works for all is a container of the engine, on the network of the
 * machine, with an empty image into which the machine's own programs are mounted. It may change the network and
 * nothing else, or what else its kind says, and is gone afterwards, as is its image.
 */
export async function withHostTools<T>(
  engine: EngineClient,
  instanceId: string,
  use: (tools: HostTools, containerId: string) => Promise<T>,
  kind = networkTools
): Promise<T> {
  const leftovers = new ToolLeftovers(engine, instanceId, kind)
  const mayHaveLeft = await leftovers.remove()
  const { image, made: container } = await fromEmptyImage(
    engine,
    { instanceId, label: kind.label },
    async image => await createContainer(engine, image, kind)
  )
  try {
    try {
      await engine.call(`start a container ${kind.purpose}`, async docker => {
        await docker.getContainer(container).start()
      })
      return await use(toolsIn(engine, container, kind), container)
    } finally {
      await removeTools(engine, container, kind)
    }
  } finally {
    await removeEmptyImage(engine, image)
    if (mayHaveLeft) await leftovers.removeLater()
  }
}

/** Also where a container is made from it: that goes on without. */
export async function removeEmptyImage(engine: EngineClient, image: string): Promise<void> {
  await engine.call(
    'remove an empty image',
    async docker => {
      await docker.getImage(image).remove({ force: true })
    },
    { absent: [404, 409] }
  )
}

const attempts = 3

/** Whoever clears images that nothing uses may take it before something is made of it: then there is another one. */
export async function fromEmptyImage<T>(
  engine: EngineClient,
  named: ImageLabels,
  make: (image: string) => Promise<T>
): Promise<{ readonly image: string; readonly made: T }> {
  for (let attempt = 1; ; attempt++) {
    const image = await importEmptyImage(engine, named)
    try {
      return { image, made: await make(image) }
    } catch (error) {
      await removeEmptyImage(engine, image)
      if (attempt === attempts || !isImageGone(error)) throw error
    }
  }
}

export const isImageGone = (error: unknown): boolean => /no such image/i.test(String(error))

interface ImageLabels {
  readonly instanceId: string
  /** By it a cleanup finds the image. */
  readonly label: string
}

async function importEmptyImage(engine: EngineClient, { instanceId, label }: ImageLabels): Promise<string> {
  return await engine.call('make an empty image', async docker => {
    const emptyTar = Buffer.alloc(1024)
    const answer = asReadable(
      await docker.importImage(emptyTar as unknown as string, {
        changes: `LABEL ${imageInstanceLabel}=${instanceId} ${label}`
      })
    )
    let text = ''
    for await (const piece of answer) text += String(piece)
    const [id] = /sha256:[0-9a-f]{64}/.exec(text) ?? []
    if (id === undefined) throw new Error(text.slice(0, 500))
    return id
  })
}

/** The engine says which of the folders its machine lacks. */
async function createContainer(engine: EngineClient, image: string, kind: ToolsKind): Promise<string> {
  const writable = kind.writable ?? []
  for (let sources = [...programFolders, ...kind.files, ...writable.map(({ source }) => source)]; ; ) {
    const missing = { path: '' }
    const created = await engine.call(`create a container ${kind.purpose}`, async docker => {
      try {
        return await docker.createContainer(containerOptions(image, sources, kind))
      } catch (error) {
        missing.path = missingSource.exec(String(error))?.[1] ?? ''
        if (sources.includes(missing.path)) return undefined
        throw error
      }
    })
    if (created !== undefined) return created.id
    sources = sources.filter(source => source !== missing.path)
  }
}

// The types lack it. What is mounted below stays out: file systems of containers would be held by this one.
const withoutMountsBelow = { NonRecursive: true } as unknown as Docker.MountSettings['BindOptions']

function mountOf(
  source: string,
  { writable = [] }: ToolsKind
): Pick<Docker.MountSettings, 'Target' | 'ReadOnly' | 'BindOptions'> {
  const written = writable.find(mount => mount.source === source)
  if (written !== undefined) return { Target: written.target, ReadOnly: false }
  const isProgram = programFolders.includes(source)
  return { Target: source, ReadOnly: true, ...(isProgram ? {} : { BindOptions: withoutMountsBelow }) }
}

const containerOptions = (
  image: string,
  sources: readonly string[],
  kind: ToolsKind
): Docker.ContainerCreateOptions => ({
  Image: image,
  Cmd: ['sleep', String(kind.lifeSeconds)],
  Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'LC_ALL=C'],
  HostConfig: {
    ...kind.host,
    // An engine that renames users lends the network of the machine only to one with the machine's own.
    UsernsMode: 'host',
    CapDrop: ['ALL'],
    SecurityOpt: [
      'no-new-privileges:true',
      'label=disable',
      ...(kind.isUnconfined === true ? ['apparmor=unconfined'] : [])
    ],
    Mounts: [
      ...sources.map(source => ({ Type: 'bind' as const, Source: source, ...mountOf(source, kind) })),
      ...(kind.volumes ?? []).map(({ source, target }) => ({
        Type: 'volume' as const,
        Source: source,
        Target: target
      }))
    ],
    Tmpfs: { '/run': 'rw,nosuid,nodev,size=1m' },
    // Several looks may be under way.
    PidsLimit: 64,
    Memory: 256 * 2 ** 20,
    LogConfig: { Type: 'none', Config: {} },
    AutoRemove: true
  }
})

const toolsIn = (
  engine: EngineClient,
  container: string,
  { isSilent, lifeSeconds: seconds }: ToolsKind
): HostTools => ({
  run: async (argv, input) =>
    await runTool(engine, container, argv, {
      input,
      ...(isSilent === true && { isSilent, limitMs: seconds * 1000 })
    })
})

interface ToolOptions {
  readonly input?: string | undefined
  /** The container lives no longer; a connection that is taken over has no limit of its own. */
  readonly limitMs?: number
  readonly isSilent?: true
}

/** Runs one program in a container of host tools. */
export async function runTool(
  engine: EngineClient,
  container: string,
  argv: readonly string[],
  { input, limitMs = lifeSeconds * 1000, isSilent }: ToolOptions
): Promise<Outcome> {
  const program = argv[0] ?? ''
  const run = async (docker: Docker): Promise<Outcome> => {
    const exec = await docker
      .getContainer(container)
      .exec({ Cmd: [...argv], AttachStdin: input !== undefined, AttachStdout: true, AttachStderr: true })
    const stream = await exec.start(input === undefined ? {} : { hijack: true, stdin: true })
    if (input !== undefined) stream.end(input)
    const [output, errors] = await bounded(async () => await textsOf(asReadable(stream)), {
      ms: limitMs,
      what: `${program} on its machine`
    }).finally(() => stream.destroy())
    const { ExitCode: code } = await exec.inspect()
    // The end of the connection is the end of the output, also where the program runs on.
    if (code === null) throw new Error(`the output of ${program} was cut: it has not ended`)
    return { code, output, errors }
  }
  return await engine.call(`run ${program}`, run, isSilent === true ? { patient: true } : {})
}

const frameHeaderLength = 8

/** What a program wrote, by its two outputs: the engine sends both in frames of one stream. */
async function textsOf(stream: Readable): Promise<readonly [output: string, errors: string]> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of stream) {
    pieces.push(Buffer.from(piece as Buffer))
    size += pieces.at(-1)?.length ?? 0
    if (size > maxOutputBytes) throw new Error(`a program wrote more than ${maxOutputBytes} bytes`)
  }
  const whole = Buffer.concat(pieces)
  const texts = ['', '']
  for (let at = 0; at + frameHeaderLength <= whole.length; ) {
    const body = at + frameHeaderLength
    const end = body + whole.readUInt32BE(at + 4)
    texts[whole[at] === 2 ? 1 : 0] += whole.toString('utf8', body, end)
    at = end
  }
  return [texts[0] ?? '', texts[1] ?? '']
}
