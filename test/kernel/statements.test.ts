import { setTimeout as sleep } from 'node:timers/promises'
import { createTestKernel, type TestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { statementsOf } from '../../lab/statements.js'

/** What a token is used for is written beside its first request: that has ended when it can be read. */
async function usesWritten(k: TestKernel, count: number): Promise<void> {
  for (let n = 0; n < 600; n++) {
    const [uses] = await k.query<{ uses: number; tokens: number }>(`
      select (select cast(count(*) as int) from identity.access_token_use) as uses,
        (select cast(count(*) as int) from identity.access_token where last_used_at is not null) as tokens`)
    if (uses?.uses === count && uses.tokens > 0) return
    await sleep(20)
  }
  throw new Error('the use of a token was not written')
}

test('one GET of one application, or of one project, is one SQL statement', async t => {
  const k = await createTestKernel()
  t.teardown(async () => {
    await k.close()
  })
  const admin = await k.as.session()
  const project = (await admin.post('/api/projects', { name: 'Shop', slug: 'shop' })).body.id as string
  const {
    body: { id }
  } = await admin.post(`/api/projects/${project}/applications`, {
    name: 'web',
    type: 'image',
    build_type: 'image',
    source_image: 'busybox:lab'
  })
  const token = await k.as.token('read')
  let asked = 0
  for (const path of [`/api/projects/${project}`, `/api/projects/${project}/applications/${id as string}`]) {
    await token.get(path)
    await usesWritten(k, ++asked)
    let status = 0
    const statements = await statementsOf(async () => {
      status = (await token.get(path)).status
    })
    t.equal(status, 200)
    t.equal(statements.length, 1, `${path}: ${statements.join(' | ')}`)
  }
})
