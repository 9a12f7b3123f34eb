import type { Contributions } from 'busbar/sdk'
import { problems } from './problems.js'

export type Gates = Contributions<{ refuses(applicationId: string): Promise<string | null> }>

/** Throws a 409 with the reason when somebody is at work on the application. */
export async function passGates (gates: Gates, applicationId: string): Promise<void> {
  for (const { value } of gates.entries()) {
    const reason = await value.refuses(applicationId)
    if (reason !== null) throw problems.busy({ reason })
  }
}
