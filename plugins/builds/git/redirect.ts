import { request as httpRequest, type RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { basicAuthorization, type Connection } from './git-command.js'
import { problems } from '../problems.js'
import { parseRepository, type RepositoryAddress } from './repository-address.js'

const answerWithinMs = 30_000
const discovery = '/info/refs?service=git-upload-pack'

/** Where the host says the repository is now; the caller checks the new host as it checked the first. */
export async function redirectTarget (connection: Connection, signal: AbortSignal): Promise<RepositoryAddress> {
  const { address } = connection
  const location = await locationOf(connection, signal)
  const target = new URL(location, address.url + discovery).href
  const shown = target.replace(/\/\/[^/@]*@/, '//')
  const refuse = (reason: string) => problems.redirect({ repo: address.url, target: shown, reason })
  if (!target.endsWith(discovery)) throw refuse('it is not the address of a repository')
  const next = parseRepository(target.slice(0, -discovery.length))
  if (address.isSecure && !next.isSecure) throw refuse('it leaves the encrypted connection')
  return next
}

function locationOf ({ address, pinned, credentials }: Connection, signal: AbortSignal): Promise<string> {
  const request = address.isSecure ? httpsRequest : httpRequest
  const options: RequestOptions = {
    // In all: a header that comes letter by letter is never silent.
    signal: AbortSignal.any([signal, AbortSignal.timeout(answerWithinMs)]),
    headers: {
      'user-agent': 'git/2.0 (busbar)',
      accept: '*/*',
      ...(credentials === null ? {} : { authorization: basicAuthorization(credentials) })
    },
    ...(pinned.length === 0 ? {} : { lookup: pinnedLookup(pinned) })
  }
  return new Promise((resolve, reject) => {
    const outgoing = request(address.url + discovery, options, response => {
      response.destroy()
      const { location } = response.headers
      if (location === undefined) reject(problems.redirect({ repo: address.url, target: 'nowhere', reason: 'the answer names no address' }))
      else resolve(location)
    })
    outgoing.on('error', error => reject(signal.aborted
      ? signal.reason
      : problems.unreachable({ repo: address.url, reason: error.name === 'AbortError' ? `no answer within ${answerWithinMs / 1000} s` : error.message })))
    outgoing.end()
  })
}

const pinnedLookup = (pinned: Connection['pinned']): NonNullable<RequestOptions['lookup']> => (_host, options, callback) => {
  const [first] = pinned
  if (options.all === true || first === undefined) callback(null, [...pinned])
  else callback(null, first.address, first.family)
}
