import findMyWay from 'find-my-way'
import type { PluginRecords, SocketRecord } from '../declarations/records.js'

interface ServedSocket {
  readonly record: SocketRecord
  readonly self: object
  readonly signal: AbortSignal
}

/** A plugin; `run` is missing while it is off. */
interface SocketOwner {
  readonly run?: {
    readonly records: Pick<PluginRecords, 'sockets'>
    readonly self: object
    readonly signal: AbortSignal
  }
}

/** The WebSockets of running plugins by path, replaced whole like the route table. */
export class SocketTable {
  #router = findMyWay()
  records: readonly SocketRecord[] = []

  replace(plugins: Iterable<SocketOwner>): void {
    const router = findMyWay()
    const running = [...plugins]
    this.records = running.flatMap(({ run }) => run?.records.sockets ?? [])
    for (const { run } of running) {
      for (const record of run?.records.sockets ?? []) {
        const served: ServedSocket = {
          record,
          self: run?.self ?? {},
          signal: run?.signal ?? AbortSignal.abort()
        }
        router.on('GET', record.url, () => {}, served)
      }
    }
    this.#router = router
  }

  find(path: string): (ServedSocket & { params: Readonly<Record<string, string>> }) | undefined {
    const found = this.#router.find('GET', path)
    if (found === null) return undefined
    const params = Object.fromEntries(
      Object.entries(found.params).map(([name, value]) => [name, value ?? ''])
    )
    return { ...(found.store as ServedSocket), params }
  }
}
