import { randomBytes, randomUUID } from 'node:crypto'
import { statfs } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { imagePreparation } from 'busbar/api/builds'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { pack } from 'tar-stream'
import { requireDockerRegistry, startDockerRegistry } from '../../../lab/docker-registry.js'
import type { SecondEngine } from '../../../lab/second-engine.js'
import { dockerfile, mebi, openDiskLab, serves, stepsOf, write } from './disk-lab.js'

/** Ends when the test says so, or after ten minutes. */
const untilTold = (mark: string): string =>
  `echo ${mark}; dd if=/dev/zero of=/some bs=1M count=40; i=0; until [ -e /told ] || [ $i -gt 6000 ]; do i=$((i+1)); sleep 0.1; done; [ -e /told ]`

const freeOf = async ({ dataRoot }: SecondEngine): Promise<number> =>
  await statfs(dataRoot).then(({ bavail, bsize }) => bavail * bsize)

/** Looks until it is asked for the least that was free. */
function watchFree(t: Test, engine: SecondEngine): () => number {
  let least = Infinity
  const watching = setInterval(() => {
    freeOf(engine).then(
      free => {
        least = Math.min(least, free)
      },
      (error: unknown) => t.comment(error)
    )
  }, 20)
  const stop = (): void => clearInterval(watching)
  t.teardown(stop)
  return () => {
    stop()
    return least
  }
}

test('the disk of the engine while something is built or pulled', async t => {
  const opened = await openDiskLab(t)
  if (opened === undefined) return
  const { engine, lab, quiet, hog, newSteps } = opened
  const { docker } = engine

  /** Deploys the hog while the other application is being built; the other one is not disturbed. */
  const besideQuiet = async (t: Test, files: Record<string, string>): Promise<any> => {
    const mark = `quiet-${Math.random()}`
    await quiet.push(dockerfile(untilTold(mark)))
    // Not by a deploy: two of them may have to wait for one another while the machine is busy.
    let isBuilding = true
    const building = lab.k
      .service(imagePreparation)
      .prepare(
        {
          applicationId: quiet.id,
          deploymentId: randomUUID(),
          projectId: lab.projectId,
          slug: quiet.slug,
          source: {
            type: 'git',
            repo: (await quiet.read()).source_repo,
            branch: 'main',
            token: null,
            rootDirectory: '',
            dockerfilePath: ''
          },
          buildType: 'dockerfile',
          builderImage: null,
          customBuildpacks: [],
          variables: []
        },
        {
          secrets: { redact: () => {}, clean: text => text },
          signal: new AbortController().signal,
          log: () => {},
          onCommit: async () => {}
        }
      )
      .finally(() => {
        isBuilding = false
      })
    building.catch(() => {})
    const step = async () => (await docker.listContainers()).find(({ Command }) => Command.includes(mark))
    await until(async () => (await step()) !== undefined, 'the other build to be at its step', 60_000)
    await hog.push(files)
    const failed = await hog.deployed()
    t.ok(isBuilding, 'the other build goes on')
    const telling = await docker.getContainer((await step())?.Id ?? '').exec({ Cmd: ['touch', '/told'] })
    await telling.start({})
    await t.resolves(building)
    return failed
  }

  await t.test(
    'a build that fills the disk is cancelled at the floor, that of another application is not, and nothing of it stays',
    async t => {
      const room = await freeOf(engine)
      const before = await stepsOf(hog, docker)
      const leastFree = watchFree(t, engine)
      const failed = await besideQuiet(t, dockerfile(write('first', 100), write('hog', 'for ever')))
      const least = leastFree()
      t.match(failed, {
        status: 'failed',
        step: 'prepare-image',
        error_message:
          /the build was stopped: only \d+ MiB were left on the disk of the Docker Engine .*200 MiB.*disk_floor_mib/
      })
      t.match(failed.error_message, /has written \d+ MiB/)
      t.match(failed.build_logs, /the build was stopped: only/)
      t.comment(failed.error_message, `${Math.round(least / mebi)} MiB were left`)
      t.ok(least > 0, 'before the disk was full')
      t.same(await newSteps(before), [], 'at once')
      t.ok((await freeOf(engine)) > room - 60 * mebi, 'all the room is back but what the other one has taken')
    }
  )

  await t.test('a step is not begun to be kept where there is no room for the copy of it', async t => {
    const room = await freeOf(engine)
    const before = await stepsOf(hog, docker)
    const leastFree = watchFree(t, engine)
    // It stays above the floor, and its copy would not.
    const parts = Math.floor((room / mebi - 200 - 40) / 10)
    await hog.push(
      dockerfile(
        `i=0; while [ $i -lt ${parts} ]; do i=$((i+1)); dd if=/dev/zero of=/part$i bs=1M count=10; sleep 0.1; done`,
        'sleep 60'
      )
    )
    const failed = await hog.deployed()
    const least = leastFree()
    t.match(failed, {
      status: 'failed',
      error_message:
        /the build was stopped: only \d+ MiB were left on the disk of the Docker Engine .*, and the engine needs another \d+ MiB to keep the steps that run/
    })
    t.comment(failed.error_message, `${Math.round(least / mebi)} MiB were left`)
    t.ok(least > 200 * mebi, 'the floor is not passed')
    t.same(await newSteps(before), [])
  })

  await t.test('what a step writes to a volume is put down to its build', async t => {
    const before = await stepsOf(hog, docker)
    await besideQuiet(t, {
      // No faster than the disk is looked at, on a busy machine too.
      Dockerfile: `FROM busybox:lab\nVOLUME /data\nRUN i=0; while i=$((i+1)); do dd if=/dev/zero of=/data/hog$i bs=1M count=10 || exit 1; sleep 0.1; done\n${serves}`
    }).then(failed => {
      t.match(failed, {
        status: 'failed',
        error_message: /the build was stopped: only \d+ MiB were left on the disk of the Docker Engine/
      })
    })
    t.same(await newSteps(before), [])
    // The engine forgets a container before it has emptied its volumes.
    await until(
      async () => ((await docker.listVolumes()).Volumes ?? []).length === 0,
      'no volume of the step is left'
    )
  })
  await t.test(
    'the pull of an image that is too large for the disk is stopped before it is unpacked, and gives back what it has taken',
    async t => {
      if (!(await requireDockerRegistry(t))) return
      const registry = await startDockerRegistry(t)
      const tar = pack()
      const packed = buffer(tar)
      tar.entry({ name: 'large' }, randomBytes(320 * mebi))
      tar.finalize()
      await registry.push('team/large', '1', {
        architecture: (await docker.version()).Arch,
        layer: await packed,
        command: ['/large']
      })
      const before = await freeOf(engine)
      const admin = await lab.k.as.session()
      const all = `/api/projects/${lab.projectId}/applications`
      const path = `${all}/${(await admin.post(all, { name: 'large', type: 'image', build_type: 'image', source_image: `${registry.host}/team/large:1` })).body.id as string}`
      const {
        body: { id }
      } = await admin.post(`${path}/deploy`)
      let seen: any
      await until(
        async () => {
          seen = (await admin.get(`${path}/deployments/${id as string}`)).body
          return seen.finished_at !== null
        },
        'the pull to end',
        60_000
      )
      t.match(seen, {
        status: 'failed',
        error_message:
          /takes 32\d MiB when it is unpacked, and the disk of the Docker Engine .* of which 2\d\d MiB stay free/
      })
      await until(async () => (await freeOf(engine)) > before - 20 * mebi, 'the room to come back')
    }
  )
})
