import type Docker from 'dockerode'
import type { Test } from 'tap'
import { requireSecondEngine, type SecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { type DeployLab, type LabApplication, openLab } from './deploy-lab.js'

export const mebi = 2 ** 20
export const serves = 'CMD ["httpd", "-f", "-p", "8080"]\n'
export const dockerfile = (...steps: string[]) => ({
  Dockerfile: `FROM busybox:lab\n${steps.map(step => `RUN ${step}\n`).join('')}${serves}`
})
export const write = (name: string, count: number | 'for ever'): string =>
  `dd if=/dev/zero of=/${name} bs=1M${count === 'for ever' ? '' : ` count=${count}`}`

/** The names of the steps on the engine: images without a name, and containers. */
export async function stepsOf({ id }: LabApplication, docker: Docker): Promise<string[]> {
  const filters = { label: [`application-id=${id}`] }
  const [images, containers] = await Promise.all([
    docker.listImages({ all: true, filters }),
    docker.listContainers({ all: true, filters })
  ])
  const nameless = images.filter(
    ({ RepoTags: tags }) => tags === null || tags === undefined || tags.every(tag => tag === '<none>:<none>')
  )
  return [
    ...nameless.map(({ Id, Size }) => `${Id} of ${Size}`),
    ...containers.filter(({ Labels }) => !Labels['busbar-instance']).map(({ Command }) => Command)
  ]
}

/** What made its images, steps included. */
export async function commandsOf({ id }: LabApplication, docker: Docker): Promise<string> {
  const images = await docker.listImages({ all: true, filters: { label: [`application-id=${id}`] } })
  const commands = await Promise.all(
    images.map(async ({ Id }) => (await docker.getImage(Id).inspect()).ContainerConfig?.Cmd?.join(' ') ?? '')
  )
  return commands.join('\n')
}

interface DiskLab {
  readonly engine: SecondEngine
  readonly lab: DeployLab
  /** Its project has another one beside it, which the hog is in. */
  readonly quiet: LabApplication
  readonly hog: LabApplication
  /** The settings of the builds plugin for this subtest. */
  configureFor(t: Test, changes: object): Promise<void>
  /** The steps of the hog that have come since `before`. */
  newSteps(before: readonly string[]): Promise<string[]>
}

/** An engine with a small disk, of which 200 MiB are to stay free; undefined where none can be started. */
export async function openDiskLab(t: Test): Promise<DiskLab | undefined> {
  if (!(await requireSecondEngine(t))) return undefined
  const engine = await startSecondEngine({ images: ['busybox:lab'], diskBytes: 768 * mebi })
  t.teardown(() => engine.close())
  const { docker } = engine
  const lab = await openLab({ environment: engine.environment, docker })
  t.teardown(() => lab.close())
  // The disk is of memory here, and counts as such.
  const configure = async (changes: object): Promise<void> =>
    await lab.k.configure('builds', { disk_floor_mib: 200, memory_mib: 1024, cpus: 0.5, ...changes })
  await configure({})
  const quiet = await lab.application('quiet', dockerfile('true'))
  const hog = await lab.otherProject('hog', dockerfile('true'))
  t.match(await quiet.deployed(), { status: 'success', error_message: null })
  return {
    engine,
    lab,
    quiet,
    hog,
    async configureFor(during, changes) {
      during.teardown(async () => await configure({}))
      await configure(changes)
    },
    newSteps: async before => (await stepsOf(hog, docker)).filter(one => !before.includes(one))
  }
}
