import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, rm, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { requireSecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { openLab, sample } from './deploy-lab.js'
import { untilNothingIsLeft } from './leftovers.js'

const execute = promisify(execFile)
const mebi = 2 ** 20
const large = (version: string, bytes: number) => ({ ...sample(version), 'large.bin': randomBytes(bytes) })

test('a full disk', async t => {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({ images: ['node:20'], diskBytes: 512 * mebi })
  t.teardown(() => engine.close())
  const lab = await openLab({ environment: engine.environment, docker: engine.docker })
  t.teardown(() => lab.close())
  // Otherwise nothing is begun on a disk that is nearly full.
  await lab.k.configure('builds', { disk_floor_mib: 0 })
  const web = await lab.application('web', sample('one'))
  t.match(await web.deployed(), { status: 'success', error_message: null })
  const { direct_url: address } = await web.read()
  const served = async (): Promise<string> => await (await fetch(address)).text()

  await t.test(
    'of the engine: the deploy says so, the old version serves on, and all is well when there is room',
    async t => {
      const { bavail, bsize } = await statfs(engine.dataRoot)
      const ballast = join(engine.dataRoot, 'ballast')
      await writeFile(ballast, Buffer.alloc(bavail * bsize - 4 * mebi))
      await web.push(large('two', 16 * mebi))
      const failed = await web.deployed()
      t.match(failed, { status: 'failed', step: 'prepare-image', error_message: /disk is full/ })
      t.comment(failed.error_message)
      t.equal(await served(), 'one')
      await rm(ballast)
      await untilNothingIsLeft(lab, [web], engine.docker)
      t.match(await web.deployed(), { status: 'success' })
      t.equal(await served(), 'two')
    }
  )

  await t.test('of the platform: the same', async t => {
    const work = join(lab.k.state.directory, 'data', 'builds', 'work')
    await mkdir(work, { recursive: true })
    await execute('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', work])
    let isMounted = true
    const unmount = async (): Promise<void> => {
      if (isMounted) await execute('umount', ['--lazy', work])
      isMounted = false
    }
    t.teardown(unmount)
    await web.push(large('three', 16 * mebi))
    const failed = await web.deployed()
    t.match(failed, { status: 'failed', step: 'prepare-image', error_message: /disk/ })
    t.comment(failed.error_message)
    t.equal(await served(), 'two')
    await untilNothingIsLeft(lab, [web], engine.docker)
    await unmount()
    t.match(await web.deployed(), { status: 'success' })
    t.equal(await served(), 'three')
    await untilNothingIsLeft(lab, [web], engine.docker)
  })
})
