import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { bounded } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import type Docker from 'dockerode'
import type { Test } from 'tap'
import type { GitFiles } from '../../../lab/git-server.js'
import { requireSecondEngine, type SecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { rotatingSample, type SampleOptions } from '../../../scripts/rotating-sample.mjs'
import { type DeployLab, type LabApplication, openLab } from '../../deployments/test/deploy-lab.js'
import { untilNothingIsLeft } from '../../deployments/test/leftovers.js'
import { builders, type EngineKind, execIn, makeImage, port, sample, settingsOf } from './engine-lab.js'

/** A moment of a build in a build engine, as it is seen from outside. */
interface BuildMoment {
  readonly name: string
  /** The engine is new: it has no base yet. */
  readonly isFirst?: boolean
  readonly files: (version: string) => GitFiles
  /** Whether what the platform asks of the engine's container has come to it. */
  readonly seen: (actions: readonly string[], kind: EngineKind) => boolean
  /** What its log says then. */
  readonly said?: RegExp
}

const built =
  (...steps: readonly string[]) =>
  (version: string): GitFiles => ({
    'index.html': version,
    Dockerfile: `FROM busybox:lab\nWORKDIR /app\nCOPY . .\n${steps.map(step => `RUN ${step}\n`).join('')}${port}`
  })
/** How many files were asked for since the build was told to begin: of a base some are read before. */
const readOut = (actions: readonly string[]): number => {
  const begin = actions.findLastIndex(
    action => action.startsWith('exec_start') && action.includes('> "$0/process"')
  )
  return begin < 0 ? 0 : actions.slice(begin).filter(action => action === 'archive-path').length
}
/** What says which layers an image has: a manifest and a configuration, in a layout with an index. */
const filesBeforeLayers = { buildkit: 3, dockerd: 2 } as const

const moments: readonly BuildMoment[] = [
  {
    name: 'the start of the engine',
    isFirst: true,
    files: built(),
    seen: actions => actions.includes('start')
  },
  {
    name: 'the hand-out of a base',
    isFirst: true,
    files: built(),
    seen: actions => actions.some(action => action.startsWith('exec_start') && action.includes('/base-'))
  },
  {
    name: 'the way of the context into the engine',
    files: version => ({ ...built()(version), large: Buffer.alloc(64 * 2 ** 20, version) }),
    seen: actions => actions.some(action => action.startsWith('exec_start') && action.includes('/context'))
  },
  {
    name: 'a step of the build',
    files: built('echo waiting; sleep 4321'),
    seen: () => true,
    said: /"waiting"/
  },
  {
    name: 'the reading of the image',
    files: built('head -c 64m /dev/urandom > large'),
    seen: actions => readOut(actions) > 0
  },
  {
    name: 'the hand-over of the image',
    files: built('head -c 256m /dev/urandom > large'),
    seen: (actions, { build_engine }) => readOut(actions) > filesBeforeLayers[build_engine]
  }
]

/** What is asked of a build engine at moments of a build; absent: all of them. */
export const momentsOf = (title: string, sample?: SampleOptions): readonly BuildMoment[] => {
  if (sample === undefined) return moments
  const chosen = rotatingSample(
    title,
    moments.map(({ name }) => name),
    sample
  )
  return moments.filter(({ name }) => chosen.has(name))
}

export function momentOf(name: string): BuildMoment {
  const found = moments.find(moment => moment.name === name)
  if (found === undefined) throw new Error(`there is no moment ${name}`)
  return found
}

/** Deploys, and acts once a moment has come. */
export async function atMoment(
  { lab, application, docker, kind }: FaultScene,
  { seen, said }: BuildMoment,
  deploymentId: () => Promise<string>,
  read: (path: string) => Promise<any> = async path => (await (await lab.k.as.session()).get(path)).body
): Promise<string> {
  const actions: string[] = []
  const stream = (await docker.getEvents({
    filters: { type: ['container'], label: [`project-id=${lab.projectId}`] }
  })) as Readable
  const changes = new Set<() => void>()
  let rest = ''
  stream.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const { Action: action, Actor: actor } = JSON.parse(line) as {
        readonly Action: string
        readonly Actor: { readonly Attributes: Readonly<Record<string, string>> }
      }
      if (actor.Attributes.name?.startsWith('busbar.builder.') === true) actions.push(action)
    }
    for (const change of changes) change()
  })
  try {
    const id = await deploymentId()
    await bounded(
      async () => {
        while (!seen(actions, kind)) {
          await new Promise<void>(resolve => changes.add(resolve))
          changes.clear()
        }
      },
      { ms: 60_000, what: `the moment of a build, after ${actions.join(', ').slice(0, 1000)},` }
    )
    if (said !== undefined)
      await until(
        async () => said.test((await read(`${application.path}/deployments/${id}`)).build_logs ?? ''),
        'the step runs'
      )
    return id
  } finally {
    stream.destroy()
  }
}

interface FaultScene {
  readonly lab: DeployLab
  readonly application: LabApplication
  readonly docker: Docker
  readonly kind: EngineKind
}

/** What is in a build engine that no build needs: work folders, results, and processes of steps. */
export async function leftInEngine({
  lab,
  docker,
  kind
}: Pick<FaultScene, 'lab' | 'docker' | 'kind'>): Promise<string> {
  const [builder] = await builders(lab.projectId, docker)
  if (builder?.State !== 'running') return ''
  return await execIn(
    builder.Id,
    '',
    [
      'sh',
      '-c',
      `ls /var/lib/builder/work
${kind.build_engine === 'dockerd' ? 'DOCKER_HOST=unix:///run/busbar-docker.sock docker images -q busbar-result' : ''}
for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep '^sleep 4321'; done; true`
    ],
    docker
  )
}

/** The engine holds nothing of builds that have ended, and once its cache is cleared, nothing at all is left. */
export async function isClean(t: Test, scene: FaultScene): Promise<void> {
  const { lab, application, docker } = scene
  let left = ''
  await until(
    async () => {
      left = await leftInEngine(scene)
      return left === ''
    },
    'the build engine holds nothing of ended builds',
    60_000
  ).catch((error: unknown) => {
    throw new Error(`the build engine holds ${left}`, { cause: error })
  })
  t.equal((await (await lab.k.as.session()).delete(`${application.path}/cache`)).status, 200)
  await untilNothingIsLeft(lab, [application], docker)
}

/** The next build of the application, and what it serves then. */
export async function buildsAgain(t: Test, { application }: FaultScene, version: string): Promise<void> {
  await application.push({ ...built()(version), large: null })
  const deployed = await application.deployed()
  t.equal(deployed.status, 'success', JSON.stringify(deployed.error_message))
  t.equal(await (await fetch((await application.read()).direct_url)).text(), version)
}

/** An engine of its own with a small disk, and an application on it; undefined where none can be started. */
export async function openSmallScene(
  t: Test,
  kind: EngineKind
): Promise<(FaultScene & { readonly engine: SecondEngine }) | undefined> {
  if (!(await requireSecondEngine(t))) return undefined
  await makeImage(kind)
  const engine = await startSecondEngine({ images: ['busybox:lab', kind.image], diskBytes: 2 ** 30 })
  t.teardown(() => engine.close())
  const { docker } = engine
  const lab = await openLab({ environment: engine.environment, docker })
  t.teardown(() => lab.close())
  // The disk is to be found full by those who write, not by those who watch it.
  await lab.k.configure('builds', { ...settingsOf(kind), disk_floor_mib: 0 })
  const application = await lab.application('web', sample('v0'))
  t.match(await application.deployed(), { status: 'success', error_message: null })
  return { lab, application, docker, engine, kind }
}

/** What the engine keeps of archives that it is reading. */
export const halfLoaded = async (engine: SecondEngine): Promise<readonly string[]> =>
  await readdir(join(engine.dataRoot, 'tmp'))
