import { isProblem, withTimeLimit } from 'busbar/sdk'
import { openBound } from '../network/bound-request.js'
import { problems } from '../problems.js'
import { basicAuthorization, type Connection } from './git-command.js'
import { type HttpAddress, parseHttpRepository } from './repository-address.js'

const answerWithinMs = 30_000
const discovery = '/info/refs?service=git-upload-pack'

/** Where the host says the repository is now; the caller checks the new host as it checked the first. */
export async function redirectTarget(connection: Connection, signal: AbortSignal): Promise<HttpAddress> {
  const { address } = connection
  const location = await locationOf(connection, signal)
  const target = new URL(location, address.url + discovery).href
  const shown = target.replace(/\/\/[^/@]*@/, '//')
  const refuse = (reason: string) => problems.redirect({ repo: address.url, target: shown, reason })
  if (!target.endsWith(discovery)) throw refuse('it is not the address of a repository')
  const next = parseHttpRepository(target.slice(0, -discovery.length))
  if (address.isSecure && !next.isSecure) throw refuse('it leaves the encrypted connection')
  return next
}

async function locationOf(
  { address, pinned, credentials }: Connection,
  signal: AbortSignal
): Promise<string> {
  try {
    // In all: a header that comes letter by letter is never silent.
    const answer = await withTimeLimit(
      { signal, ms: answerWithinMs },
      async limited =>
        await openBound({
          url: new URL(address.url + discovery),
          addresses: pinned,
          signal: limited,
          headers: {
            'user-agent': 'git/2.0 (busbar)',
            accept: '*/*',
            ...(credentials === null ? {} : { authorization: basicAuthorization(credentials) })
          }
        })
    )
    answer.destroy()
    const { location } = answer.headers
    if (location === undefined)
      throw problems.redirect({ repo: address.url, target: 'nowhere', reason: 'the answer names no address' })
    return location
  } catch (error) {
    signal.throwIfAborted()
    if (isProblem(error) || !(error instanceof Error)) throw error
    throw problems.unreachable({
      repo: address.url,
      reason: error.name === 'AbortError' ? `no answer within ${answerWithinMs / 1000} s` : error.message
    })
  }
}
