import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import { DeploymentStore } from '../records/deployment-store.js'
import { openDatabase } from './store-database.js'

/** The columns of deployments from which it is read. */
const deployments = {
  name: '001-deployments',
  phase: 'expand',
  sql: `create table $schema.deployment (
    id uuid primary key, application_id uuid not null, status text not null, image_tag text,
    started_at timestamptz not null)`
} as const

test('the image of a deployment that failed is a cache, and no application needs it', async t => {
  const { database } = await openDatabase(t, deployments)
  const store = new DeploymentStore(database)
  const applicationId = randomUUID()
  let age = 0
  const add = async (status: string, image_tag: string): Promise<string> => {
    const id = randomUUID()
    await database.sql(
      'insert into $schema.deployment (id, application_id, status, image_tag, started_at) values (?, ?, ?, ?, ?)',
      [id, applicationId, status, image_tag, new Date(1e12 + age++)]
    )
    return id
  }
  const kept = async (servingId: string | null) => {
    const { tags, needed, active } = await store.keptImages(applicationId, servingId, 1)
    return { tags: [...tags].sort(), needed: [...needed].sort(), active }
  }
  t.same(await kept(null), { tags: [], needed: [], active: [] })
  const serving = await add('success', 'serving')
  await add('success', 'newest')
  await add('failed', 'failed earlier')
  await add('failed', 'latest')
  t.same(await kept(serving), {
    tags: ['latest', 'newest', 'serving'],
    needed: ['newest', 'serving'],
    active: []
  })
  t.same((await kept(null)).needed, ['newest'], 'nothing serves')
  const moving = await add('deploying', 'moving')
  t.same(await kept(serving), {
    tags: ['moving', 'newest', 'serving'],
    needed: ['moving', 'newest', 'serving'],
    active: [moving]
  })
})
