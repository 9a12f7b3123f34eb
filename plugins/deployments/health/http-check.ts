import { request } from 'node:http'
import type { ContainerRuntime } from 'busbar/api/containers'
import { type Clock, cutText, withTimeLimit } from 'busbar/sdk'
import { type AnswerFault, guardAnswer } from 'busbar/sdk/http1'

const requestMs = 5000
const excerptCharacters = 200
const mostRedirects = 5

/** One question a container is asked to know whether it is well. */
export interface HttpCheck {
  readonly path: string
  /** 0 = any 2xx. */
  readonly expectStatus: number
  readonly port: number
}

interface HttpCheckResult {
  readonly isHealthy: boolean
  /** Completes "GET /health …": `answered 200`, `got no connection: it was refused`. */
  readonly saw: string
  readonly isRefused: boolean
  /** The container sent something, whatever it was. */
  readonly isAnswered: boolean
  /** Why the container could not even be found on the engine. */
  readonly cause?: unknown
}

interface Tools {
  readonly runtime: Pick<ContainerRuntime, 'dial'>
  readonly clock: Pick<Clock, 'sleep'>
  readonly signal: AbortSignal
}

interface Address {
  readonly host: string
  readonly port: number
}

interface Answer {
  readonly status: number
  /** Where a redirect leads. */
  readonly location: URL | null
  readonly excerpt: string
}

/** Asks once. Redirects within the container are followed, unless one is what is wanted. It never rejects. */
export async function askHttp(
  containerId: string,
  check: HttpCheck,
  { runtime, clock, signal }: Tools
): Promise<HttpCheckResult> {
  let at: Address
  try {
    at = await runtime.dial(containerId, check.port)
  } catch (error) {
    return {
      ...unanswered(`could not be sent (${error instanceof Error ? error.message : String(error)})`),
      cause: error
    }
  }
  return await withTimeLimit(
    { signal, ms: requestMs, clock },
    async limited => await follow(at, check, limited)
  )
}

async function follow(at: Address, check: HttpCheck, signal: AbortSignal): Promise<HttpCheckResult> {
  const isRedirectWanted = check.expectStatus >= 300 && check.expectStatus < 400
  let path = check.path
  for (let hops = 0; ; hops++) {
    const answer = await ask(at, path, signal)
    if ('saw' in answer) return answer
    const { location } = answer
    // A redirect to another name, or to TLS, is for the proxy in front of the container.
    if (isRedirectWanted || hops === mostRedirects || location?.origin !== originOf(at))
      return evaluate(check, answer)
    path = location.pathname + location.search
  }
}

function evaluate({ expectStatus }: HttpCheck, { status, location, excerpt }: Answer): HttpCheckResult {
  const isHealthy = expectStatus === 0 ? status >= 200 && status < 300 : status === expectStatus
  const more =
    location !== null
      ? ` and leads to ${cutText(location.href, excerptCharacters)}, which is not followed`
      : excerpt === ''
        ? ''
        : `: ${excerpt}`
  return { isHealthy, saw: `answered ${status}${isHealthy ? '' : more}`, isRefused: false, isAnswered: true }
}

const originOf = ({ host, port }: Address): string => new URL(`http://${host}:${port}`).origin

async function ask(at: Address, path: string, signal: AbortSignal): Promise<Answer | HttpCheckResult> {
  return await new Promise(resolve => {
    const outgoing = request(
      { ...at, path, agent: false, signal, headers: { 'User-Agent': 'busbar-health-check' } },
      answer => {
        const {
          statusCode: status = 0,
          headers: { location }
        } = answer
        const isRedirect =
          status >= 300 &&
          status < 400 &&
          location !== undefined &&
          URL.canParse(location, originOf(at) + path)
        let body = ''
        const done = (): void => {
          resolve({
            status,
            location: isRedirect ? new URL(location, originOf(at) + path) : null,
            excerpt: cutText(body.replace(/\s+/g, ' ').trim(), excerptCharacters)
          })
          outgoing.destroy()
        }
        answer.setEncoding('utf8')
        answer.on('data', (text: string) => {
          body += text
          if (body.length > 1000) done()
        })
        answer.once('end', done)
        answer.once('error', done)
      }
    )
    guardAnswer(outgoing, fault => resolve({ ...unanswered(sawInstead[fault]), isAnswered: true }))
    outgoing.once('error', (error: NodeJS.ErrnoException) =>
      resolve(
        error.name === 'AbortError'
          ? unanswered(`had no answer within ${requestMs / 1000} s`)
          : error.code === 'ECONNREFUSED'
            ? { ...unanswered('got no connection: it was refused'), isRefused: true }
            : unanswered(`failed (${error.code ?? error.message})`)
      )
    )
    outgoing.end()
  })
}

const sawInstead: Readonly<Record<AnswerFault, string>> = {
  interim: 'sent interim answers (1xx) one after another and no final one',
  none: 'ended the connection without an answer, or for another protocol that was not requested (101)'
}

const unanswered = (saw: string): HttpCheckResult => ({
  isHealthy: false,
  saw,
  isRefused: false,
  isAnswered: false
})
