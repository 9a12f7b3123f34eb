import { randomUUID } from 'node:crypto'
import type { BackupWork, CheckFacts, RemovedResource, StoredDump } from 'busbar/api/backups'
import { whileThereIsRoom } from 'busbar/api/builds'
import type { DatabaseRow } from '../records/database-row.js'
import { newRow } from '../records/new-row.js'
import { checkVolumeOf, isCheckVolume } from '../records/slug.js'
import { filesFormat } from '../servers/file-formats.js'
import { notThere } from '../servers/side-servers.js'
import { assertFormat, partOf, type RunKit, sumOf } from './run-kit.js'

/** Proves backups: brings them back into servers that are thrown away. */
export class DrillRunner {
  constructor(private readonly kit: RunKit) {}

  /** What it has made goes, whatever comes of it. */
  async check(of: RemovedResource, dump: StoredDump, { signal, say }: BackupWork): Promise<CheckFacts> {
    const { kit } = this
    const { engines, images, sealed, store, clock, log } = kit.parts
    const { runtime, side, files } = kit.tools()
    const present = await store.find(of.id)
    const kind = engines.kindOf(of.engine)
    const engine = await engines.of(of.engine)
    const credentials =
      kind.defaults === null
        ? present === undefined
          ? {}
          : sealed.open(present)
        : engine.newCredentials(
            { user: 'busbar_check' },
            {
              name: of.name,
              slug: of.slug,
              password: () => `${randomUUID()}${randomUUID()}`.replace(/-/g, '')
            }
          )
    const volume = checkVolumeOf(of.slug, partOf())
    const now = clock.now()
    const row: DatabaseRow = {
      ...(present ?? missingRow(of, now)),
      version: dump.version,
      image: kind.defaults === null ? (present?.image ?? '') : kind.image(dump.version),
      image_reference: present?.version === dump.version ? present.image_reference : null,
      container_port: present?.container_port ?? kind.defaults?.port ?? 0,
      credentials: sealed.seal(of.id, credentials),
      initialized_at: null,
      // It is to disturb nobody.
      cpu_limit: 0,
      memory_limit: present?.memory_limit ?? 0
    }
    try {
      if (engine.dump === null && present === undefined) throw new Error(notStarted)
      assertFormat(engine.dump?.format ?? filesFormat(row), dump.format)
      const image = await images.again(row, { say, signal })
      const wish = { role: 'check', imageName: image.name, volume, isEmpty: engine.dump !== null } as const
      return await whileThereIsRoom(kit.parts, signal, async bounds => {
        if (engine.dump === null) {
          await files.restore(row, wish, dump.content, { say, signal: bounds })
          // What is in the files, nobody here can ask: that a server of the same image starts with them is the proof.
          await side.open(row, wish, bounds)
          return {
            rows: 0,
            detail: `${dump.bytes} bytes of files, with which its server starts and takes connections`
          }
        }
        const server = await side.open(row, wish, bounds)
        await kit.feed(side, server, dump, bounds)
        const counted = await side.count(server, bounds)
        const missing = dump.databases.find(name => !counted.has(name))
        if (missing !== undefined) throw notThere(missing)
        return { rows: sumOf(counted), detail: `${counted.size} databases` }
      })
    } finally {
      await this.settle(of.id).catch((error: unknown) => {
        log.warn({ err: error, databaseId: of.id }, 'what a drill has made could not be removed')
      })
      await runtime.removeVolume(volume).catch(() => {})
    }
  }

  /** Only what a drill has made: a backup may be under way beside it. */
  async settle(id: string): Promise<void> {
    const { runtime } = this.kit.tools()
    for (const container of await runtime.list({ databaseId: id }))
      if (container.name.endsWith('-check')) await runtime.remove(container.id)
    for (const name of await runtime.volumeNames({ databaseId: id }))
      if (isCheckVolume(name)) await runtime.removeVolume(name)
  }
}

const notStarted =
  'the database is gone, and with it what is known of its image: no server can be started with these files. Restore it to see whether they are good'

/** Of a database that is gone. */
const missingRow = (of: RemovedResource, now: Date): DatabaseRow => ({
  ...newRow(now),
  id: of.id,
  project_id: of.projectId,
  name: of.name,
  slug: of.slug,
  type: of.engine,
  version: of.version,
  task: null,
  image: null,
  image_reference: null,
  container_port: 0,
  data_dir: null,
  backup_mode: 'none',
  backup_command: null,
  restore_command: null,
  credentials: '',
  cpu_limit: 0,
  memory_limit: 0,
  volume: ''
})
