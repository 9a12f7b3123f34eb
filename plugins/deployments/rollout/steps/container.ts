import type { DeployableApplication } from 'busbar/api/applications'
import type { ContainerRuntime } from 'busbar/api/containers'
import { askContribution, settleAll } from 'busbar/sdk'
import { hookLimitMs } from '../../api.js'
import { candidateName } from '../container-name.js'
import { type AddedParts, checkCollisions, partsOf } from '../contributed-parts.js'
import { watchExit } from '../exit-watch.js'
import { listRights, rightsOfImage } from '../needed-rights.js'
import type { Created, RolloutTools, Started, WithImage, WithNetwork } from '../rollout.js'
import { startWith } from '../start-words.js'
import type { RolloutStep } from '../step-sequence.js'

const defaultPort = 8080

/** The network of the project, made when this is its first container. */
export function network({
  runtime
}: Pick<RolloutTools, 'runtime'>): RolloutStep<WithImage, Pick<WithNetwork, 'network'>> {
  return {
    name: 'network',
    isEarly: true,
    async run({ application: { projectId, projectSlug } }) {
      return { network: await runtime.ensureNetwork({ id: projectId, slug: projectSlug }) }
    }
  }
}

/** The container of the new version, beside the old one and not running yet. */
export function create({
  runtime,
  imageService,
  parts,
  store
}: Pick<RolloutTools, 'runtime' | 'imageService' | 'parts' | 'store'>): RolloutStep<
  WithNetwork,
  Pick<Created, 'containerId' | 'port' | 'isPortKnown'>
> {
  /** Not every builder says it of the image that it has made. */
  const entrypointOf = async ({ image, name }: WithImage['image']): Promise<readonly string[]> =>
    image.entrypoint ?? (await imageService.image(name))?.entrypoint ?? []

  return {
    name: 'create',
    isEarly: true,
    async run({
      deployment,
      application,
      variables,
      image: prepared,
      network,
      signal,
      buildLog,
      secrets,
      undos
    }) {
      const { id: deploymentId } = deployment
      undos.push({ step: 'create', run: async () => await removeContainers(deploymentId, runtime) })
      const { image, name } = prepared
      const exposed = image.exposedPorts[0]
      const port = application.containerPort ?? exposed ?? defaultPort
      const added = await Promise.all(
        parts.entries().map(async ({ value, plugin }): Promise<AddedParts> => {
          const what = `the container parts of the plugin "${plugin}"`
          const ask = { ms: hookLimitMs, signal, what }
          return { plugin, ...partsOf(await askContribution(() => value.partsFor(application), ask), what) }
        })
      )
      checkCollisions(added)
      secrets.redact(added.flatMap(({ hidden }) => hidden))
      for (const msg of [missingRights(application), sharedVolumes(application, added)])
        if (msg !== undefined) buildLog.line({ level: 'warning', msg })
      const check = application.healthCheck
      const words =
        application.startCommand !== null && startWith(application.startCommand, await entrypointOf(prepared))
      const creation = runtime.create({
        name: candidateName(application.slug, deploymentId),
        image: name,
        owner: { projectId: application.projectId, applicationId: application.id, deploymentId },
        network,
        ...words,
        env: Object.fromEntries(variables.map(({ key, value }) => [key, value])),
        cpuLimit: application.cpuLimit,
        memoryLimit: application.memoryLimit,
        caps: application.containerCaps,
        readonlyRootfs: application.readonlyRootfs,
        healthCommand: check.type === 'command' ? check : undefined,
        volumes: added.flatMap(({ volumes }) => volumes),
        files: added.flatMap(({ files }) => files)
      })
      const [containerId] = await settleAll([creation, store.change(deploymentId, { container_port: port })])
      return {
        containerId,
        port,
        isPortKnown: application.containerPort !== null || exposed !== undefined
      }
    }
  }
}

/** Said before it starts: what such an image says itself is seldom plain. */
function missingRights({ source, containerCaps }: DeployableApplication): string | undefined {
  const needed = source.type === 'image' && containerCaps === 'minimal' ? rightsOfImage(source.image) : []
  return needed.length === 0
    ? undefined
    : `The image starts as root and goes on as another user, for which it needs the capabilities ${listRights(needed)}. container_caps is minimal, which gives none: should it fail, set container_caps to standard with PUT …/runtime.`
}

/** Said before it starts: a program that locks its files for itself alone would never get healthy. */
function sharedVolumes(
  { status, containerDeploymentId }: DeployableApplication,
  added: readonly AddedParts[]
): string | undefined {
  const isServing = containerDeploymentId !== null && (status === 'running' || status === 'unhealthy')
  const paths = added.flatMap(({ volumes }) =>
    volumes.flatMap(({ path, readOnly }) => (readOnly ? [] : [path]))
  )
  return isServing && paths.length > 0
    ? `The old and the new container both have ${paths.join(', ')} until the old one has ended. A program that must have its files for itself alone is stopped first, with POST …/stop, and deployed then.`
    : undefined
}

export async function removeContainers(deploymentId: string, runtime: ContainerRuntime): Promise<void> {
  for (const { id } of await runtime.list({ deploymentId })) await runtime.remove(id)
  await runtime.removeLeftFiles({ deploymentId })
}

export function start({
  runtime,
  clock
}: Pick<RolloutTools, 'runtime' | 'clock'>): RolloutStep<Created, Pick<Started, 'exitWatch'>> {
  return {
    name: 'start',
    isEarly: true,
    async run({ application, containerId, buildLog, releases }) {
      const exitWatch = await watchExit(runtime, clock, containerId)
      releases.push(exitWatch.stop)
      await runtime.start(containerId)
      buildLog.line({
        level: 'info',
        msg:
          application.containerDeploymentId === null
            ? 'The container runs; waiting until it is healthy.'
            : 'The new container runs beside the old one; waiting until it is healthy.'
      })
      return { exitWatch }
    }
  }
}
