import { execFile } from 'node:child_process'
import { statfs } from 'node:fs/promises'
import { promisify } from 'node:util'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireSecondEngine } from '../../../lab/second-engine.js'
import { mebi, openSmallEngine } from '../../deployments/test/small-engine.js'
import { engineKinds, port, settingsOf } from './engine-lab.js'

const floorMib = 200

test('on a short disk a step that sleeps with what its build engine keeps ends before a build that writes less', async t => {
  if (!(await requireSecondEngine(t))) return
  const kind = engineKinds['the Docker Engine of this machine']
  const { lab, docker } = await openSmallEngine(t, {
    images: ['busybox:lab', kind.image],
    diskBytes: 1500 * mebi
  })
  await lab.k.configure('builds', {
    ...settingsOf(kind),
    disk_floor_mib: floorMib,
    memory_mib: 512,
    cpus: 0.5,
    concurrent: 2
  })
  const root = (await docker.info()).DockerRootDir as string
  const free = async (): Promise<number> => {
    const { bavail, bsize } = await statfs(root)
    return (bavail * bsize) / mebi
  }
  const cached = (step: string) => ({
    Dockerfile: `FROM busybox:lab\nRUN --mount=type=cache,target=/kept ${step}\n${port}`
  })
  const holder = await lab.application('holder', cached('dd if=/dev/zero of=/kept/file bs=1M count=500'))
  t.match(await holder.deployed(), { status: 'success', error_message: null })
  const writer = await lab.otherProject('writer', cached('true'))
  t.match(await writer.deployed(), { status: 'success', error_message: null })

  await holder.push(cached('echo holding; sleep 600'))
  const { id } = await holder.deploy()
  const admin = await lab.k.as.session()
  const path = `${holder.path}/deployments/${id}`
  await until(
    async () => /holding\\?"/.test((await admin.get(path)).body.build_logs ?? ''),
    'the step sleeps'
  )
  const filler = Math.floor((await free()) - 1.5 * floorMib - 60)
  await promisify(execFile)('fallocate', ['-l', `${filler}MiB`, `${root}/filler`])
  const count = Math.floor((await free()) - floorMib + 40)
  t.ok(count > 64 && count < 400, `${count} MiB are written`)
  await writer.push(cached(`dd if=/dev/zero of=/kept/file bs=1M count=${count} && sleep 30`))
  const { id: written } = await writer.deploy()
  // On a busy machine a second build waits for a minute before it begins.
  t.match(await holder.ended(id, 120_000), {
    status: 'failed',
    error_message: /only .* were left .* build engine of its project holds \d{3} MiB for it/
  })
  t.match(await writer.ended(written), { status: 'success', error_message: null })
})
