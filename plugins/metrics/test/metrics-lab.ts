import { randomBytes, randomUUID } from 'node:crypto'
import { applicationRegistry } from 'busbar/api/applications'
import { containerRuntime } from 'busbar/api/containers'
import { type TestClient, type TestKernel, until } from 'busbar/sdk/testing'

/** An application that runs, as after a deploy. */
interface RunningApplication {
  readonly id: string
  readonly projectId: string
  /** `/api/projects/…/applications/…` */
  readonly path: string
  readonly containerId: string
  /** Another container takes the place of this one, as after a further deploy; its id. */
  replace(script?: string): Promise<string>
}

/** What keeps a core busy. */
export const busy = 'trap "exit 0" TERM; while true; do :; done'
/** What does nothing, and ends when it is told to. */
const idle = 'trap "exit 0" TERM; while true; do sleep 0.1; done'

/** A project of `client`, on the engine too. */
export async function makeProject(
  client: TestClient
): Promise<{ readonly id: string; readonly slug: string }> {
  const slug = `metrics-${randomBytes(4).toString('hex')}`
  const { status, body } = await client.post('/api/projects', { name: 'Metrics', slug })
  if (status !== 201) throw new Error(`no project: ${JSON.stringify(body)}`)
  return { id: body.id as string, slug }
}

/** An application whose container runs `script`. */
export async function runApplication(
  k: TestKernel,
  client: TestClient,
  project: { readonly id: string; readonly slug: string },
  { script = idle, memoryLimit = 0 }: { readonly script?: string; readonly memoryLimit?: number } = {}
): Promise<RunningApplication> {
  const made = await client.post(`/api/projects/${project.id}/applications`, {
    name: 'app',
    type: 'image',
    build_type: 'image',
    source_image: 'busybox:lab',
    container_port: 8080
  })
  if (made.status !== 201) throw new Error(`no application: ${JSON.stringify(made.body)}`)
  const { id, slug } = made.body as { id: string; slug: string }
  const path = `/api/projects/${project.id}/applications/${id}`
  const runtime = k.service(containerRuntime)
  const network = await runtime.ensureNetwork(project)

  const deploy = async (name: string, command: string): Promise<string> => {
    const deploymentId = randomUUID()
    const containerId = await runtime.create({
      name,
      image: 'busybox:lab',
      owner: { projectId: project.id, applicationId: id, deploymentId },
      network,
      env: {},
      command: ['sh', '-c', command],
      cpuLimit: 0,
      memoryLimit,
      caps: 'minimal',
      readonlyRootfs: true
    })
    await runtime.start(containerId)
    const now = new Date()
    await k.transaction(async tx => {
      await k
        .service(applicationRegistry)
        .recordDeployed(id, { deploymentId, startedAt: now, finishedAt: now, rebuilt: true }, tx)
    })
    await until(async () => (await client.get(path)).body.status === 'running', 'it runs')
    return containerId
  }
  return {
    id,
    projectId: project.id,
    path,
    containerId: await deploy(slug, script),
    replace: async (next = idle) => await deploy(`${slug}-${randomBytes(4).toString('hex')}`, next)
  }
}
