import { askRefusal, type Contributions } from 'busbar/sdk'
import { contributionLimitMs } from './api.js'
import { problems } from './problems.js'

export type Gates = Contributions<{ refuses(applicationId: string): Promise<string | null> }>

/** Throws a 409 with the reason when another plugin is at work on the application. */
export async function passGates(gates: Gates, applicationId: string): Promise<void> {
  for (const { value, plugin } of gates.entries()) {
    const reason = await askRefusal(() => value.refuses(applicationId), {
      ms: contributionLimitMs,
      what: `the gate of the plugin "${plugin}"`
    })
    if (reason !== null) throw problems.busy({ reason })
  }
}
