import { randomUUID } from 'node:crypto'
import { access, readFile, writeFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { settingsFrom, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { pack } from 'tar-stream'
import { EngineClient } from '../engine-client.js'
import { ControlGroups } from '../host/control-groups.js'
import { limitSteps, readFacts } from '../host/group-files.js'
import { GroupKeeper } from '../host/group-keeper.js'
import { groupLimits, type MachineFacts } from '../host/group-limits.js'
import { settings } from '../settings.js'
import { engineTest, type Lab, log, startLab } from './lab.js'

const [ann, bob] = ['0a1b2c3d-0000-4000-8000-00000000000a', '0a1b2c3d-0000-4000-8000-00000000000b']
const [annName, bobName] = [ann, bob].map(id => id.replaceAll('-', ''))
const gibibyte = 2 ** 30
const machine = (changes: Partial<MachineFacts> = {}): MachineFacts => ({
  version: 1,
  memoryBytes: 8 * gibibyte,
  processes: 32_768,
  used: new Map(),
  ...changes
})

test('all containers leave the machine some memory and processes, and a project some to the others', async t => {
  const groups = new ControlGroups('an-installation', 'cgroupfs')
  const limits = (projects: readonly string[], facts?: Partial<MachineFacts>) =>
    groupLimits(groups, projects, machine(facts)).map(({ group, processes, memoryBytes }) => [
      group.replace(groups.all, 'all'),
      processes,
      typeof memoryBytes === 'number' ? Math.round(memoryBytes / 2 ** 20) : memoryBytes
    ])
  t.same(limits([ann, bob]), [
    ['all', 24_576, 7372],
    [`all/${annName}`, 12_288, 5529],
    [`all/${bobName}`, 12_288, 5529]
  ])
  t.same(limits([ann])[1], [`all/${annName}`, 12_288, 'unlimited'], 'nobody else is there')
  t.same(limits([ann], { memoryBytes: 2 * gibibyte })[0], ['all', 24_576, 1536])
  t.same(limits([ann], { memoryBytes: gibibyte / 2 })[0], ['all', 24_576, 256])
  const used = new Map([[groups.ofProject(ann), 6 * gibibyte]])
  t.same(limits([ann, bob], { used })[1], [`all/${annName}`, 12_288, undefined], 'it would end programs')
})

test('groups are named as the keeper of control groups takes them', async t => {
  const own = new ControlGroups('an-installation', 'cgroupfs')
  t.match(own.parentOf(ann), new RegExp(`^/busbar[0-9a-z]{5}/${annName}$`))
  t.equal(own.parentOf(undefined), `/${own.all}`)
  t.equal(own.parentOf('../../docker'), `/${own.all}/docker`)
  const slices = new ControlGroups('an-installation', 'systemd')
  t.match(slices.parentOf(ann), new RegExp(`^busbar[0-9a-z]{5}-${annName}\\.slice$`))
  t.equal(slices.ofProject(ann), `${slices.all}/${slices.parentOf(ann)}`)
  t.not(new ControlGroups('another', 'systemd').all, slices.all)
})

test('the limits are written as each version of control groups and each keeper takes them', async t => {
  const steps = (driver: 'cgroupfs' | 'systemd', facts: MachineFacts) => {
    const groups = new ControlGroups('an-installation', driver)
    return limitSteps(groups, groupLimits(groups, [ann], facts), facts)
      .trimEnd()
      .split('\n')
      .map(line => line.replaceAll(groups.all.replace('.slice', ''), 'all'))
  }
  const gone = new ControlGroups('an-installation', 'cgroupfs')
  const used = new Map([
    [gone.ofProject(bob), 0],
    [`${gone.all}/${'e'.repeat(64)}`, 0]
  ])
  t.same(steps('cgroupfs', machine({ used })), [
    'make pids/all',
    'make memory/all',
    'change memory/all/memory.use_hierarchy 1',
    'set pids/all/pids.max 24576',
    'set memory/all/memory.limit_in_bytes 7730102272',
    'try memory/all/memory.kmem.tcp.limit_in_bytes 7730102272',
    `make pids/all/${annName}`,
    `make memory/all/${annName}`,
    `change memory/all/${annName}/memory.use_hierarchy 1`,
    `set pids/all/${annName}/pids.max 12288`,
    `set memory/all/${annName}/memory.limit_in_bytes -1`,
    `try memory/all/${annName}/memory.kmem.tcp.limit_in_bytes -1`,
    `remove all/${bobName}`
  ])
  t.same(steps('cgroupfs', machine({ version: 2 })), [
    'make all',
    'try ./cgroup.subtree_control +memory +pids',
    'try all/cgroup.subtree_control +memory +pids',
    'set all/pids.max 24576',
    'set all/memory.max 7730102272',
    `make all/${annName}`,
    `set all/${annName}/pids.max 12288`,
    `set all/${annName}/memory.max max`
  ])
  t.same(steps('systemd', machine({ version: 2 })), [
    'unit /run/systemd/system/all.slice [Slice]\\nTasksMax=24576\\nMemoryMax=7730102272\\n',
    'change all.slice/pids.max 24576',
    'change all.slice/memory.max 7730102272',
    `unit /run/systemd/system/all-${annName}.slice [Slice]\\nTasksMax=12288\\n`,
    `change all.slice/all-${annName}.slice/pids.max 12288`,
    `change all.slice/all-${annName}.slice/memory.max max`
  ])
})

test('what a machine says of itself is believed when it is whole', async t => {
  t.same(
    readFacts('version 2\nprocesses 4194304\nprocesses 63000\nmemory 1024\nused 7 all/x\n'),
    machine({ version: 2, memoryBytes: 2 ** 20, processes: 63_000, used: new Map([['all/x', 7]]) })
  )
  for (const wrong of [
    '',
    'version 1\nmemory 5',
    'version 1\nprocesses 7\nmemory x',
    'version 3\nprocesses 7\nmemory 7'
  ])
    t.equal(readFacts(wrong), undefined, wrong)
})

/** The paths of a group in the hierarchies of this machine that count. */
async function filesOf(path: string): Promise<{ readonly pids: string; readonly memory: string }> {
  const isSecond = await isThere('/sys/fs/cgroup/cgroup.controllers')
  return isSecond
    ? { pids: `/sys/fs/cgroup${path}/pids.max`, memory: `/sys/fs/cgroup${path}/memory.max` }
    : {
        pids: `/sys/fs/cgroup/pids${path}/pids.max`,
        memory: `/sys/fs/cgroup/memory${path}/memory.limit_in_bytes`
      }
}

const isThere = async (path: string): Promise<boolean> =>
  await access(path).then(
    () => true,
    () => false
  )

const numberIn = async (path: string): Promise<number> => Number(await readFile(path, 'utf8'))

async function isCgroupfs({ docker }: Lab): Promise<boolean> {
  const { CgroupDriver: driver } = await docker.info()
  return driver === 'cgroupfs'
}

engineTest('containers and builds run below limits of their installation and of their project', async t => {
  const lab = startLab(t)
  const { runtime, docker, projectId, spec, instanceId } = lab
  const network = await runtime.ensureNetwork({ id: projectId, slug: `t${projectId.slice(0, 8)}` })
  t.same(runtime.limits.groups.state, { kind: 'limited' })
  const id = await runtime.create(spec('grouped', network))
  const parent = (await docker.getContainer(id).inspect()).HostConfig.CgroupParent ?? ''
  t.match(parent, /busbar/)
  if (!(await isCgroupfs(lab))) return
  const own = await filesOf(parent)
  const all = await filesOf(parent.slice(0, parent.lastIndexOf('/')))
  const pidMax = await numberIn('/proc/sys/kernel/pid_max')
  t.ok((await numberIn(all.pids)) <= pidMax * 0.75)
  t.ok((await numberIn(own.pids)) <= pidMax * 0.375)
  const { memoryBytes } = await runtime.info()
  const allowed = await numberIn(all.memory)
  t.ok(allowed <= memoryBytes * 0.9 && allowed > memoryBytes * 0.4)

  const other = randomUUID()
  await runtime.ensureNetwork({ id: other, slug: `t${other.slice(0, 8)}` })
  await runtime.limits.refresh()
  t.ok((await numberIn(own.memory)) <= allowed * 0.75, 'there is another project')

  await runtime.start(id)
  const forks = async (): Promise<number> =>
    await runtime.exec(id, ['sh', '-c', 'for n in $(seq 60); do sleep 1 & done; wait'], {
      onLine: () => {},
      signal: new AbortController().signal
    })
  t.equal(await forks(), 0)
  await writeFile(own.pids, '40')
  t.not(await forks(), 0, 'the limit of the project holds for its containers')
  await runtime.limits.refresh()
  t.ok((await numberIn(own.pids)) > 40, 'it is set anew')

  const tar = pack()
  tar.entry(
    { name: 'Dockerfile' },
    'FROM busybox:lab\nRUN echo "in $(grep -e pids: -e ^0: /proc/self/cgroup)"\n'
  )
  tar.finalize()
  const lines: string[] = []
  await runtime.build(
    Readable.from(tar),
    {
      tag: `lab-${instanceId}:1`,
      dockerfile: 'Dockerfile',
      buildArgs: {},
      owner: { projectId },
      memoryBytes: 64 * 2 ** 20,
      cpus: 1,
      noCache: true
    },
    { onLine: line => lines.push(line), signal: new AbortController().signal }
  )
  t.ok(
    lines.some(line => line.startsWith('in ') && line.includes(`${parent}/`)),
    'a step of a build runs there too'
  )

  await runtime.remove(id)
  await runtime.removeNetworks(other)
  await runtime.removeNetworks(projectId)
  t.notOk(await isThere(all.pids), 'nothing is left of it')
})

engineTest('where the limits cannot be set, deploys go on and the state says why', async t => {
  const { instanceId } = startLab(t)
  const engine = new EngineClient(settingsFrom(settings, process.env))
  let isLost = true
  const keeper = new GroupKeeper({
    engine: {
      call: async (task: string, ...rest: unknown[]) => {
        if (isLost && task === 'create a container for control groups') throw new Error('no such luck')
        return await (engine.call as (...all: unknown[]) => Promise<unknown>).call(engine, task, ...rest)
      }
    } as unknown as EngineClient,
    instanceId,
    log,
    projects: async () => (isLost ? [ann] : [])
  })
  await keeper.ensure(ann)
  t.match(keeper.state, { kind: 'failed', reason: 'no such luck' })
  isLost = false
  await keeper.refresh()
  t.same(keeper.state, { kind: 'unknown' })
  await until(async () => (await keeper.parentOf(ann)) !== undefined, 'the engine to say its driver')
})
