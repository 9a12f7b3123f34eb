import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireSecondEngine } from '../../../lab/second-engine.js'
import { mebi, openSmallEngine, serving } from './small-engine.js'

/** Into a file that is open and has no name any more. */
const writeNameless = (mib: number): string =>
  `exec 3>/kept/file; rm /kept/file; dd if=/dev/urandom bs=1M count=${mib} >&3; sleep 1000`

test('what applications take of a disk by files that are open and have no name any more', async t => {
  if (!(await requireSecondEngine(t))) return
  const { lab, disk, untilSaid } = await openSmallEngine(t, { diskBytes: 720 * mebi })
  const other = await lab.otherProject('other', serving('dd if=/dev/urandom of=/kept/file bs=1M count=60'))
  t.match(await other.deployed(), { status: 'success', error_message: null })

  await t.test('one that takes the last of it is removed, and no other is', async t => {
    const taker = await lab.application('taker', serving(writeNameless(2000)))
    const { id } = await taker.deployed()
    await until(async () => (await taker.containers()).length === 0, 'its container to be gone', 60_000)
    await until(async () => {
      const { bavail, bsize } = await disk()
      return bavail * bsize > 400 * mebi
    }, 'the disk to have room again')
    await until(async () => (await taker.read()).status === 'stopped', 'its status to say so')
    await untilSaid(taker, id, /what it had written was removed.* in files that are open without a name/)
    t.equal((await other.read()).status, 'running')
    t.equal((await other.containers()).length, 1)
  })

  await t.test('one that holds more than it may is stopped while there is room', async t => {
    await lab.k.configure('deployments', { container_disk_mib: 96 })
    const taker = await lab.application('holder', serving(writeNameless(140)))
    const { id } = await taker.deployed()
    await until(async () => (await taker.read()).status === 'stopped', 'it to be stopped', 90_000)
    await untilSaid(taker, id, /has written (?:9[6-9]|1\d\d) MiB .*without a name, and 96 MiB are allowed/)
    t.equal((await other.read()).status, 'running')
  })
})
