import { statfs } from 'node:fs/promises'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireSecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { type LabApplication, openLab } from './deploy-lab.js'

const mebi = 2 ** 20
const dockerfile = (step: string) => ({
  Dockerfile: `FROM busybox:lab\nRUN ${step}\nCMD ["httpd", "-f", "-p", "8080"]\n`
})

test('what a build takes of the disk that its bytes do not tell', async t => {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({
    images: ['busybox:lab'],
    diskBytes: 768 * mebi,
    diskInodes: 60_000
  })
  t.teardown(() => engine.close())
  const lab = await openLab({ environment: engine.environment, docker: engine.docker })
  t.teardown(() => lab.close())
  await lab.k.configure('builds', { disk_floor_mib: 200, memory_mib: 1024, cpus: 0.5 })
  const quiet = await lab.application('quiet', dockerfile('true'))
  const hog = await lab.otherProject('hog', dockerfile('true'))
  t.match(await quiet.deployed(), { status: 'success', error_message: null })

  /** While the other application is built: what became of both. */
  const beside = async (step: string): Promise<{ hog: any; quiet: any }> => {
    const mark = `quiet-${Math.random()}`
    await quiet.push(
      dockerfile(`echo ${mark}; seq 1 2000 | xargs touch; dd if=/dev/zero of=/some bs=1M count=30; sleep 30`)
    )
    const building = await quiet.deploy()
    const isBuilt = async () =>
      (await engine.docker.listContainers()).some(({ Command }) => Command.includes(mark))
    await until(isBuilt, 'the other build to be at its step', 60_000)
    await hog.push(dockerfile(step))
    const ended = async (application: LabApplication, { id }: any) => await application.ended(id, 120_000)
    const taking = await hog.deploy()
    return { hog: await ended(hog, taking), quiet: await ended(quiet, building) }
  }

  await t.test(
    'a step that makes files until there are no inodes is stopped, and gives them back',
    async t => {
      const { ffree } = await statfs(engine.dataRoot)
      // Not faster than what it has made can be given back: below half of the floor all builds end.
      const found = await beside(
        'mkdir /files; cd /files; for i in $(seq 1 500); do seq $((i * 200)) $((i * 200 + 199)) | xargs touch; sleep 0.1; done; sleep 60'
      )
      t.match(found.hog, { status: 'failed', error_message: /the build was stopped: only/ })
      t.match(found.quiet, { status: 'success', error_message: null })
      await until(async () => (await statfs(engine.dataRoot)).ffree > ffree - 6000, 'the inodes to come back')
    }
  )

  await t.test('a step that fills the disk by a file without a name is stopped', async t => {
    const { bavail, bsize } = await statfs(engine.dataRoot)
    const found = await beside('exec 3>/file; rm /file; dd if=/dev/zero bs=1M >&3; sleep 60')
    t.match(found.hog, { status: 'failed', error_message: /the build was stopped: only/ })
    t.match(found.quiet, { status: 'success', error_message: null })
    const enough = (bavail - (80 * mebi) / bsize) as number
    await until(async () => (await statfs(engine.dataRoot)).bavail > enough, 'the room to come back')
  })
})
