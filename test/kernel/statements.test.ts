import { createTestKernel } from 'busbar/sdk/testing'
import pg from 'pg'
import { test } from 'tap'

/** What is sent to PostgreSQL while `work` runs. */
async function statementsOf (work: () => Promise<unknown>): Promise<string[]> {
  const seen: string[] = []
  const { prototype } = pg.Client
  const original = prototype.query
  prototype.query = function (this: pg.Client, ...args: unknown[]) {
    const [query] = args as [{ text?: string } | string]
    seen.push(typeof query === 'string' ? query : query.text ?? 'submittable')
    return Reflect.apply(original, this, args) as never
  } as typeof original
  try {
    await work()
  } finally {
    prototype.query = original
  }
  return seen
}

test('one GET of one application, or of one project, is one SQL statement', async t => {
  const k = await createTestKernel()
  t.teardown(async () => { await k.close() })
  const admin = await k.as.session()
  const project = (await admin.post('/api/projects', { name: 'Shop', slug: 'shop' })).body.id as string
  const { body: { id } } = await admin.post(`/api/projects/${project}/applications`, { name: 'web', type: 'image', build_type: 'image', source_image: 'busybox:lab' })
  const token = await k.as.token('read')
  for (const path of [`/api/projects/${project}`, `/api/projects/${project}/applications/${id as string}`]) {
    await token.get(path)
    let status = 0
    const statements = await statementsOf(async () => { status = (await token.get(path)).status })
    t.equal(status, 200)
    t.equal(statements.length, 1, `${path}: ${statements.join(' | ')}`)
  }
})
