import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { commandsOf, dockerfile, openDiskLab, serves, stepsOf, write } from './disk-lab.js'

test('what one build may write to the disk of the engine, and what stays of it', async t => {
  const opened = await openDiskLab(t)
  if (opened === undefined) return
  const { engine, lab, hog, configureFor, newSteps } = opened
  const { docker } = engine

  await t.test('a build that writes more than it may is cancelled, also by many steps', async t => {
    await configureFor(t, { build_disk_mib: 100 })
    const before = await stepsOf(hog, docker)
    for (const files of [
      dockerfile(`${write('hog', 150)}; sleep 60`),
      dockerfile(...[1, 2, 3, 4].map(index => `${write(`part${index}`, 40)}; sleep 2`), 'sleep 60')
    ]) {
      await hog.push(files)
      const failed = await hog.deployed()
      t.match(failed, {
        status: 'failed',
        error_message:
          /the build was stopped: it has written 1\d\d MiB, and may write 100 MiB.*build_disk_mib/
      })
      t.same(await newSteps(before), [], 'at once')
    }
    await hog.push(dockerfile(write('most', 80)))
    t.match(await hog.deployed(), { status: 'success', error_message: null }, 'what is smaller is built')
  })

  await t.test('large steps of a build that fails do not stay, small ones do', async t => {
    await configureFor(t, { failed_steps_mib: 50 })
    await hog.push(dockerfile('echo small > /small', write('large', 100), 'echo last > /last', 'false'))
    t.match(await hog.deployed(), { status: 'failed', error_message: /false ended with exit code 1/ })
    const commands = await commandsOf(hog, docker)
    t.match(commands, 'echo small', 'the next build begins with it')
    t.notMatch(commands, /large|echo last/)
  })

  await t.test('a build that was cancelled by hand leaves no large step either', async t => {
    await configureFor(t, { failed_steps_mib: 50 })
    await hog.push(dockerfile(write('before', 100), `${write('during', 100)}; sleep 100`))
    const { id } = await hog.deploy()
    await until(
      async () => (await stepsOf(hog, docker)).some(text => text.includes('during')),
      'the second step',
      120_000
    )
    const admin = await lab.k.as.session()
    t.ok((await admin.post(`${hog.path}/deployments/${id as string}/cancel`)).status < 300)
    t.match(await hog.ended(id), { status: 'failed', error_message: 'cancelled' })
    t.notMatch(await commandsOf(hog, docker), /before|during/)
    t.notMatch((await stepsOf(hog, docker)).join('\n'), /during/, 'nor the container of one')
  })

  await t.test('what the engine writes itself, by COPY, counts as well', async t => {
    await configureFor(t, { build_disk_mib: 100 })
    await hog.push({
      Dockerfile: `FROM busybox:lab AS big\nRUN ${write('big', 45)}\nFROM busybox:lab\n${[1, 2, 3, 4].map(index => `COPY --from=big /big /big${index}\nRUN sleep 1.5\n`).join('')}RUN sleep 60\n${serves}`
    })
    const before = await stepsOf(hog, docker)
    t.match(await hog.deployed(), {
      status: 'failed',
      error_message: /it has written 1\d\d MiB, and may write 100 MiB/
    })
    t.same(await newSteps(before), [])
  })
})
