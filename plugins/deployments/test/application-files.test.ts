import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireSecondEngine } from '../../../lab/second-engine.js'
import { openSmallEngine, serving } from './small-engine.js'

const makeFiles = (folder: string, count: number): string =>
  `mkdir ${folder}; cd ${folder}; seq 1 ${count} | xargs touch`

test('what applications take of a disk by files in which nothing is', async t => {
  if (!(await requireSecondEngine(t))) return
  const { lab, disk, untilSaid, makeWritable } = await openSmallEngine(t, { diskInodes: 40_000 })
  const other = await lab.otherProject('other', serving(makeFiles('/kept/files', 8000)))
  t.match(await other.deployed(), { status: 'success', error_message: null })
  await until(async () => (await disk()).ffree < 32_000, 'the other one to have made its files')

  for (const folder of ['/kept/files', '/files'])
    await t.test(
      `one that takes the last inodes by files in ${folder} loses them, and no other does`,
      async t => {
        const taker = await lab.application(
          `taker-${folder.split('/').length}`,
          serving(makeFiles(folder, 50_000))
        )
        await makeWritable(taker)
        const { id } = await taker.deployed()
        await until(async () => (await taker.containers()).length === 0, 'its container to be gone', 60_000)
        await until(async () => (await disk()).ffree > 20_000, 'the disk to have inodes again')
        await until(async () => (await taker.read()).status === 'stopped', 'its status to say so')
        await untilSaid(taker, id, /what it had made was removed, \d+ files and directories/)
        t.equal((await other.read()).status, 'running')
        t.equal((await other.containers()).length, 1)
      }
    )

  await t.test('one that makes more files than are allowed is stopped', async t => {
    await lab.k.configure('deployments', { container_files: 10_000 })
    const large = await lab.application('large', serving(makeFiles('/kept/files', 12_000)))
    const { id } = await large.deployed()
    await until(async () => (await large.read()).status === 'stopped', 'it to be stopped', 90_000)
    await untilSaid(large, id, /has made 120\d\d files and directories .* 10000 are allowed/)
    t.equal((await large.containers()).length, 1, 'with what it has made')
    t.equal((await other.read()).status, 'running', 'one that keeps to the limit runs on')
  })
})
