import type { IncomingMessage, ServerResponse } from 'node:http'
import { declaredStatuses } from '../../core/declarations/responses.js'
import type { Kernel } from '../../core/kernel.js'

/**
 * Compares what operations answer with what they declare, from now on. Returns what was answered and is not declared, as
 * `POST /api/projects 418`, each once.
 */
export function watchAnswers({ edge }: Kernel): () => string[] {
  const undeclared = new Set<string>()
  edge.server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const path = (request.url ?? '').replace(/[?#].*$/s, '')
    const method = request.method === 'HEAD' ? 'GET' : (request.method ?? '')
    const asked = edge.table.find(method, path)?.entry
    response.once('finish', () => {
      // What a plugin that is off answers is the platform's.
      const entry = edge.table.find(method, path)?.entry
      if (asked?.instance === undefined || entry?.instance === undefined) return
      const { record } = entry
      if (!declaredStatuses(record).has(response.statusCode))
        undeclared.add(`${record.method} ${record.url} ${response.statusCode}`)
    })
  })
  return () => [...undeclared].sort()
}
