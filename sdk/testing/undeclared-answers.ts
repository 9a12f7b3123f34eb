import type { IncomingMessage, ServerResponse } from 'node:http'
import { declaredStatuses } from '../../core/declarations/responses.js'
import type { Kernel } from '../../core/kernel.js'
import { admittedStatus } from './access-matrix.js'

/** As `POST /api/projects 418`, each once. */
interface WatchedAnswers {
  /** What was answered and is not declared. */
  undeclared(): string[]
  /** Of that what `undeclared` has not told yet. */
  untold(): string[]
}

/** No operation answers these itself: what is no valid HTTP is refused on any path, and the access matrix lets in. */
const ofNoOperation: ReadonlySet<number> = new Set([408, 431, admittedStatus])

/** Compares what operations answer with what they declare, from now on. */
export function watchAnswers({ edge }: Kernel): WatchedAnswers {
  const undeclared = new Set<string>()
  const told = new Set<string>()
  edge.server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const path = (request.url ?? '').replace(/[?#].*$/s, '')
    const method = request.method === 'HEAD' ? 'GET' : (request.method ?? '')
    const asked = edge.table.find(method, path)?.entry
    response.once('finish', () => {
      // What a plugin that is off answers is the platform's.
      const entry = edge.table.find(method, path)?.entry
      if (asked?.instance === undefined || entry?.instance === undefined) return
      const { record } = entry
      const { statusCode: status } = response
      if (!ofNoOperation.has(status) && !declaredStatuses(record).has(status))
        undeclared.add(`${record.method} ${record.url} ${status}`)
    })
  })
  return {
    undeclared() {
      for (const answer of undeclared) told.add(answer)
      return [...undeclared].sort()
    },
    untold: () => [...undeclared].filter(answer => !told.has(answer)).sort()
  }
}
