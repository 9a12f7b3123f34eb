import type { RegistryTrial, TrialVerdict } from 'busbar/api/registries'
import { type Clock, isProblem, type Log, withTimeLimit } from 'busbar/sdk'
import type { HostRules } from '../network/host-resolution.js'
import { connectionFailure } from './client/connection-failure.js'
import { RegistryReader } from './client/index.js'
import type { RegistryFailure } from './client/registry-failure.js'
import type { RegistryAuth } from './client/registry-reader.js'

interface TrialParts {
  readonly rules: HostRules
  readonly clock: Clock
  readonly log: Log
}

const answerWithinMs = 20_000

/** Tries accounts as images are pulled: under the host rules, and without credentials for any other host. */
export const registryTrial = (parts: TrialParts): RegistryTrial => ({
  try: async (registry, account, signal) =>
    await withTimeLimit(
      { clock: parts.clock, signal, ms: answerWithinMs },
      async limited => await tryAccount(parts, { registry, account }, limited)
    )
})

interface Tried {
  readonly registry: string
  readonly account: Pick<RegistryAuth, 'username' | 'password'>
}

async function tryAccount(
  { rules, clock, log }: TrialParts,
  { registry, account }: Tried,
  signal: AbortSignal
): Promise<TrialVerdict> {
  const { username, password } = account
  // It takes the name of an image; nothing is asked of that.
  const reader = new RegistryReader(`${registry}/x`, {
    rules,
    clock,
    log,
    auth: { username, password },
    signal
  })
  try {
    const said = await reader.ask({ path: '/v2/' })
    if (/^text\/html\b/i.test(said['content-type'] ?? ''))
      return unreachable(registry, 'what answers there is a web page, and no registry')
    const reason = `the registry ${registry} asks for no account before an image is named, so whether it knows ${username} shows when one is pulled`
    return { status: 'ok', reason: reader.wasAskedForAccount ? null : reason }
  } catch (error) {
    if (signal.aborted) return unreachable(registry, `no answer within ${answerWithinMs / 1000} s`)
    const failure = connectionFailure(error)
    if (failure === undefined) {
      // Of the host rules: what it names must not be asked.
      if (isProblem(error)) return { status: 'unreachable', reason: error.message }
      throw error
    }
    if (isAboutAccount(failure))
      return {
        status: 'refused',
        reason: `the registry ${registry} refused the user name ${username} and its password (${failure.message}): they are wrong or have expired; set the account anew`
      }
    if (reader.mayShowFailure) return unreachable(registry, failure.message)
    log.info({ registry, reason: failure.message }, 'an account of a registry could not be tried')
    return unreachable(registry, 'the log of the platform says why')
  }
}

const isAboutAccount = ({ kind }: RegistryFailure): boolean => kind === 'credentials' || kind === 'forbidden'

const unreachable = (registry: string, reason: string): TrialVerdict => ({
  status: 'unreachable',
  reason: `the registry ${registry} did not say whether it knows the account: ${reason}`
})
