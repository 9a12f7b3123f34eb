import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireSecondEngine } from '../../../lab/second-engine.js'
import { mebi, openSmallEngine } from './small-engine.js'

/**
 * Its image takes `imageMib` of its own; it serves, and writes `mib` when it is told to, or after a while. Where the disk is full
 * before it has them, it tries again: with what others have given back meanwhile there would be room without it.
 */
const writing = (imageMib: number, mib: number, when: string) => ({
  Dockerfile: `FROM busybox:lab
RUN mkdir /kept
${imageMib > 0 ? `RUN dd if=/dev/urandom of=/first bs=1M count=${imageMib / 2}\nRUN dd if=/dev/urandom of=/second bs=1M count=${imageMib / 2}\n` : ''}VOLUME /kept
CMD ["sh", "-c", "(${when}; until dd if=/dev/urandom of=/kept/file bs=1M count=${mib}; do sleep 0.2; done) & exec httpd -f -p 8080"]
`
})
const whenTold = 'until [ -e /kept/go ]; do sleep 0.1; done'

test('who fills a disk with images has nobody else lose what was written', async t => {
  if (!(await requireSecondEngine(t))) return
  const { lab, disk, docker } = await openSmallEngine(t, {}, { container_disk_mib: 320 })
  const freeMib = async (): Promise<number> =>
    await disk().then(({ bavail, bsize }) => (bavail * bsize) / mebi)
  const admin = await lab.k.as.session()

  const quiet = await lab.ofUser('quiet', 'quiet', writing(0, 120, 'true'))
  const empty = await freeMib()
  t.match(await quiet.deployed(), { status: 'success', error_message: null })
  await until(async () => (await freeMib()) < empty - 115, 'the other one to have its files', 60_000)
  const [before] = await quiet.containers()

  const taker = await lab.ofUser('taker', 'taker', writing(80, 110, whenTold))
  const first = await taker.deployed()
  t.match(first, { status: 'success', error_message: null })
  await taker.push(writing(100, 110, whenTold))
  const second = await taker.deployed()
  t.match(second, { status: 'success', error_message: null })
  await until(async () => (await taker.containers()).length === 1, 'the old version to be gone', 60_000)
  const tags = async () => (await docker.listImages()).flatMap(({ RepoTags }) => RepoTags ?? [])
  t.ok((await tags()).includes(first.image_tag), 'for a rollback')

  const [running] = await taker.containers()
  const telling = await docker.getContainer(running?.Id ?? '').exec({ Cmd: ['touch', '/kept/go'] })
  await telling.start({})
  const hasLost = async (): Promise<boolean> => (await quiet.containers())[0]?.Id !== before?.Id
  await until(
    async () => (await hasLost()) || !(await tags()).includes(first.image_tag),
    'something to give way',
    90_000
  )
  t.notOk(await hasLost(), 'the other one keeps its container')
  const gone = `${taker.path}/deployments/${first.id as string}`
  const log = async (): Promise<string> => JSON.stringify((await admin.get(gone)).body.build_logs)
  await until(async () => /was removed/.test(await log()), 'its deployment to say so')
  t.match(
    await log(),
    /The image .* was removed: \d+ MiB were left .* held most of it, \d+ MiB, 18\d MiB of it in images/
  )
  t.match(await admin.post(`${taker.path}/rollback`, { deployment_id: first.id }), {
    status: 409,
    body: { code: 'E_DEPLOYMENT_IMAGE_GONE', error: /deploy again instead/ }
  })
  t.ok((await tags()).includes(second.image_tag), 'what runs keeps its image')

  // Where that is not enough, it is their own.
  await taker.push(writing(0, 300, 'sleep 1'))
  t.match(await taker.deployed(), { status: 'success', error_message: null })
  await until(
    async () => (await hasLost()) || (await taker.containers()).length === 0,
    'a container to give way',
    90_000
  )
  t.notOk(await hasLost())
  t.equal((await quiet.read()).status, 'running')
})
