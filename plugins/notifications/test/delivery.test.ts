import { randomUUID } from 'node:crypto'
import { deploymentFinished } from 'busbar/api/deployments'
import { definePlugin, kernel } from 'busbar/sdk'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { statementsOf } from '../../../lab/statements.js'
import { inboxSize } from '../delivery.js'
import {
  addMember,
  delivered,
  holds,
  itemsOf,
  makeProject,
  tell,
  titlesOf,
  toProject,
  toUser,
  url
} from './inbox-lab.js'

takeAwayFromEngine()

const preferences = '/api/account/alert-preferences'

test('who has declined an alert is not told of it, from then on', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const [ann, vic] = [await k.as.session('ann'), await k.as.session('vic')]
  const project = await makeProject(ann)
  const audience = toProject(project)
  await k.disable('notifications')
  await addMember(k, ann, project, 'vic')
  await k.enable('notifications')
  await tell(k, { audience, preference: 'deploy_success', title: 'first' })
  await holds(vic, 1)
  await vic.put(preferences, { deploy_success: false })
  await tell(k, { audience, preference: 'deploy_success', title: 'second' })
  await tell(k, { audience, preference: 'deploy_failures', title: 'third' })
  await tell(k, { audience, title: 'fourth' })
  await holds(ann, 4)
  t.same((await titlesOf(vic)).sort(), ['first', 'fourth', 'third'])
  await tell(k, { audience: toUser(vic.userId), preference: 'deploy_success', title: 'fifth' })
  await delivered(k)
  t.equal((await titlesOf(vic)).length, 3, 'also what is for one user alone')
})

test('one that is delivered again is told once, whoever delivers it', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const two = await createTestKernel({ state: k.state })
  t.teardown(() => two.stop())
  const ann = await k.as.session('ann')
  const ids = Array.from({ length: 20 }, () => randomUUID())
  await Promise.all(
    ids.flatMap(id =>
      [k, two, k].map(async one => await tell(one, { id, audience: toUser(ann.userId), title: id }))
    )
  )
  await delivered(k)
  t.same((await titlesOf(ann)).sort(), [...ids].sort())
  const positions = await k.query<{ position: number }>(
    'select position from notifications.entry order by position'
  )
  t.same(
    positions.map(({ position }) => position),
    ids.map((_, n) => n + 1),
    'each has a place of its own'
  )
})

test('what happens while the plugin is reloaded, or between two runs of the platform, is told once', async t => {
  const k = await createTestKernel()
  const ann = await k.as.session('ann')
  const project = await makeProject(ann)
  const emit = async (on: TestKernel, application: string) =>
    await on.emit(deploymentFinished, {
      deploymentId: randomUUID(),
      applicationId: randomUUID(),
      projectId: project,
      status: 'success',
      kind: 'deploy',
      application,
      isCancelled: false,
      error: null
    })
  await emit(k, 'one')
  await holds(ann, 1)
  await k.reload('notifications')
  await emit(k, 'two')
  await holds(ann, 2)
  await k.holdJobs('notifications')
  await emit(k, 'three')
  t.equal((await titlesOf(ann)).length, 2, 'it waits in the queue')
  await k.stop()
  const again = await createTestKernel({ state: k.state })
  t.teardown(() => again.close())
  const there = await again.as.session('ann')
  await holds(there, 3)
  await delivered(again)
  t.same(
    (await titlesOf(there)).sort(),
    ['one', 'three', 'two'].map(name => `Deployment of ${name} succeeded`)
  )
  await again.disable('notifications')
  await emit(again, 'four')
  await again.enable('notifications')
  await emit(again, 'five')
  await holds(there, 4)
  t.notOk(
    (await titlesOf(there)).some(title => title.includes('four')),
    'what happens while it is off is not meant for it'
  )
})

test('it takes as many statements for two hundred members as for one', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const [small, large] = [await makeProject(ann, 'small'), await makeProject(ann, 'large')]
  await k.query(`
    insert into identity.user (id, email, username, first_name, last_name, role, password_hash, created_at, updated_at, last_active_at)
    select gen_random_uuid(), 'user' || n || '@example.com', '', '', '', 'member', '', now(), now(), now() from generate_series(1, 200) n`)
  await k.query(
    `insert into projects.member (project_id, user_id, role, created_at)
    select $1, id, 'viewer', now() - interval '1 day' from identity.user where email like 'user%'`,
    [large]
  )
  const told = async (project: string): Promise<number> =>
    (
      await statementsOf(async () => {
        await tell(k, { audience: toProject(project), preference: 'deploy_success' })
        await delivered(k)
      })
    ).filter(text => /identity|projects|notifications\./.test(text) && !text.includes('graphile_worker'))
      .length
  // What is prepared on a connection for the first time is one more, and what is done by the clock may come between.
  const least = async (project: string): Promise<number> =>
    Math.min(await told(project), await told(project), await told(project))
  t.equal(await least(large), await least(small))
  t.equal((await k.query('select 1 from notifications.entry')).length, 3 * 201 + 3)
})

test('an inbox holds a thousand, and the oldest go', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  await tell(k, { audience: toUser(ann.userId), title: 'the first' })
  await holds(ann, 1)
  await k.query(
    `with notice as (
      insert into notifications.notice (id, type, title, body, is_for_admins, created_at)
      select gen_random_uuid(), 'a.b', n::text, '', false, now() from generate_series(1, $1) n returning id)
    insert into notifications.entry (user_id, position, notice_id, created_at)
    select $2, 1 + row_number() over (), id, now() from notice`,
    [inboxSize - 1, ann.userId]
  )
  await k.query('update notifications.inbox set last_position = $1', [inboxSize])
  t.same((await ann.get(`${url}/unread-count`)).body, { unread: inboxSize })
  await tell(k, { audience: toUser(ann.userId), title: 'the last' })
  await until(async () => (await itemsOf(ann, '?limit=1'))[0]?.title === 'the last', 'the last one is there')
  t.same((await ann.get(`${url}/unread-count`)).body, { unread: inboxSize })
  t.same(
    await k.query(
      "select 1 from notifications.entry e join notifications.notice n on n.id = e.notice_id where n.title = 'the first'"
    ),
    []
  )
})

test('secrets of the installation are in no notification', async t => {
  const secret = 'the password of the mail server'
  const k = await createTestKernel({
    inline: [
      {
        manifest: { id: 'keeper', grants: ['secrets'] },
        definition: definePlugin({
          id: 'keeper',
          needs: { secrets: kernel.secrets },
          start({ use, onStop }) {
            onStop(use.secrets.redact([secret]))
            return {}
          }
        })
      }
    ]
  })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  await tell(k, {
    audience: toUser(ann.userId),
    title: `It was ${secret}!`,
    body: secret,
    link: `/${secret}`
  })
  await holds(ann, 1)
  t.match(await itemsOf(ann), [{ title: 'It was [REDACTED]!', body: '[REDACTED]', link: '/[REDACTED]' }])
})
