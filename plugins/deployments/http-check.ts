import { request } from 'node:http'
import type { ContainerRuntime } from 'busbar/api/runtime-docker'

const requestMs = 5000
const excerptCharacters = 200

/** One question a container is asked to know whether it is well. */
export interface HttpCheck {
  readonly path: string
  /** 0 = any 2xx. */
  readonly expectStatus: number
  readonly port: number
}

export interface HttpCheckResult {
  readonly isHealthy: boolean
  /** Completes "GET /health …": `answered 200`, `got no connection: it was refused`. */
  readonly saw: string
  readonly isRefused: boolean
}

/** Asks once. Redirects are not followed. It never rejects. */
export async function askHttp (
  containerId: string, check: HttpCheck, { runtime, signal }: { readonly runtime: Pick<ContainerRuntime, 'dial'>, readonly signal: AbortSignal }
): Promise<HttpCheckResult> {
  let at: { readonly host: string, readonly port: number }
  try {
    at = await runtime.dial(containerId, check.port)
  } catch (error) {
    return unanswered(`could not be sent (${error instanceof Error ? error.message : String(error)})`)
  }
  return await new Promise(resolve => {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(requestMs)])
    const outgoing = request({ ...at, path: check.path, agent: false, signal: limit, headers: { 'User-Agent': 'busbar-health-check' } }, answer => {
      const status = answer.statusCode ?? 0
      const isHealthy = check.expectStatus === 0 ? status >= 200 && status < 300 : status === check.expectStatus
      let body = ''
      const done = (): void => {
        const excerpt = body.replace(/\s+/g, ' ').trim().slice(0, excerptCharacters)
        resolve({ isHealthy, saw: `answered ${status}${isHealthy || excerpt === '' ? '' : `: ${excerpt}`}`, isRefused: false })
        outgoing.destroy()
      }
      answer.setEncoding('utf8')
      answer.on('data', (text: string) => {
        body += text
        if (body.length > 1000) done()
      })
      answer.once('end', done)
      answer.once('error', done)
    })
    outgoing.once('error', (error: NodeJS.ErrnoException) => resolve(
      error.name === 'AbortError' || error.name === 'TimeoutError' ? unanswered(`had no answer within ${requestMs / 1000} s`)
        : error.code === 'ECONNREFUSED' ? { ...unanswered('got no connection: it was refused'), isRefused: true }
          : unanswered(`failed (${error.code ?? error.message})`)))
    outgoing.end()
  })
}

const unanswered = (saw: string): HttpCheckResult => ({ isHealthy: false, saw, isRefused: false })
