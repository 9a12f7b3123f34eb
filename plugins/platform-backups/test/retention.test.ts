import { test } from 'tap'
import { archiveName, readArchiveName } from '../archive/archive-name.js'
import { expired, type Retention } from '../retention.js'

const now = new Date('2026-11-28T12:00:00Z')
const [ours, theirs] = ['1a2b3c4d-0000-4000-8000-000000000000', '5e6f7a8b-0000-4000-8000-000000000000']
const run = '9f8e7d6c-0000-4000-8000-000000000000'
const daysBefore = (days: number): Date => new Date(now.getTime() - days * 86_400_000)
const daysAgo = (days: number, installation = ours): string =>
  archiveName(daysBefore(days), { encrypted: true, of: { installation, run } })
const formerDaysAgo = (days: number): string => archiveName(daysBefore(days), { encrypted: true })
const old = (names: readonly string[], retention: Retention, isFormerOwn = true): string[] =>
  expired(names, retention, now, { installation: '1a2b3c4d', isFormerOwn: () => isFormerOwn })

test('the newest are kept however old they are, and others for so many days', async t => {
  for (const named of [daysAgo, formerDaysAgo] as const) {
    const names = [0, 1, 2, 40, 50, 60].map(days => named(days))
    const those = (...days: readonly number[]): string[] => days.map(one => named(one))
    t.same(old(names, { days: 30, count: 1 }), those(40, 50, 60))
    t.same(old(names, { days: 30, count: 4 }), those(50, 60))
    t.same(old(names, { days: 30, count: 6 }), [])
    t.same(old(names, { days: 1, count: 1 }), those(2, 40, 50, 60))
  }
})

test('archives of before and after a change of names are counted together', async t => {
  const names = [daysAgo(0), daysAgo(40), formerDaysAgo(50), formerDaysAgo(60)]
  t.same(old(names, { days: 30, count: 3 }), [formerDaysAgo(60)])
})

test('archives of another installation stay, and are not counted', async t => {
  const names = [daysAgo(0), daysAgo(1, theirs), daysAgo(40), daysAgo(50), daysAgo(60, theirs)]
  t.same(old(names, { days: 30, count: 2 }), [daysAgo(50)])
  t.same(old([...names, formerDaysAgo(60)], { days: 30, count: 2 }, false), [daysAgo(50)])
})

test('what has another name than the platform gives stays', async t => {
  const at = new Date('2020-01-01T00:00:00Z')
  const kept = archiveName(at, { encrypted: false, kind: 'before-restore' })
  t.same(old(['notes.txt', 'busbar-backup-latest.tar.gz', kept, 'keys.json'], { days: 1, count: 0 }), [])
  t.same(old([archiveName(at, { encrypted: false })], { days: 1, count: 0 }).length, 1)
})

test('an archive is named by the second in which it was begun, by its installation and its run', async t => {
  const name = archiveName(new Date('2026-11-28T02:03:04.567Z'), {
    encrypted: true,
    of: { installation: ours, run }
  })
  t.equal(name, 'busbar-backup-20261128T020304Z-1a2b3c4d-9f8e7d6c.tar.gz.age')
  const at = new Date('2026-11-28T02:03:04Z')
  t.same(readArchiveName(name), { at, installation: '1a2b3c4d', isScheduled: true })
  t.same(readArchiveName('busbar-backup-20261128T020304Z.tar.gz'), {
    at,
    installation: null,
    isScheduled: true
  })
  for (const none of ['Z.zip', 'Z-1a2b3c4d.tar.gz', 'Z-1a2b3c4d-9f8e7d6.tar.gz'])
    t.equal(readArchiveName(`busbar-backup-20261128T020304${none}`), undefined)
})
