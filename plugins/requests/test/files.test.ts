import { appendFile, copyFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createTestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { type FilesLab, lineOf, lines, loggingProxy, openFilesLab, paths } from './files-lab.js'
import { stored, storedPaths } from './requests-lab.js'

takeAwayFromEngine()

/** As a proxy does it: what is written next goes to a new file. */
const rotate = async ({ path, folder }: FilesLab, as: string): Promise<void> =>
  await rename(path, join(folder, `access-${as}.log`))

test('lines are stored as they come, and what is none harms no other', async t => {
  const lab = await openFilesLab(t)
  await lab.append(lines(0, 2))
  await stored(lab.k, 2)
  await lab.append('{"path": "/half')
  await lab.append('"}\r\n\n')
  await stored(lab.k, 3)
  await lab.append(
    [
      'no JSON',
      'null',
      'throw',
      '{"path": 5}',
      '{}{}',
      `{"path": "/${'x'.repeat(500_000)}"}`,
      lineOf({ path: '/\0\ud800', userAgent: '\0' }).trim(),
      ''
    ].join('\n')
  )
  await appendFile(lab.path, Buffer.from('{"path": "/\xff\xfe"}\n', 'latin1'))
  await lab.append('x'.repeat(5 * 2 ** 20))
  await lab.append(`\n${lines(3, 4)}`)
  await stored(lab.k, 6)
  t.same(await storedPaths(lab.k), ['/0', '/1', '/half', '/\ufffd\ufffd', '/\ufffd\ufffd', '/3'])
  const admin = await lab.k.as.session()
  const { body: text } = await admin.get('/metrics')
  t.match(text, /busbar_access_log_lines_skipped_total 2\n/, 'two lines were too long')
  t.match(text, /busbar_access_log_lines_unread_total 5\n/)
  t.match(text, /busbar_requests_recorded_total 6\n/)
})

test('a rotated file is read to its end before the one behind it, also where all happens while the platform is away', async t => {
  const lab = await openFilesLab(t)
  await lab.append(lines(0, 10))
  await stored(lab.k, 10)
  await lab.append(lines(10, 15))
  await rotate(lab, '2026-01-31T12-00-00')
  await lab.append(lines(15, 20))
  await stored(lab.k, 20)
  for (let n = 20; n < 60; n += 10) {
    await lab.append(lines(n, n + 10))
    await rotate(lab, `2026-01-31T13-00-${n}`)
  }
  await lab.append(lines(60, 65))
  await stored(lab.k, 65)

  await lab.append(lines(65, 70))
  await lab.stop()
  await lab.append(lines(70, 80))
  await rotate(lab, '2026-01-31T14-00-00')
  await lab.append(lines(80, 90))
  await rotate(lab, '2026-01-31T15-00-00')
  await lab.append(lines(90, 99))
  await lab.append('{"path": "/99')
  await lab.start()
  await stored(lab.k, 99)
  await lab.append('"}\n')
  await stored(lab.k, 100)
  t.same(await storedPaths(lab.k), paths(0, 100), 'each once, in their order')

  await t.test('what is compressed before it was read is missed, and what follows is read', async t => {
    await lab.stop()
    await lab.append(lines(100, 110))
    await rotate(lab, '2026-01-31T16-00-00')
    await rm(join(lab.folder, 'access-2026-01-31T16-00-00.log'))
    await lab.append(lines(110, 115))
    await rotate(lab, '2026-01-31T17-00-00')
    await lab.append(lines(115, 120))
    await lab.start()
    await stored(lab.k, 110)
    t.same(await storedPaths(lab.k), [...paths(0, 100), ...paths(110, 120)])
  })
})

test('a file that is cut down is read from its beginning, and a copy of it to its end', async t => {
  const lab = await openFilesLab(t)
  await lab.append(lines(0, 10))
  await stored(lab.k, 10)
  await truncate(lab.path)
  await lab.append(lines(10, 12))
  await stored(lab.k, 12)
  // Longer than before at once.
  await writeFile(lab.path, lines(12, 30))
  await stored(lab.k, 30)

  await lab.stop()
  await lab.append(lines(30, 35))
  await copyFile(lab.path, join(lab.folder, 'access.log.1'))
  await truncate(lab.path)
  await lab.append(lines(35, 36))
  await lab.start()
  await stored(lab.k, 36)
  await rm(lab.path)
  await lab.append(lines(36, 38))
  await stored(lab.k, 38)
  t.same(await storedPaths(lab.k), paths(0, 38))
})

test('a backlog is read in pieces, while others are served', async t => {
  const lab = await openFilesLab(t, { watchesEventLoop: true })
  await lab.stop()
  await lab.append(lines(0, 30_000))
  await lab.start()
  const admin = await lab.k.as.session()
  await until(async () => {
    lab.k.resetRateLimits()
    t.equal((await admin.get('/api/version')).status, 200)
    return (await lab.k.query<{ n: number }>('select count(*) as n from requests.request'))[0]?.n === 30_000
  }, 'all of it is stored')
  t.same(await storedPaths(lab.k), paths(0, 30_000))
})

test('of two processes one reads, and when it goes the other reads on', async t => {
  const lab = await openFilesLab(t)
  const two = await createTestKernel({ state: lab.k.state, inline: [loggingProxy(lab.path)] })
  t.teardown(() => two.stop())
  await lab.append(lines(0, 100))
  await stored(two, 100)
  await lab.stop()
  await lab.append(lines(100, 200))
  await stored(two, 200)

  await t.test('one that was wrong about its turn stores nothing of another', async t => {
    // As if another process had read on.
    await two.query(
      'update requests.access_log set place = place + (select 2 * length(\'{"path":"/200"}\') + 2)'
    )
    await lab.append('{"path":"/200"}\n{"path":"/201"}\n{"path":"/202"}\n')
    await stored(two, 201)
    t.same(await storedPaths(two), [...paths(0, 200), '/202'])
  })
})
