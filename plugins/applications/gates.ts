import { askRefusal, type Contributions } from 'busbar/sdk'
import { contributionLimitMs } from './api.js'
import { problems } from './problems.js'

export type Gates = Contributions<{ refuses(applicationId: string): Promise<string | null> }>

/** Throws a 409 with the reason when another plugin is at work on the application. */
export async function passGates(gates: Gates, applicationId: string): Promise<void> {
  const reason = await refusalOf(gates, applicationId)
  if (reason !== null) throw problems.busy({ reason })
}

/** The reason of the first plugin that is, leaving out one; null where none is. */
export async function refusalOf(
  gates: Gates,
  applicationId: string,
  besides?: string
): Promise<string | null> {
  for (const { value, plugin } of gates.entries()) {
    if (plugin === besides) continue
    const reason = await askRefusal(() => value.refuses(applicationId), {
      ms: contributionLimitMs,
      what: `the gate of the plugin "${plugin}"`
    })
    if (reason !== null) return reason
  }
  return null
}
