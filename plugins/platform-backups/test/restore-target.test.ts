import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { BulkConnection, Installation } from 'busbar/sdk'
import { type Test, test } from 'tap'
import { requireRoot } from '../../../lab/requirements.js'
import type { Manifest } from '../archive/manifest.js'
import { checkTarget, RestoreError, type RestoreTarget, refuseOtherKeys } from '../restore/restore-target.js'
import { folder } from './faults-kit.js'

interface Server {
  readonly major: number
  /** Whether the lock of restores was free. */
  readonly held: boolean
  /** Backends of a platform. */
  readonly running: number
  /** All schemas of the database. */
  readonly schemas: readonly string[]
  /** Those of them that are a platform's. */
  readonly present: readonly string[]
}

const ready: Server = { major: 17, held: true, running: 0, schemas: ['public'], present: [] }
const manifest = {
  release: '0.1.0',
  catalog: { schemas: ['kernel', 'projects'] },
  keys: null,
  key_ids: ['v1']
} as unknown as Manifest

const connectionTo = (server: Server): BulkConnection =>
  ({
    query: async (text: string, values: readonly unknown[] = []) => {
      if (text.includes('server_version_num')) return [{ major: server.major, held: server.held }]
      if (text.includes('pg_stat_activity'))
        return Array.from({ length: server.running }, (_, pid) => ({ pid }))
      if (text.includes('pg_namespace')) {
        const [asked] = values as [readonly string[]]
        return server.schemas.filter(name => asked.includes(name)).map(name => ({ name }))
      }
      throw new Error(`asked ${text}`)
    }
  }) as unknown as BulkConnection

interface Asked {
  readonly server?: Partial<Server>
  readonly archive?: Partial<Manifest>
  readonly release?: string
  readonly directory?: string
  /** Ids of keys that are here. */
  readonly stored?: readonly string[]
  readonly given?: readonly string[]
  readonly replace?: boolean
  readonly withoutKeys?: boolean
}

/** What speaks against a restore; that it may be begun where nothing does. */
async function check(
  t: Test,
  {
    server = {},
    archive = {},
    release = '0.1.0',
    directory,
    stored = ['v1'],
    given = [],
    replace = false,
    withoutKeys = false
  }: Asked
): Promise<string> {
  const found = { ...ready, ...server }
  const target = {
    directory: directory ?? (await folder(t)),
    release,
    environmentKeys: new Map(given.map(id => [id, 'key'])),
    installation: {
      keys: () => ({ current: 'v1', keys: Object.fromEntries(stored.map(id => [id, 'key'])) }),
      schemas: async () => found.present
    } as unknown as Installation
  } as unknown as RestoreTarget
  return await checkTarget(
    target,
    connectionTo(found),
    { ...manifest, ...archive },
    { replace, withoutKeys }
  ).then(
    () => 'begun',
    (error: unknown) => {
      if (!(error instanceof RestoreError)) throw error
      return error.message
    }
  )
}

test('archives of a later release are refused, and earlier ones are not', async t => {
  const archive = { release: '0.3.0' }
  t.match(
    await check(t, { archive, release: '0.2.9' }),
    /is of release 0\.3\.0, and this is 0\.2\.9: restore it with/
  )
  for (const release of ['0.3.0', '0.10.0', '1.0.0'])
    t.equal(await check(t, { archive, release }), 'begun', release)
})

test('a server before PostgreSQL 15 is refused', async t => {
  t.match(await check(t, { server: { major: 14 } }), /needs PostgreSQL 15 or later, and this is 14/)
  t.equal(await check(t, { server: { major: 15 } }), 'begun')
})

test('one restore is under way at a time, and none while a platform runs', async t => {
  t.match(await check(t, { server: { held: false } }), /another restore is under way/)
  t.match(await check(t, { server: { running: 1 } }), /a platform is running on this database: stop it first/)
})

test('schemas of somebody else are left alone, and those of a platform unless they are to be replaced', async t => {
  const strange = { schemas: ['public', 'projects'] }
  t.match(
    await check(t, { server: strange }),
    /schemas of other programs that are called as the platform's: projects\. Give the platform a database of its own/
  )
  t.match(await check(t, { server: { ...strange, present: ['kernel'] }, replace: true }), /: projects\./)
  const platform = { schemas: ['kernel', 'projects', 'other'], present: ['kernel', 'projects'] }
  t.match(await check(t, { server: platform }), /there is a platform with data here already/)
  t.equal(await check(t, { server: platform, replace: true }), 'begun')
  t.equal(
    await check(t, { server: { schemas: ['public', 'other'] } }),
    'begun',
    'another name is in nobody’s way'
  )
})

test('keys that are nowhere are asked for, unless it is to be without them', async t => {
  const archive = { key_ids: ['v1', 'v2'] }
  t.match(await check(t, { archive, stored: ['v1'] }), /are not here: v2\. Put its keys\.json/)
  t.equal(await check(t, { archive, stored: ['v1'], given: ['v2'] }), 'begun')
  t.equal(await check(t, { archive, stored: [], withoutKeys: true }), 'begun')
  const keys = { name: 'keys', bytes: 1, pieces: 1, sha256: '' }
  t.equal(await check(t, { archive: { ...archive, keys }, stored: [] }), 'begun', 'they are in the archive')
})

test('a key of the environment with the id of another one is refused', t => {
  const restored = { v1: 'aa', v2: 'bb' }
  t.throws(
    () => refuseOtherKeys(new Map([['v2', 'cc']]), restored),
    new RestoreError(
      'the environment gives key v2 another value than the archive has: unset ENCRYPTION_KEY and ENCRYPTION_KEYS, or set what the installation had'
    )
  )
  refuseOtherKeys(
    new Map([
      ['v2', 'bb'],
      ['v3', 'cc']
    ]),
    restored
  )
  t.end()
})

test('what is put into place by renames must not be a file system of its own', async t => {
  if (!requireRoot(t, 'mounts a disk')) return
  for (const place of ['plugins', 'data', 'data/notes']) {
    const directory = await folder(t)
    const mounted = join(directory, place)
    await mkdir(mounted, { recursive: true })
    t.equal(await check(t, { directory }), 'begun')
    await promisify(execFile)('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', mounted])
    const refusal = await check(t, { directory }).finally(async () => {
      await promisify(execFile)('umount', [mounted])
    })
    t.equal(
      refusal,
      `${mounted} is a file system of its own: unmount it for the restore, and put what is then there back on it`
    )
  }
})
