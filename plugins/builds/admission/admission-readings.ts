import type { StatsFs } from 'node:fs'
import { readFile, statfs } from 'node:fs/promises'
import { availableParallelism, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import type { EngineInfo } from 'busbar/api/containers'
import type { Disk, Machine, Pressure } from './admission-decision.js'

export interface MachineSources {
  /** BUSBAR_DIR of this plugin. */
  readonly directory: string
  /** Undefined while the engine is away: a build then fails with words of its own. */
  readonly engine: Pick<EngineInfo, 'cores' | 'memoryBytes' | 'dataRoot' | 'place'> | undefined
  /** Where /proc and /sys are; for tests. */
  readonly root?: string
}

/** Reads what is free now. What cannot be read is taken for plentiful: a platform must not stop building for want of a file. */
export async function readMachine({ directory, engine, root = '/' }: MachineSources): Promise<Machine> {
  const place = engine?.place ?? 'here'
  const [memory, cgroup, pressure, disks] = await Promise.all([
    readMemory(root),
    readCgroup(root),
    readPressure(root),
    readDisks({ directory, engine, root })
  ])
  const total = Math.min(engine?.memoryBytes ?? Infinity, memory?.totalBytes ?? totalmem())
  const shared = place === 'around' ? undefined : cgroup.outer
  const isShared = shared !== undefined && shared.limitBytes < total
  const own = place === 'around' ? (cgroup.inner ?? cgroup.outer) : cgroup.inner
  return {
    cores: engine?.cores ?? availableParallelism(),
    memoryBytes:
      place === 'elsewhere' ? (engine?.memoryBytes ?? total) : isShared ? shared.limitBytes : total,
    availableBytes:
      place === 'elsewhere'
        ? undefined
        : Math.min(
            memory?.availableBytes ?? Infinity,
            isShared ? shared.limitBytes - shared.usedBytes : memory === undefined ? total : Infinity
          ),
    own: own !== undefined && own.limitBytes < (memory?.totalBytes ?? totalmem()) ? own : undefined,
    disks,
    pressure: place === 'elsewhere' ? undefined : pressure
  }
}

const read = async (...path: string[]): Promise<string | undefined> =>
  await readFile(join(...path), 'utf8').catch(() => undefined)

/** What follows a word at the beginning of a line. */
const lineAfter = (text: string | undefined, word: string): string | undefined =>
  text
    ?.split('\n')
    .find(line => line.startsWith(word))
    ?.slice(word.length)

/** `4:cpu,memory:/path`: the path of the group whose controllers include the memory. */
const memoryGroup = (groups: string): string | undefined =>
  groups
    .split('\n')
    .map(line => line.split(':'))
    .find(([, controllers = '']) => controllers.split(',').includes('memory'))
    ?.slice(2)
    .join(':')

async function readMemory(root: string): Promise<{ totalBytes: number; availableBytes: number } | undefined> {
  const [totalBytes, availableBytes] = await memoryFields(root, ['MemTotal', 'MemAvailable'])
  return Number.isFinite(totalBytes) && Number.isFinite(availableBytes)
    ? { totalBytes, availableBytes }
    : undefined
}

export interface Swap {
  /** 0 where there is none. */
  readonly totalBytes: number
  readonly freeBytes: number
}

/** Undefined where it cannot be read. */
export async function readSwap(root = '/'): Promise<Swap | undefined> {
  const [totalBytes, freeBytes] = await memoryFields(root, ['SwapTotal', 'SwapFree'])
  return Number.isFinite(totalBytes) && Number.isFinite(freeBytes) ? { totalBytes, freeBytes } : undefined
}

/** Bytes; NaN for what is not there. */
async function memoryFields(
  root: string,
  [first, second]: readonly [string, string]
): Promise<[number, number]> {
  const text = await read(root, 'proc/meminfo')
  const bytes = (name: string): number => Number.parseInt(lineAfter(text, `${name}:`) ?? '', 10) * 1024
  return [bytes(first), bytes(second)]
}

type Limit = NonNullable<Machine['own']>

/**
 * The memory limits on this process. `outer` is that of the topmost group to be seen: there is one inside a
 * container, and the whole container shares it. `inner` is the tightest below, that of a service for example.
 */
async function readCgroup(root: string): Promise<{ outer: Limit | undefined; inner: Limit | undefined }> {
  const groups = (await read(root, 'proc/self/cgroup')) ?? ''
  const version2 = lineAfter(groups, '0::')
  const version1 = memoryGroup(groups)
  const [mount, path, names] =
    version1 === undefined
      ? [
          join(root, 'sys/fs/cgroup'),
          version2,
          { limit: 'memory.max', usage: 'memory.current', cache: 'inactive_file' }
        ]
      : [
          join(root, 'sys/fs/cgroup/memory'),
          version1,
          { limit: 'memory.limit_in_bytes', usage: 'memory.usage_in_bytes', cache: 'total_inactive_file' }
        ]
  let inner: Limit | undefined
  for (let at = path ?? '/'; at !== '/' && at !== '.'; at = dirname(at)) {
    const limit = await readLimit(join(mount, at), names)
    if (limit !== undefined && (inner === undefined || limit.limitBytes < inner.limitBytes)) inner = limit
  }
  return { outer: await readLimit(mount, names), inner }
}

/** Undefined where there is no limit, or none that a number could mean. */
async function readLimit(
  folder: string,
  names: { readonly limit: string; readonly usage: string; readonly cache: string }
): Promise<Limit | undefined> {
  const limitBytes = Number(await read(folder, names.limit))
  // `max` in version 2, the largest page-aligned number in version 1.
  if (!(limitBytes > 0 && limitBytes < 2 ** 60)) return undefined
  const usage = Number(await read(folder, names.usage))
  // What the kernel only keeps of files is freed when memory is needed.
  const cache = Number(lineAfter(await read(folder, 'memory.stat'), `${names.cache} `) ?? NaN)
  return {
    limitBytes,
    usedBytes: Number.isFinite(usage) ? Math.max(0, usage - (Number.isFinite(cache) ? cache : 0)) : 0
  }
}

/** A kernel may be built without PSI, or started with it turned off: then the files are missing or cannot be read. */
async function readPressure(root: string): Promise<Pressure | undefined> {
  const [cpu, memory, io] = await Promise.all(
    ['cpu', 'memory', 'io'].map(async name => await read(root, 'proc/pressure', name))
  )
  if (cpu === undefined && memory === undefined && io === undefined) return undefined
  const average = (text: string | undefined, line: 'some' | 'full'): number =>
    Number.parseFloat(lineAfter(text, `${line} avg10=`) ?? '0')
  return { cpuSome: average(cpu, 'some'), memoryFull: average(memory, 'full'), ioFull: average(io, 'full') }
}

/** What is free on the disks that builds write to; where the engine is elsewhere its own is not known. */
export async function readDisks({ directory, engine, root = '/' }: MachineSources): Promise<Disk[]> {
  const wanted: Array<Pick<Disk, 'what' | 'path' | 'isEngines'>> = [
    { what: 'the disk of BUSBAR_DIR', path: directory, isEngines: false }
  ]
  // From inside a container the engine's folder cannot be seen, but the container's own root lies on its disk.
  const ofEngine = { what: 'the disk of the Docker Engine', isEngines: true }
  if (engine?.place === 'here') wanted.push({ ...ofEngine, path: engine.dataRoot })
  if (engine?.place === 'around') wanted.push({ ...ofEngine, path: root })
  const read = wanted.map(async ({ what, path, isEngines }): Promise<Disk | undefined> => {
    const stats = await statfs(path).catch(() => undefined)
    return (
      stats && {
        what,
        isEngines,
        path: engine?.place === 'around' && path === root ? engine.dataRoot : path,
        ...freeOf(stats)
      }
    )
  })
  return (await Promise.all(read)).filter(disk => disk !== undefined)
}

/** Of a file system that has only so many inodes, those that are left count as the share of its bytes that they are. */
export function freeOf({
  blocks,
  bavail,
  bsize,
  files,
  ffree
}: Pick<StatsFs, 'blocks' | 'bavail' | 'bsize' | 'files' | 'ffree'>): Pick<
  Disk,
  'freeBytes' | 'bytesPerInode' | 'freeInodes'
> {
  const freeBytes = bavail * bsize
  if (files === 0) return { freeBytes }
  const bytesPerInode = (blocks * bsize) / files
  return {
    freeBytes: Math.min(freeBytes, Math.floor(ffree * bytesPerInode)),
    bytesPerInode,
    freeInodes: ffree
  }
}
