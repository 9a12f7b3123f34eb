import type { Test } from 'tap'
import { type Installation, installation } from '../plugins/third-party-kit.js'

/** A small third-party plugin that owns a kind of resource in projects, as text. */
const lockers = `
  needs: { db: kernel.database, events: kernel.events, resources: kernel.resources },
  migrations: [{ name: '001-create', phase: 'expand', sql: \`
    create table $schema.locker (
      id uuid primary key,
      project_id uuid not null references projects.project (id) on delete restrict,
      label text not null,
      deleting_at timestamptz
    )\` }],
  start: ({ use }) => use,
  provides: provide => { provide(lockerKeys, { find: async () => 'the key' }) },
  resources: resource => {
    resource({
      kind: 'locker',
      table: 'locker',
      name: 'label',
      parents: { project: 'project_id' },
      removal: {
        teardown: lockerTeardown,
        run: async row => {
          globalThis.lockerLog.push('empty ' + row.label)
          if (globalThis.lockerFailures-- > 0) throw new Error('the key is lost')
        },
        deleted: async (row, tx, { events }) => {
          globalThis.lockerLog.push('delete ' + row.label)
          await events.emit(lockerDeleted, { label: row.label }, tx)
        }
      }
    })
  },
  events: on => {
    on(lockerDeleted, ({ label }) => { globalThis.lockerLog.push('deleted ' + label) })
  },
  routes: route => {
    const url = '/api/x/lockers/projects/:projectId/lockers/:lockerId'
    const access = { project: { param: 'projectId', chain: { lockerId: 'locker' } } }
    route({ method: 'GET', url, summary: 's', access: allow.token('read', access), handler: ({ params }) => ({ id: params.lockerId }) })
    route({
      method: 'DELETE', url, summary: 's', access: allow.token('write', access),
      audit: { action: 'delete_locker', resource: 'locker', id: { param: 'lockerId' } },
      handler: async ({ project, params }, { db, resources }) => ({
        removed: await db.transaction(async tx => await resources.remove({ kind: 'locker', id: params.lockerId, project }, tx))
      })
    })
  }`

/** Another one, which keeps rows of lockers and asks their plugin for something. */
const tags = `
  needs: { db: kernel.database, keys: lockerKeys },
  migrations: [{ name: '001-create', phase: 'expand', sql:
    'create table $schema.tag (locker_id uuid not null references x_lockers.locker (id) on delete restrict)' }],
  start: ({ use }) => use,
  contributes: (contribute, { db, keys }) => {
    contribute(lockerTeardown, 'tags', {
      teardown: async id => {
        globalThis.lockerLog.push('untag with ' + await keys.find(id))
        await db.sql('delete from $schema.tag where locker_id = ?', [id])
      }
    })
  }`

const before = `
const lockerTeardown = extensionPoint('lockers.teardown')
const lockerDeleted = event('lockers.deleted')
const lockerKeys = service('lockers.keys')`

/** What the plugins of this file tell, and how often the last step of a removal is to fail. */
export const shared = globalThis as unknown as { lockerLog: string[]; lockerFailures: number }

interface Lockers extends Installation {
  /** A project of the admin with a locker that has a tag. */
  locker(label: string): Promise<{ readonly project: string; readonly id: string; readonly path: string }>
  isThere(table: string, id: string): Promise<boolean>
}

export async function openLockers(t: Test): Promise<Lockers> {
  shared.lockerLog = []
  shared.lockerFailures = 0
  const lab = await installation(t)
  const { k, admin, write, change } = lab
  await write('lockers', lockers, { before, manifest: { requires: { projects: '^0.1.0' }, grants } })
  await write('tags', tags, { before, manifest: { requires: { lockers: '^1.0.0' }, grants } })
  for (const id of ['lockers', 'tags']) t.match(await change(id, 'enable'), { status: 200 })
  const query = async (text: string, values: readonly unknown[]): Promise<object[]> =>
    await k.query(text, values)
  return {
    ...lab,
    locker: async label => {
      const { body } = await admin.post('/api/projects', { name: label, slug: label })
      const project = body.id as string
      const id = crypto.randomUUID()
      await query('insert into x_lockers.locker values ($1, $2, $3)', [id, project, label])
      await query('insert into x_tags.tag values ($1)', [id])
      return { project, id, path: `/api/x/lockers/projects/${project}/lockers/${id}` }
    },
    isThere: async (table, id) => (await query(`select 1 from ${table} where id = $1`, [id])).length > 0
  }
}

const grants = ['database', 'events', 'resources']
