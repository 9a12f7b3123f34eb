import type { BuildRequest } from '../api.js'
import { readSource } from '../context/source-tree.js'
import { problems } from '../problems.js'

export const railpackPlanFile = 'railpack-plan.json'

interface RailpackPlan {
  readonly text: string
  /** Names of the secrets that its front-end asks for. */
  readonly secrets: readonly string[]
}

/** What `railpack prepare` has written. */
export async function readRailpackPlan(directory: string): Promise<RailpackPlan> {
  const text = await readSource(directory, railpackPlanFile)
  if (text === undefined) throw bad('there is none')
  return { text, secrets: secretsOf(text) }
}

function secretsOf(text: string): readonly string[] {
  let plan: unknown
  try {
    plan = JSON.parse(text)
  } catch (error) {
    throw bad(`it is not JSON: ${String(error).slice(0, 200)}`)
  }
  const secrets = typeof plan === 'object' && plan !== null && 'secrets' in plan ? plan.secrets : undefined
  // Without any it has none, or null.
  if (secrets === undefined || secrets === null) return []
  if (!Array.isArray(secrets) || !secrets.every(name => typeof name === 'string'))
    throw bad('its secrets are no names')
  return secrets as readonly string[]
}

/** The values of them. A secret that is named and not given ends the build without a word that helps. */
export function valuesOfSecrets(
  { secrets }: Pick<RailpackPlan, 'secrets'>,
  variables: BuildRequest['variables']
): Readonly<Record<string, string>> {
  const values = new Map(variables.map(({ key, value }) => [key, value]))
  const missing = secrets.filter(name => !values.has(name))
  if (missing.length > 0)
    throw problems.toolSecrets({
      names: missing
        .slice(0, 10)
        .map(name => name.slice(0, 100))
        .join(', ')
    })
  return Object.fromEntries(secrets.map(name => [name, values.get(name) ?? '']))
}

/** The text by which a change of a value, of a name or of the application is seen. */
export const secretsText = (applicationId: string, secrets: Readonly<Record<string, string>>): string =>
  JSON.stringify([applicationId, Object.entries(secrets).sort(([a], [b]) => (a < b ? -1 : 1))])

const bad = (reason: string) =>
  problems.toolNoFile({ program: 'railpack', what: `plan (${railpackPlanFile})`, reason })
