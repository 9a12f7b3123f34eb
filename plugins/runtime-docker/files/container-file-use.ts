import type { ContainerFileUse, Owner } from 'busbar/api/containers'
import type Docker from 'dockerode'
import type { ContainerOwners } from '../container-owners.js'
import type { EngineClient } from '../engine-client.js'
import type { HostTools } from '../host/host-tools.js'
import { instanceLabel, isAmong, ownerFilter } from '../labels.js'
import { isAnonymous } from '../volumes.js'
import { countCommand, type FolderCount, readCounts } from './file-count.js'
import { openFilesCommand, processesCommand, readOpenFiles, readProcesses } from './open-files.js'

interface FileUseParts {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly owners: ContainerOwners
  /** Programs that see the engine's folder and the processes of its machine. */
  readonly tools: (dataRoot: string) => Promise<HostTools>
}

interface Seen {
  readonly id: string
  readonly owner: Owner
  readonly isRunning: boolean
  readonly folders: readonly string[]
}

/** So many folders in one call: their names are its arguments. */
const foldersAtOnce = 100

/**
 * What containers have taken of a disk that the engine's account leaves out. The engine could list what has changed in a
 * container, and would hold the names of all of it, which may be millions of long ones; so the machine's own programs count.
 */
export async function containerFileUse(
  { engine, instanceId, owners, tools }: FileUseParts,
  owner: Owner,
  options: { readonly most: number; readonly since: Date }
): Promise<readonly ContainerFileUse[]> {
  const dataRoot = await engine.call('describe itself', async docker =>
    String((await docker.info()).DockerRootDir)
  )
  const seen = await inspected({ engine, instanceId, owners }, owner, dataRoot)
  if (seen.length === 0) return []
  const programs = await tools(dataRoot)
  const run = async (argv: readonly [string, ...string[]]): Promise<string> => {
    const { code, output, errors } = await programs.run(argv)
    if (code !== 0) throw new Error(`${argv[0]} ended with ${code}: ${errors.slice(0, 500)}`)
    return output
  }
  // Without it, nothing would be found and all seem to be well.
  await run(['find', '/', '-maxdepth', '0', '-newerct', '@0', '-printf', 'o'])
  const folders = seen.flatMap(one => one.folders)
  const counts = new Map<string, FolderCount>()
  for (let at = 0; at < folders.length; at += foldersAtOnce) {
    const some = folders.slice(at, at + foldersAtOnce)
    const found = readCounts(await run(countCommand(some, options)))
    for (const [index, folder] of some.entries()) counts.set(folder, found[index] ?? { inodes: 0, recent: 0 })
  }
  const processes = readProcesses(await run(processesCommand()))
  const uses: ContainerFileUse[] = []
  for (const { id, owner: own, isRunning, folders: its } of seen) {
    const pids = processes.get(id) ?? []
    const nameless = readOpenFiles(pids.length === 0 ? '' : await run(openFilesCommand(dataRoot, pids)))
    const named = its.flatMap(folder => counts.get(folder) ?? [])
    const sumOf = (part: keyof FolderCount): number => named.reduce((sum, count) => sum + count[part], 0)
    uses.push({
      id,
      owner: own,
      isRunning,
      inodes: sumOf('inodes') + nameless.files,
      recentInodes: sumOf('recent') + nameless.files,
      namelessBytes: nameless.bytes
    })
  }
  return uses
}

async function inspected(
  { engine, instanceId, owners }: Pick<FileUseParts, 'engine' | 'instanceId' | 'owners'>,
  owner: Owner,
  dataRoot: string
): Promise<readonly Seen[]> {
  const label = [`${instanceLabel}=${instanceId}`, ...ownerFilter(owner)]
  const found = await engine.call(
    'list containers',
    async docker => await docker.listContainers({ all: true, filters: { label } })
  )
  const seen: Seen[] = []
  for (const { Id: id } of found) {
    const own = await owners.of(id)
    if (own === undefined || !isAmong(owner, own)) continue
    const one = await engine.call(
      'inspect a container',
      async docker => await docker.getContainer(id).inspect(),
      { absent: [404] }
    )
    if (one === undefined) continue
    seen.push({ id, owner: own, isRunning: one.State.Running, folders: foldersOf(one, dataRoot) })
  }
  return seen
}

/** Where the engine keeps what a container writes; drivers that keep it elsewhere than in its folder do not tell. */
function foldersOf({ GraphDriver, Mounts }: Docker.ContainerInspectInfo, dataRoot: string): string[] {
  const { UpperDir: own } = (GraphDriver?.Data ?? {}) as { readonly UpperDir?: string }
  const volumes = (Mounts ?? []).filter(({ Name: name = '' }) => isAnonymous(name))
  return [...(own === undefined ? [] : [own]), ...volumes.map(({ Source }) => Source)].filter(folder =>
    folder.startsWith(`${dataRoot}/`)
  )
}
