import { setTimeout as sleep } from 'node:timers/promises'

interface TrafficReport {
  readonly requests: number
  readonly failures: readonly string[]
  /** How often each version answered, in the order they first did. */
  readonly versions: ReadonlyMap<string, number>
}

const clients = 4
const pauseMs = 5

/** Visitors who ask for the page all the time, until `stop`, and write down who answered. */
export function startTraffic(url: string): { stop(): Promise<TrafficReport> } {
  const versions = new Map<string, number>()
  const failures: string[] = []
  let requests = 0
  let isOver = false
  const visit = async (): Promise<void> => {
    while (!isOver) {
      requests++
      await versionAt(url).then(
        version => versions.set(version, (versions.get(version) ?? 0) + 1),
        (error: unknown) => failures.push(String(error))
      )
      await sleep(pauseMs)
    }
  }
  const visitors = Array.from({ length: clients }, visit)
  return {
    async stop() {
      isOver = true
      await Promise.all(visitors)
      return { requests, failures, versions }
    }
  }
}

/** What the page at `url` says its version is. */
export async function versionAt(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(10_000) })
  const text = await response.text()
  const version = /version (\w+)/.exec(text)?.[1]
  if (!response.ok || version === undefined) throw new Error(`${response.status} ${text.slice(0, 200)}`)
  return version
}
