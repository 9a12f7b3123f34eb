import { readdir } from 'node:fs/promises'
import { until } from 'busbar/sdk/testing'
import type Docker from 'dockerode'
import type { Test } from 'tap'
import { engineTest, type Lab, startLab } from './lab.js'
import { watchedEngine } from './watched-engine.js'

const files = 300
const fill = `i=0; while [ $i -lt ${files} ]; do : > /data/$i; i=$((i + 1)); done`

/** A container whose image declares a volume, with files in it, and a volume of a name beside it and within it. */
async function withVolumes(t: Test, { runtime, docker, projectId, spec }: Lab) {
  const image = `declares-${projectId}`
  const base = await docker.createContainer({ Image: 'busybox:lab' })
  await base.commit({ repo: image, changes: 'VOLUME /data other/place' })
  await base.remove()
  t.teardown(
    async () =>
      await docker
        .getImage(image)
        .remove({ force: true })
        .catch(() => {})
  )
  const kept = `busbar-test-${projectId}`
  const command = ['sh', '-c', `${fill}; echo kept > /data/within/file; echo done; sleep 600`]
  const volumes = [{ volume: kept, path: '/data/within' }]
  const network = await runtime.ensureNetwork({ id: projectId, slug: `t${projectId.slice(0, 8)}` })
  const id = await runtime.create(spec('filled', network, { image, command, volumes }))
  await runtime.start(id)
  await until(async () => (await runtime.tail(id, 1)).includes('done'), 'the files to be there')
  const { Mounts: mounts } = await docker.getContainer(id).inspect()
  const found = mounts.filter(({ Name }) => Name !== kept)
  t.equal(found.length, 2)
  const folder = found.find(({ Destination }) => Destination === '/data')?.Source ?? ''
  return { id, kept, image, folder, names: found.map(({ Name = '' }) => Name) }
}

const isThere = async (docker: Docker, name: string): Promise<boolean> =>
  await docker
    .getVolume(name)
    .inspect()
    .then(
      () => true,
      () => false
    )

const holdersOf = async ({ docker, instanceId }: Lab) =>
  await docker.listContainers({
    all: true,
    filters: { label: [`busbar-image-instance=${instanceId}`, 'busbar-system=volume-holder'] }
  })

engineTest(
  'a container goes at once, and its anonymous volumes are empty when the engine is told to remove them',
  async t => {
    let folder = ''
    const counts: number[] = []
    const environment = {
      DOCKER_HOST: await watchedEngine(t, async asked => {
        if (
          folder !== '' &&
          (/^DELETE \S+[?&]v=(?:true|1)/.test(asked) || asked.startsWith('DELETE /volumes/'))
        )
          counts.push((await readdir(folder).catch(() => [])).length)
      })
    }
    const lab = startLab(t, { environment })
    const { runtime, docker } = lab
    const seen = await withVolumes(t, lab)
    folder = seen.folder
    t.ok((await readdir(folder)).length >= files)

    await runtime.remove(seen.id)
    t.equal(await runtime.inspect(seen.id), undefined)
    t.same(await runtime.list({}), [], 'what holds its volumes is none of the containers of its owner')
    t.ok((await readdir(folder)).length >= files, 'nobody has waited for the files')
    await docker.getImage(seen.image).remove()
    await docker.getVolume(seen.kept).inspect()

    await runtime.leftVolumes.removeAll()
    t.ok(counts.length > 0)
    t.same(new Set(counts), new Set([0]))
    for (const name of seen.names) t.notOk(await isThere(docker, name))
    t.same(await holdersOf(lab), [])
    t.same(await readdir(`${(await docker.getVolume(seen.kept).inspect()).Mountpoint}`), ['file'])
  }
)

engineTest('volumes that a platform which was killed has left are found and removed', async t => {
  const killed = startLab(t)
  const { docker, instanceId } = killed
  const seen = await withVolumes(t, killed)
  await killed.runtime.remove(seen.id)
  t.equal((await holdersOf(killed)).length, 1)

  const next = startLab(t, { instanceId })
  const end = new AbortController()
  const keeping = next.runtime.leftVolumes.keepRemoving(end.signal)
  await until(async () => (await holdersOf(next)).length === 0, 'what held them is gone')
  for (const name of seen.names)
    await until(async () => !(await isThere(docker, name)), 'a volume that was left is gone')

  const later = await withVolumes(t, next.otherProject())
  await next.runtime.remove(later.id)
  for (const name of later.names)
    await until(async () => !(await isThere(docker, name)), 'a volume is gone soon after its container')
  end.abort()
  await keeping
})

engineTest('who needs the room waits until the files of a container are gone', async t => {
  const lab = startLab(t)
  const seen = await withVolumes(t, lab)
  await lab.runtime.remove(seen.id, { filesMs: 120_000 })
  for (const name of seen.names) t.notOk(await isThere(lab.docker, name))
  t.same(await holdersOf(lab), [])
})

engineTest('a volume that a container still uses is left alone, with its files', async t => {
  const lab = startLab(t)
  const { runtime, docker } = lab
  const seen = await withVolumes(t, lab)
  const other = await docker.createContainer({
    Image: 'busybox:lab',
    Cmd: ['sleep', '600'],
    HostConfig: { VolumesFrom: [seen.id] }
  })
  t.teardown(async () => await other.remove({ force: true, v: true }).catch(() => {}))
  await runtime.remove(seen.id)
  await runtime.leftVolumes.removeAll()
  t.ok((await readdir(seen.folder)).length >= files)

  await other.remove({ force: true, v: true })
  await runtime.leftVolumes.removeAll()
  for (const name of seen.names) t.notOk(await isThere(docker, name))
  t.same(await holdersOf(lab), [])
})

engineTest('a named volume is empty when the engine is told to remove it', async t => {
  let folder = ''
  const counts: number[] = []
  const environment = {
    DOCKER_HOST: await watchedEngine(t, async asked => {
      if (folder !== '' && asked.startsWith('DELETE /volumes/')) counts.push((await readdir(folder)).length)
    })
  }
  const lab = startLab(t, { environment })
  const { runtime, docker } = lab
  const { id, kept } = await withVolumes(t, lab)
  folder = (await docker.getVolume(kept).inspect()).Mountpoint
  t.same(await readdir(folder), ['file'])
  await t.rejects(runtime.removeVolume(kept), { status: 409, code: 'E_VOLUME_IN_USE' })
  t.same(await readdir(folder), ['file'], 'what a container uses keeps its files')
  counts.length = 0
  await runtime.remove(id)
  await Promise.all([runtime.removeVolume(kept), runtime.removeVolume(kept)])
  t.notOk(await isThere(docker, kept))
  t.ok(counts.includes(0) && counts.every(count => count === 0))
})
