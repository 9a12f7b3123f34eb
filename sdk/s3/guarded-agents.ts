import { lookup } from 'node:dns'
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { S3Error, type S3Settings } from './settings.js'

const mostSockets = 16

/** Agents that connect to no address which the settings refuse; nothing where they refuse none. Throws for an address that is refused. */
export function guardedAgents({ refuses }: Pick<S3Settings, 'refuses'>, host: string) {
  if (refuses === undefined) return {}
  const named = new URL(`http://${host}`).hostname.replace(/^\[|\]$/g, '')
  // Of an address nothing is looked up.
  const refusal = isIP(named) === 0 ? null : refuses(named, named)
  if (refusal !== null) throw new S3Error(refusal)
  const options = { keepAlive: true, maxSockets: mostSockets, lookup: guarded(refuses) }
  return { httpAgent: new HttpAgent(options), httpsAgent: new HttpsAgent(options) }
}

/** What is looked up is what is connected to: a name that leads elsewhere a moment later gains nothing. */
const guarded =
  (refuses: NonNullable<S3Settings['refuses']>): LookupFunction =>
  (hostname, options, done) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) {
        done(error, '', 0)
        return
      }
      const allowed = found.filter(({ address }) => refuses(hostname, address) === null)
      const [first] = allowed
      if (first === undefined) {
        const refusal = found.map(({ address }) => refuses(hostname, address)).find(one => one !== null)
        done(new S3Error(refusal ?? `${hostname} leads nowhere`), '', 0)
      } else if (options.all === true) done(null, allowed)
      else done(null, first.address, first.family)
    })
  }
