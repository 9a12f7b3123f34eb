import { timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Clock, Instance } from 'busbar/sdk'
import {
  type AddressTest,
  addressesIn,
  BcryptThread,
  type OwnAnswer,
  originOf,
  type PasswordAccount,
  PasswordChecks,
  readBasicCredentials
} from 'busbar/sdk/http1'
import { type AccessQuestion, questionHeader, type SentQuestion } from './config/access-check.js'
import { openResponder, type Responder } from './responder.js'

interface ResponderParts {
  readonly host: string
  /** Taken where it is free; any other else. 0: any. */
  readonly port: number
  readonly clock: Pick<Clock, 'elapsed'>
  readonly instance: Pick<Instance, 'ownProxy'>
}

const nobody: AddressTest = () => false
const notAsked: OwnAnswer = { status: 404, sentence: 'There is nothing here.' }
const forbidden: OwnAnswer = { status: 403, sentence: 'Forbidden' }

/** Tells Caddy who may pass: by a name and a password, with the limits of `PasswordChecks`, or by an address. Nobody else is answered. */
export async function openAccessResponder({
  host,
  port,
  clock,
  instance
}: ResponderParts): Promise<Responder> {
  const thread = new BcryptThread()
  const checks = new PasswordChecks(
    () => clock.elapsed(),
    (password, hash) => thread.verify(password, hash)
  )
  const questions = new Questions()
  const answerTo = async (request: IncomingMessage): Promise<OwnAnswer | undefined> => {
    if (!isOwn(request, instance.ownProxy)) return notAsked
    const question = questions.of(request)
    if (question === undefined) return notAsked
    const address = clientOf(request, question.isTrusted)
    if (question.kind === 'addresses') return question.isInside(address) ? undefined : forbidden
    const account = accountFor(request, question.accounts)
    if (account === undefined) return forbidden
    return await checks.check(question.routeId, account)({ address, request })
  }
  const server = createServer({ maxHeaderSize: 256 * 1024 }, (request, response) => {
    request.resume()
    void answerTo(request).then(
      answer => say(response, answer),
      () => response.destroy()
    )
  })
  const open = await openResponder(server, { host, port })
  return { ...open, close: async () => void (await Promise.all([open.close(), thread.close()])) }
}

function isOwn({ headers }: IncomingMessage, { header, value }: Instance['ownProxy']): boolean {
  const given = Buffer.from(String(headers[header.toLowerCase()] ?? ''))
  const wanted = Buffer.from(value)
  return given.length === wanted.length && timingSafeEqual(given, wanted)
}

type Question = { readonly isTrusted: AddressTest } & (
  | (AccessQuestion & { readonly kind: 'passwords' })
  | { readonly kind: 'addresses'; readonly isInside: AddressTest }
)

/** How many are remembered as they were read: there is one for each route that asks. */
const mostQuestions = 1000

/** What Caddy has asked, read once for all requests of a route. */
class Questions {
  readonly #read = new Map<string, Question>()

  of({ headers }: IncomingMessage): Question | undefined {
    const text = headers[questionHeader.toLowerCase()]
    if (typeof text !== 'string') return undefined
    const known = this.#read.get(text)
    if (known !== undefined) return known
    const read = questionIn(text)
    if (read === undefined) return undefined
    if (this.#read.size >= mostQuestions) this.#read.clear()
    this.#read.set(text, read)
    return read
  }
}

function questionIn(text: string): Question | undefined {
  try {
    const question = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as SentQuestion
    const isTrusted = addressesIn(question.trustedProxies) ?? nobody
    return question.kind === 'addresses'
      ? { kind: 'addresses', isTrusted, isInside: addressesIn(question.ranges) ?? nobody }
      : { ...question, isTrusted }
  } catch {
    return undefined
  }
}

/** That of the name which was given; for one that nobody has any, whose hash takes as long. */
function accountFor(
  { headers: { authorization } }: IncomingMessage,
  accounts: readonly PasswordAccount[]
): PasswordAccount | undefined {
  const username = readBasicCredentials(authorization)?.username
  return accounts.find(account => account.username === username) ?? accounts[0]
}

/** Caddy adds whom it was asked by at the right end. */
function clientOf({ headers }: IncomingMessage, isTrusted: AddressTest): string {
  const addresses = [headers['x-forwarded-for'] ?? []].flat().join(',').split(',')
  const peer = addresses.pop()?.trim() ?? ''
  return originOf(peer, addresses.join(','), isTrusted).address
}

function say(response: ServerResponse, answer: OwnAnswer | undefined): void {
  if (answer === undefined) {
    response.writeHead(204).end()
    return
  }
  const body = `${answer.sentence}\n`
  response.writeHead(answer.status, {
    ...answer.headers,
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store'
  })
  response.end(body)
}
