import type { ApplicationSource } from 'busbar/api/applications'
import { askRefusal, settleAll } from 'busbar/sdk'
import { hookLimitMs } from '../../api.js'
import { DeployFailure } from '../deploy-failure.js'
import type { Loaded, Rollout, RolloutTools } from '../rollout.js'
import type { RolloutStep } from '../step-sequence.js'

/** Reads what is to be deployed, and asks those who may refuse it. */
export function load({
  registry,
  gates,
  variables,
  clock
}: Pick<RolloutTools, 'registry' | 'gates' | 'variables' | 'clock'>): RolloutStep<
  Rollout,
  Pick<Loaded, 'application' | 'loadedAt' | 'variables'>
> {
  return {
    name: 'load',
    isEarly: true,
    async run({ deployment, secrets, signal }) {
      const { application_id: applicationId, project_id: projectId } = deployment
      const loadedAt = clock.now()
      const [application, merged] = await settleAll([
        registry.deployable(applicationId),
        variables.merged(projectId, applicationId)
      ])
      if (application === undefined) throw new DeployFailure('the application is being deleted')
      for (const { value, plugin } of gates.entries()) {
        const reason = await askRefusal(() => value.refuses({ id: applicationId, projectId }), {
          ms: hookLimitMs,
          signal,
          what: `the deploy gate of the plugin "${plugin}"`
        })
        if (reason !== null) throw new DeployFailure(reason)
      }
      const hidden = merged.filter(({ isSecret }) => isSecret).map(({ value }) => value)
      secrets.redact([...hidden, ...secretsOf(application.source)])
      return { application, loadedAt, variables: merged }
    }
  }
}

/** What an application's source is fetched with. */
function secretsOf(source: ApplicationSource): string[] {
  const secret = source.type === 'git' ? source.token : source.registry?.password
  return secret === undefined || secret === null ? [] : [secret]
}
