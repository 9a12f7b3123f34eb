import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireSecondEngine } from '../../../lab/second-engine.js'
import { mebi, openSmallEngine, serving } from './small-engine.js'

const write = (mib: number): string => `dd if=/dev/urandom of=/kept/file bs=1M count=${mib}`
/** 300 000 names of a thousand files. */
const makeLinks = `mkdir -p /kept/a/0; cd /kept/a; seq 1 1000 | sed 's#^#0/#' | xargs touch; for i in 1 2 3 4 5 6 7 8 9; do cp -al 0 $i; done; cd /kept; for i in $(seq 2 30); do cp -al a b$i; done`

test('what one owner has taken of a disk does not have the applications of another removed', async t => {
  if (!(await requireSecondEngine(t))) return
  const { lab, disk, untilSaid } = await openSmallEngine(t, {}, { container_disk_mib: 320 })
  const freeMib = async (): Promise<number> =>
    await disk().then(({ bavail, bsize }) => (bavail * bsize) / mebi)

  await t.test('who has filled it and waited goes, not who writes a little then', async t => {
    const free = await freeMib()
    // Leaves some more than what is near the floor. The limit makes the guard look often: what is there before counts as old.
    const holder = await lab.application('holder', serving(write(Math.floor(free) - 250)))
    const { id } = await holder.deployed()
    await until(async () => (await freeMib()) < 265, 'the one to have written', 60_000)
    const { id: userId } = await lab.k.user('other')
    const small = await lab.otherProject('small', serving(write(90)))
    const projectId = /projects\/([^/]+)\//.exec(small.path)?.[1]
    await lab.k.query('update projects.project set user_id = $1 where id = $2', [userId, projectId])
    await small.deployed()
    await until(async () => (await holder.containers()).length === 0, 'the larger one to be gone', 60_000)
    await untilSaid(holder, id, /applications of the owner of its project together held most of it/)
    t.equal((await small.read()).status, 'running')
    t.equal((await small.containers()).length, 1)
  })

  await t.test('one with very many names that takes the last of it is found in time', async () => {
    const farm = await lab.application('farm', serving(`${makeLinks}; ${write(1000)}`))
    const { id } = await farm.deployed()
    await until(async () => (await farm.containers()).length === 0, 'its container to be gone', 90_000)
    await untilSaid(farm, id, /It was stopped and what it had written was removed/)
  })
})
