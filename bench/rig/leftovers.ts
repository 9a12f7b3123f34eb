import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isAlive, stopEmbedded } from '../../embedded-postgres/index.js'
import { removeInstallation } from '../../lab/installation.js'

const prefix = 'busbar-bench-'
/** Holds the id of the process that the folder belongs to. */
const ownerFile = 'benchmark.pid'
/** Where a platform of a benchmark has its data, and databases that it was given, in such a folder. */
const platformFolder = 'data'
export const databaseFolder = 'database'

const own = new Set<string>()
/** Ends processes that were started, which have containers of their own. */
const processes = new Set<() => Promise<void>>()

/** A folder of this benchmark. An embedded PostgreSQL that was started by root runs as another user and must get at its data. */
export async function temporaryFolder(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), prefix))
  await chmod(directory, 0o711)
  await writeFile(join(directory, ownerFile), String(process.pid))
  own.add(directory)
  return directory
}

/** With all that a platform whose data is in it has on the engine, and a database server that runs in it. */
export async function removeFolder(directory: string): Promise<void> {
  await removeInstallation({ directory: join(directory, platformFolder) }).catch((error: unknown) => {
    // Where there is no engine, nothing is on one.
    if (!['ENOENT', 'ECONNREFUSED'].includes(String((error as NodeJS.ErrnoException).code))) throw error
  })
  for (const folder of [databaseFolder, platformFolder]) await stopEmbedded(join(directory, folder))
  await rm(directory, { recursive: true, force: true })
  own.delete(directory)
}

/** Ends with this benchmark, however it ends; call what is returned when it has ended by itself. */
export function endsWithBenchmark(stop: () => Promise<void>): () => void {
  processes.add(stop)
  return () => processes.delete(stop)
}

/** What benchmarks have left whose process is gone: one that was killed can take nothing away. */
export async function removeLeftovers(): Promise<void> {
  for (const name of (await readdir(tmpdir())).filter(one => one.startsWith(prefix))) {
    const directory = join(tmpdir(), name)
    const owner = Number(await readFile(join(directory, ownerFile), 'utf8').catch(() => ''))
    if (owner > 0 && !isAlive(owner)) await removeFolder(directory)
  }
}

/** On SIGTERM and SIGINT everything is taken away before the end. */
export function removeOnSignals(): void {
  let isEnding = false
  const end = (signal: NodeJS.Signals): void => {
    if (isEnding) return
    isEnding = true
    console.error(`${signal}: what was made is taken away`)
    const removing = async (): Promise<void> => {
      await Promise.all([...processes].map(async stop => await stop()))
      for (const directory of [...own]) await removeFolder(directory)
    }
    removing().then(
      () => process.exit(1),
      (error: unknown) => {
        console.error(error)
        process.exit(1)
      }
    )
  }
  process.on('SIGTERM', end)
  process.on('SIGINT', end)
}
