import { statfs } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { requireSecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { engineTest, type Lab, startLab } from './lab.js'

const mebi = 2 ** 20
const plenty = { most: 1_000_000, eachMs: 10_000, allMs: 30_000 }
const makeFiles = (folder: string, count: number): string =>
  `mkdir ${folder}; cd ${folder}; seq 1 ${count} | xargs touch`

/** Runs a script, which then waits for as long as it may. */
async function run(lab: Lab, name: string, script: string): Promise<string> {
  const network = await lab.runtime.ensureNetwork({
    id: lab.projectId,
    slug: `file-use-${lab.instanceId.slice(0, 8)}`
  })
  const id = await lab.runtime.create(
    lab.spec(name, network, {
      // The engine reads the two outputs apart: what dd says could come after what was printed later.
      command: ['sh', '-c', `exec 2>/dev/null; ${script}; echo made; while true; do sleep 0.1; done`],
      readonlyRootfs: false
    })
  )
  await lab.runtime.start(id)
  await until(async () => (await lab.runtime.tail(id, 1)).includes('made'), 'its files to be made', 120_000)
  return id
}

const useOf = async (lab: Lab, id: string, options: { since?: Date; most?: number } = {}) =>
  (await lab.runtime.fileUse({}, { ...plenty, since: new Date(), ...options })).find(use => use.id === id)
/** Many names of a thousand files. */
const makeLinks = (folders: number): string =>
  `mkdir -p /a/0; cd /a; seq 1 1000 | sed 's#^#0/#' | xargs touch
   for i in 1 2 3 4 5 6 7 8 9; do cp -al 0 $i; done
   cd /; for i in $(seq 2 ${folders}); do cp -al a b$i; done`

async function counts(t: Test, isLocal: boolean): Promise<void> {
  const lab = startLab(t, { isLocal })
  const toolContainers = async () =>
    await lab.docker.listContainers({
      all: true,
      filters: { label: [`busbar-image-instance=${lab.instanceId}`, 'busbar-system=file-tools'] }
    })
  t.same(await lab.runtime.fileUse({}, { ...plenty, since: new Date(0) }), [])
  t.same(await toolContainers(), [], 'without a container none is made to look')

  const quiet = await run(lab, 'quiet', 'true')
  // Deeper than a path may be, and with a name of two lines.
  const steps = Array.from({ length: 15 }, () => 'd'.repeat(200)).join('/')
  const deep = `mkdir -p /x/${steps} /y/${steps}; cd /x/${steps}; touch "$(printf 'a\\nb')"; cd /y/${steps}; mv /x .`
  const id = await run(lab, 'many', `${makeFiles('/many', 300)}; cd /; ${deep}`)
  const before = await useOf(lab, quiet)
  t.match(before, { isRunning: true, namelessBytes: 0, owner: { projectId: lab.projectId } })
  const own = before?.inodes ?? Number.NaN
  t.ok(own < 20, `${own} of the engine's own`)
  t.match(await useOf(lab, id), { inodes: own + 301 + 33, recentInodes: 0 })
  t.match(await useOf(lab, id, { since: new Date(0) }), { recentInodes: own + 301 + 33 })
  t.match(await useOf(lab, id, { most: 100 }), { inodes: 100 }, 'counting ends where it tells nothing more')
  t.equal((await toolContainers()).length, isLocal ? 0 : 1)

  const links = await run(
    lab,
    'links',
    `${makeLinks(3)}; dd if=/dev/zero of=/written bs=1M count=3; ln /written /again`
  )
  const made = await useOf(lab, links)
  const folders = 3 * 11
  t.match(made, { inodes: own + 1000 + folders + 1, names: own + 30_000 + folders + 2, isCut: false })
  const room = (made?.bytes ?? 0) - 3 * mebi
  t.ok(room > 30_000 && room < 4 * mebi, `${room} for names and inodes`)

  const holder = await run(
    lab,
    'holder',
    `exec 3>/held; rm /held; dd if=/dev/zero bs=1M count=5 >&3
     exec 4>/dev/shm/memory; rm /dev/shm/memory; dd if=/dev/zero bs=1M count=3 >&4
     exec 5>/dev/shm/named; echo > /named`
  )
  t.match(
    await useOf(lab, holder),
    { namelessBytes: 5 * mebi, inodes: own + 1 + 1 },
    'what is in memory is none of the disk'
  )
  await lab.runtime.stop(holder, 1)
  t.match(await useOf(lab, holder), { isRunning: false, namelessBytes: 0, inodes: own + 1 })
  await lab.runtime.disk.close()
  t.same(await toolContainers(), [])
}

engineTest('the files of containers are counted by a platform that is root on the machine', async t => {
  await counts(t, true)
})
engineTest('the files of containers are counted by a platform that has but the socket', async t => {
  await counts(t, false)
})

test('one with more names than can be looked at in time does not keep others from being measured', async t => {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({ images: ['busybox:lab'], diskBytes: 400 * mebi })
  t.teardown(() => engine.close())
  for (const isLocal of [true, false]) {
    const lab = startLab(t, { ...engine, isLocal })
    const kind = isLocal ? 'local' : 'in-container'
    const farms = [
      await run(lab, `farm-${kind}`, makeLinks(15)),
      await run(lab, `farm2-${kind}`, makeLinks(15))
    ]
    const other = await run(lab, `other-${kind}`, 'dd if=/dev/zero of=/written bs=1M count=5')

    let first: string | undefined
    // On a busy machine there may be no time for one of them in the first rounds.
    for (let round = 0; round < 10 && (round < 2 || first !== other); round++) {
      const begunAt = performance.now()
      const limits = { eachMs: 100, allMs: 1000 }
      const found = await lab.runtime.fileUse({}, { ...plenty, ...limits, since: new Date(0) })
      t.ok(performance.now() - begunAt < 20_000)
      for (const id of farms)
        t.match(
          found.find(use => use.id === id),
          { isCut: true }
        )
      const use = found.find(({ id }) => id === other)
      t.equal(use?.isCut, false)
      t.ok((use?.bytes ?? 0) >= 5 * mebi)
      first = found[0]?.id
    }

    t.equal(first, other, 'those that took too long come last then')

    const sizes = await lab.runtime.diskUse({}, { eachMs: 50, allMs: 10_000 })
    for (const id of farms)
      t.match(
        sizes.find(use => use.id === id),
        { isLate: true, bytes: 0 }
      )
    t.match(
      sizes.find(({ id }) => id === other),
      { isLate: false, bytes: 5 * mebi }
    )
    for (const id of [...farms, other]) await lab.runtime.remove(id)
  }
})

test('on a disk without inodes, what has looked before looks again', async t => {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({
    images: ['busybox:lab'],
    diskBytes: 300 * mebi,
    diskInodes: 6000
  })
  t.teardown(() => engine.close())
  const lab = startLab(t, engine)
  const id = await run(lab, 'taker', 'echo made; until [ -e /go ]; do sleep 0.1; done')
  t.ok(await useOf(lab, id))
  const exec = await engine.docker
    .getContainer(id)
    .exec({ Cmd: ['sh', '-c', 'seq 1 7000 | xargs touch /go'] })
  await exec.start({})
  await until(async () => (await statfs(engine.dataRoot)).ffree === 0, 'the inodes to be gone')
  t.ok(((await useOf(lab, id))?.inodes ?? 0) > 4000)
})

engineTest('what is moved and handed on all the time is found in a container that is held still', async t => {
  const lab = startLab(t, { isLocal: true })
  const id = await run(
    lab,
    'moving',
    `exec 3>/nameless; dd if=/dev/zero bs=1M count=30 >&3; rm /nameless; hop() { sleep 0.02; hop & exit 0; }; (hop) &
     mkdir -p /x; cd /x; for i in $(seq 1 60); do mkdir d$i; done; dd if=/dev/zero of=d1/large bs=1M count=40
     (while true; do for i in $(seq 1 59); do mv d$i/large d$((i+1))/large; sleep 0.01; done; mv d60/large d1/large; done) & exec 3>&-`
  )
  const look = async () =>
    (await lab.runtime.fileUse({}, { ...plenty, since: new Date(0), still: true })).find(use => use.id === id)
  for (let n = 0; n < 5; n++) {
    const use = await look()
    t.ok((use?.bytes ?? 0) >= 40 * mebi, `${use?.bytes} bytes with a name`)
    t.equal(use?.namelessBytes, 30 * mebi)
    t.equal(use?.isCut, false)
  }
  const state = async () => (await lab.docker.getContainer(id).inspect()).State
  t.match(await state(), { Paused: false, Running: true }, 'it goes on')

  await lab.docker.getContainer(id).pause()
  await lab.runtime.goOnWithPaused()
  t.match(await state(), { Paused: false }, 'also after a look that was cut off')
})

engineTest('a container that its engine keeps locked hides nothing of the others', async t => {
  const lab = startLab(t, { isLocal: true })
  const locked = await run(lab, 'locked', 'dd if=/dev/zero of=/large bs=1M count=64')
  const other = await run(lab, 'other', makeFiles('/many', 100))
  // Whatever asks for it waits, until this is read to its end.
  const unread = await lab.docker.getContainer(locked).getArchive({ path: '/large' })
  try {
    const found = await lab.runtime.fileUse({}, { ...plenty, since: new Date(0), still: true })
    t.match(
      found.find(({ id }) => id === locked),
      { isRunning: true, isCut: true }
    )
    const seen = found.find(({ id }) => id === other)
    t.ok((seen?.inodes ?? 0) > 100)
    t.equal(seen?.isCut, false)
  } finally {
    ;(unread as Readable).destroy()
  }
})
