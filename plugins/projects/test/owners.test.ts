import { createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'

test('a project that is made by, or given to, a user who is deleted at the same moment is refused', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const { body: project } = await admin.post('/api/projects', { name: 'x', slug: 'x' })
  const bob = await k.as.session('bob')
  const { userId = '' } = bob
  /** Makes `write` wait for the row of the user, deletes the user meanwhile, and lets it go on. */
  const raceAgainstDeletion = async <T>(write: () => Promise<T>): Promise<T> => {
    let answer: Promise<T> | undefined
    await k.transaction(async tx => {
      await k.query('delete from identity.user where id = $1', [userId], tx)
      answer = write()
      for (let n = 0; n < 600; n++) {
        const waiting = await k.query(
          "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        )
        if (waiting.length > 0) return
        await new Promise(resolve => setTimeout(resolve, 20))
      }
      throw new Error('nobody waits for the user')
    })
    return await (answer as Promise<T>)
  }
  await t.test('given to', async t => {
    const answer = await raceAgainstDeletion(
      async () => await admin.put(`/api/projects/${project.id}/transfer`, { user_id: userId })
    )
    t.match(answer, { status: 400, body: { code: 'E_PROJECT_NO_SUCH_USER' } })
  })
  await t.test('made by', async t => {
    const eve = await k.as.session('eve')
    t.equal((await eve.get('/api/projects')).status, 200)
    // Deleted behind the guard's back, as by another process a moment ago.
    await k.query('delete from identity.user where id = $1', [eve.userId])
    t.match(await eve.post('/api/projects', { name: 'y', slug: 'y' }), {
      status: 401,
      body: { code: 'E_ACCOUNT_GONE' }
    })
  })
})
