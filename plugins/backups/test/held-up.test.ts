import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { createDatabase, createProject, ended, lines, openPlatform, pathOf } from './kit.js'

/** As many as there are workers for long jobs. */
const workers = 12

test('backups that are held up leave workers to everybody else', { timeout: 120_000 }, async t => {
  const opened = await openPlatform(t)
  const { admin, probe, project } = opened
  let release = (): void => {}
  probe.hold = new Promise(resolve => {
    release = resolve
  })
  t.teardown(() => release())
  const paths: string[] = []
  for (let number = 0; number < workers; number++) {
    const path = pathOf(project, await createDatabase(opened, `Held-${number}`, lines(10)))
    paths.push(path)
    t.equal((await admin.post(`${path}/backups`)).status, 202)
  }
  await until(() => probe.calls.filter(call => call.startsWith('dump')).length >= 2, 'backups to be held up')
  t.equal((await admin.post('/api/backups/run', {})).status, 202)
  await until(
    async () => (await admin.get('/api/backups')).body[0]?.status === 'succeeded',
    'the platform to be backed up beside them'
  )
  release()
  for (const path of paths) t.match(await ended(admin, `${path}/backups`), { status: 'succeeded' })
})

test(
  'backups of one owner that are held up leave workers to those of others',
  { timeout: 120_000 },
  async t => {
    const opened = await openPlatform(t)
    const { k, admin, probe, project } = opened
    let release = (): void => {}
    probe.hold = new Promise(resolve => {
      release = resolve
    })
    t.teardown(() => release())
    const paths: string[] = []
    for (let number = 0; number < workers; number++) {
      const path = pathOf(project, await createDatabase(opened, `Held-${number}`, lines(10)))
      paths.push(path)
      t.equal((await admin.post(`${path}/backups`)).status, 202)
    }
    const ben = await k.as.session('ben')
    const other = await createProject(ben, 'Other')
    const id = await createDatabase({ ...opened, project: other }, 'Free', lines(10))
    t.equal((await ben.post(`${pathOf(other, id)}/backups`)).status, 202)
    await until(
      () => probe.calls.some(call => call.startsWith('dump') && call.includes(id)),
      "another owner's backup to begin beside them"
    )
    release()
    for (const path of paths) t.match(await ended(admin, `${path}/backups`), { status: 'succeeded' })
  }
)
