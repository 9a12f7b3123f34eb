import { test } from 'tap'
import { archiveName, archiveTime } from '../archive/archive-name.js'
import { expired } from '../retention.js'

const now = new Date('2026-11-28T12:00:00Z')
const daysAgo = (days: number): string =>
  archiveName(new Date(now.getTime() - days * 86_400_000), { encrypted: true })

test('the newest are kept however old they are, and others for so many days', async t => {
  const names = [0, 1, 2, 40, 50, 60].map(daysAgo)
  t.same(expired(names, { days: 30, count: 1 }, now), [40, 50, 60].map(daysAgo))
  t.same(expired(names, { days: 30, count: 4 }, now), [50, 60].map(daysAgo))
  t.same(expired(names, { days: 30, count: 6 }, now), [])
  t.same(expired(names, { days: 1, count: 1 }, now), [2, 40, 50, 60].map(daysAgo))
})

test('what has another name than the platform gives stays', async t => {
  const old = new Date('2020-01-01T00:00:00Z')
  const kept = archiveName(old, { encrypted: false, kind: 'before-restore' })
  t.same(
    expired(['notes.txt', 'busbar-backup-latest.tar.gz', kept, 'keys.json'], { days: 1, count: 0 }, now),
    []
  )
  t.same(expired([archiveName(old, { encrypted: false })], { days: 1, count: 0 }, now).length, 1)
})

test('an archive is named by the second in which it was begun', async t => {
  const name = archiveName(new Date('2026-11-28T02:03:04.567Z'), { encrypted: true })
  t.equal(name, 'busbar-backup-20261128T020304Z.tar.gz.age')
  t.same(archiveTime(name), new Date('2026-11-28T02:03:04Z'))
  t.equal(archiveTime('busbar-backup-20261128T020304Z.zip'), undefined)
})
