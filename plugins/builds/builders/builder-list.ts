import { askOrLeaveOut, type Contributions, cutText, type Log, messageOf } from 'busbar/sdk'
import type { Builder } from '../api.js'
import type { BuilderAnswer } from '../schemas.js'

const unavailableMs = 10_000
const longestReason = 1000

/** Which build types there are, and whether each can be used on this machine. */
export async function listBuilders(builders: Contributions<Builder>, log: Log): Promise<BuilderAnswer[]> {
  const rows = await Promise.all(
    builders.entries().map(async entry => {
      const { key, plugin } = entry
      let refusal: string | undefined
      const answer = await askOrLeaveOut(entry, async value => (await value.unavailable?.()) ?? null, {
        ms: unavailableMs,
        what: 'the availability',
        takes: 'a sentence that says why, or null',
        take: reason => (reason === null || typeof reason === 'string' ? { reason } : undefined),
        onProblem: problem => {
          refusal = messageOf(problem)
        },
        log
      })
      const reason =
        answer === undefined
          ? (refusal ?? `the plugin "${plugin}" has not told whether it can build; see the log`)
          : answer.reason
      return {
        build_type: key,
        plugin,
        available: reason === null,
        reason: reason && cutText(reason, longestReason)
      }
    })
  )
  return rows.sort((a, b) => (a.build_type < b.build_type ? -1 : 1))
}

/** Why nothing can be built; null where anything can. Programs that one build type needs are missing on many machines. */
export function builderFault(builders: readonly BuilderAnswer[]): string | null {
  if (builders.some(({ available }) => available)) return null
  const { reason = 'there is no builder' } =
    builders.find(({ build_type: type }) => type === 'dockerfile') ?? {}
  return `no build type can be used: ${reason}`
}
