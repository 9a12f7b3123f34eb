import { until } from 'busbar/sdk/testing'
import { FileHolders } from '../file-holders.js'
import { Identity } from '../identity.js'
import { clock, engineTest, type Lab, log, sharedLab, signatures } from './lab.js'

const newLab = sharedLab()
const forever = new AbortController().signal
const text = 'only where it is mounted'
const files = [
  { path: '/etc/app/a', content: Buffer.from(text), mode: 0o640 },
  { path: '/opt/b', content: Buffer.from(''), mode: 0o755 }
]

async function said(lab: Lab, id: string, script: string): Promise<string> {
  const lines: string[] = []
  await lab.runtime.exec(id, ['sh', '-c', script], { onLine: line => lines.push(line.text), signal: forever })
  return lines.join('\n')
}

const holders = async ({ docker, projectId }: Lab) =>
  await docker.listContainers({
    all: true,
    filters: { label: ['busbar-system=file-holder', `project-id=${projectId}`] }
  })

const network = async ({ runtime, projectId }: Lab): Promise<string> =>
  await runtime.ensureNetwork({ id: projectId, slug: projectId.slice(0, 8) })

engineTest(
  'a container has files of its own, which go with it and are no volume of anybody else',
  async t => {
    const lab = newLab()
    const { runtime, docker, projectId } = lab
    const id = await runtime.create(lab.spec('files', await network(lab), { files }))
    await runtime.start(id)
    t.equal(
      await said(lab, id, 'cat /etc/app/a; echo; stat -c %a-%s /etc/app/a /opt/b'),
      `${text}\n640-24\n755-0`
    )
    t.match(await said(lab, id, 'echo x > /etc/app/a'), /Read-only file system/)
    const [holder, ...others] = await holders(lab)
    t.same(others, [])
    t.equal(holder?.State, 'created', 'what holds them has never run')
    t.same(
      (await runtime.list({ projectId })).map(one => one.id),
      [id],
      'and is no container of the project'
    )
    await runtime.removeLeftFiles({ projectId })
    t.equal((await holders(lab)).length, 1, 'files that are mounted stay')
    await runtime.restart(id, 5)
    t.equal(await said(lab, id, 'cat /etc/app/a'), text)
    const volume = holder?.Mounts[0]?.Name ?? ''
    t.match(await docker.getVolume(volume).inspect(), { Name: volume })
    await runtime.remove(id)
    t.same(await holders(lab), [])
    await t.rejects(docker.getVolume(volume).inspect(), /no such volume/)
  }
)

engineTest('of a container that cannot be made no files are left', async t => {
  const lab = newLab()
  const spec = lab.spec('files', await network(lab), { files, image: 'nothing/of-the-kind:1' })
  await t.rejects(lab.runtime.create(spec), { code: 'E_IMAGE_MISSING' })
  t.same(await holders(lab), [])
})

engineTest(
  'what a platform that was killed has left is removed, and what another one is making is not',
  async t => {
    const lab = newLab()
    const { runtime, docker, instanceId, projectId } = lab
    const deploymentId = '00000000-0000-4000-8000-000000000001'
    const engine = {
      call: async (
        _task: string,
        run: (docker: Lab['docker']) => Promise<unknown>,
        { absent = [] as number[] } = {}
      ) =>
        await run(docker).catch((error: { statusCode?: number }) => {
          if (absent.includes(error.statusCode ?? 0)) return undefined
          throw error
        })
    }
    const killed = new FileHolders({
      engine: engine as never,
      instanceId,
      identity: new Identity(instanceId, signatures),
      clock,
      log
    })
    // It ends in between: of its call nothing more is heard.
    let isMade = false
    void killed.around({ projectId, deploymentId }, files, async () => {
      isMade = true
      await new Promise<never>(() => {})
    })
    await until(() => isMade, 'the files are there')
    t.equal((await holders(lab)).length, 1)
    await killed.removeLeft({ deploymentId }, 0)
    t.equal((await holders(lab)).length, 1, 'the process that makes the container leaves them alone')
    await runtime.removeLeftFiles({ deploymentId: '00000000-0000-4000-8000-000000000002' })
    await runtime.leftVolumes.removeAll()
    t.equal((await holders(lab)).length, 1, 'as are those of others, and young ones')
    await runtime.removeLeftFiles({ projectId, deploymentId })
    t.same(await holders(lab), [])
  }
)

engineTest('no label of an image names files that go with its containers', async t => {
  const lab = newLab()
  const { runtime, docker } = lab
  const net = await network(lab)
  const victim = await runtime.create(lab.spec('victim', net, { files }))
  const [holder] = await holders(lab)
  const image = `busbar-test-files:${lab.projectId.slice(0, 8)}`
  const [repo, tag] = image.split(':') as [string, string]
  const base = await docker.createContainer({
    Image: 'busybox:lab',
    Labels: { 'busbar-files': holder?.Id ?? '' }
  })
  await base.commit({ repo, tag })
  await base.remove()
  t.teardown(async () => await docker.getImage(image).remove({ force: true }))
  const thief = await runtime.create(lab.spec('thief', net, { image }))
  await runtime.remove(thief)
  t.equal((await holders(lab)).length, 1)
  await runtime.remove(victim)
  t.same(await holders(lab), [])
})
