import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { type Conversation, conversations } from './requests.js'
import { Rig, type Usage } from './rig.js'
import { shrink } from './shrink.js'

interface Finding {
  readonly what: string
  readonly input: readonly Conversation[]
}

interface Outcome {
  readonly seed: number
  readonly conversations: number
  /** Answers by surface and status. */
  readonly statuses: Readonly<Record<string, number>>
  readonly finding: Finding | null
  readonly usage: { readonly before: Usage; readonly after: Usage } | null
}

const atOnce = 8
/** What caches and pools may come to hold. */
const heapAllowanceMb = 40
const handleAllowance = 10
const shrinkMs = 60_000
const casesInPart = 25
const partMs = 10_000
/** Far from the seeds that are used next to each other. */
const partStep = 1_000_003

/** Fuzzes one platform for `forMs`; a finding ends it and is made as small as can be. `pauseMs` between cases spares the machine. */
export async function campaign({
  seed,
  forMs,
  pauseMs = 0
}: {
  readonly seed: number
  readonly forMs: number
  readonly pauseMs?: number
}): Promise<Outcome> {
  let rig = await Rig.start()
  try {
    const cases = fc.array(conversations(rig.ready?.credential ?? ''), { minLength: 1, maxLength: atOnce })
    // What is loaded or made once is no leak.
    for (const one of fc.sample(cases, { seed: seed + 1, numRuns: 40 }))
      await rig.converse(one).catch(() => {})
    const before = await rig.usage()
    const tryCase = async (one: Conversation[]): Promise<void> => {
      if (rig.child.exitCode !== null) {
        await rig.close()
        rig = await Rig.start()
      }
      await rig.converse(one)
      if (pauseMs > 0) await sleep(pauseMs)
    }
    const end = performance.now() + forMs
    let result: fc.RunDetails<[Conversation[]]> | undefined
    for (let part = 0; performance.now() < end && result?.failed !== true; part += 1) {
      const parameters = {
        seed: seed + part * partStep,
        numRuns: casesInPart,
        interruptAfterTimeLimit: Math.min(partMs, end - performance.now()),
        markInterruptAsFailure: false,
        endOnFailure: true
      }
      result = await fc.check(fc.asyncProperty(cases, tryCase), parameters)
    }
    const fails = async (input: readonly Conversation[]): Promise<boolean> =>
      await tryCase([...input]).then(
        () => false,
        () => true
      )
    const summary = {
      seed,
      conversations: rig.conversations,
      statuses: Object.fromEntries([...rig.statuses].sort())
    }
    const input = result?.counterexample?.[0]
    if (input !== undefined)
      return {
        ...summary,
        finding: {
          what: String((result?.errorInstance as Error | null)?.message),
          input: await shrink(input, shrinkMs, fails)
        },
        usage: null
      }
    return { ...summary, ...(await leftBehind(rig, before)) }
  } finally {
    await rig.close()
  }
}

/** Memory and handles return once the last connections are gone. */
async function leftBehind(rig: Rig, before: Usage): Promise<Pick<Outcome, 'finding' | 'usage'>> {
  let after = await rig.usage()
  const isBack = (): boolean =>
    after.heapMb <= before.heapMb + heapAllowanceMb &&
    Object.entries(after.handles).every(
      ([name, count]) => count <= (before.handles[name] ?? 0) + handleAllowance
    )
  for (const late = performance.now() + 20_000; !isBack() && performance.now() < late; ) {
    await sleep(500)
    after = await rig.usage()
  }
  return {
    usage: { before, after },
    finding: isBack()
      ? null
      : { what: `what was taken has not come back: ${JSON.stringify({ before, after })}`, input: [] }
  }
}
