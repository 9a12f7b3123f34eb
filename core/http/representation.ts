import type { FastifyReply } from 'fastify'
import { codingFor, compress, isWorthCompressing } from './content-coding.js'
import { entityTag, hasTag } from './entity-tag.js'
import type { KeptAnswer, KeptAnswers } from './kept-answers.js'
import { addVary, setDefaultHeader } from './platform-response.js'
import type { RequestContext } from './request-context.js'

/** Which answer this is, told before it is made. */
export interface AnswerVersion {
  /** Where it is kept: by run of the plugin, address and caller. */
  readonly key: string
  readonly tag: string
}

/**
 * The version of an answer that a plugin tells, of one run of it. Who asks is a part of it: what callers see may differ, and so
 * may what two see who share a browser, one after the other.
 */
export function answerVersion(run: string, { raw, caller }: RequestContext, version: string): AnswerVersion {
  const who = caller.kind === 'anonymous' ? [] : [caller.user.id, caller.user.role]
  const reach = caller.kind === 'token' ? [caller.scope, ...(caller.pins ?? ['anywhere'])] : []
  const key = [run, caller.kind, ...who, ...reach, raw.url].join(' ')
  return { key, tag: entityTag(`${key} ${version}`) }
}

type Headers = Readonly<Record<string, string>>

/** A text that answers a request, whole and ready. */
interface ReadyText {
  readonly text: string
  /** What the handler has set besides, if anything. */
  readonly headers: Headers | undefined
  readonly version: AnswerVersion | undefined
}

/** Whoever awaits a reply of fastify waits until all of it has been taken, and pays for that: nothing is handed on. */
type Sending = undefined | Promise<undefined>
const sent = (_reply: FastifyReply): undefined => undefined

/** Characters. Its digest would hold the loop for long; it is sent without a tag. */
const longestTagged = 4 * 2 ** 20

/** Whoever keeps it asks each time whether it is still right, and nobody keeps it for others. */
const revalidated = 'private, no-cache'

/**
 * Sends the answer of a conditional route: with a tag, in the content coding that was asked for, or as 304 to who has it
 * (RFC 9110, 13.1.2 and 12.5.3). One that says `no-store` is sent as it is: neither tagged nor compressed nor kept.
 */
export function sendText(
  { text, headers, version }: ReadyText,
  context: RequestContext,
  reply: FastifyReply,
  kept: KeptAnswers
): Sending {
  if (headers !== undefined && saysNoStore(headers)) return sent(reply.send(text))
  // Headers are a part of it: one tells how many rows there are on other pages.
  const tag =
    version?.tag ??
    (text.length > longestTagged
      ? undefined
      : entityTag(headers === undefined ? text : Object.values(headers).join('\n') + text))
  if (tag !== undefined && hasTag(context.raw.headers['if-none-match'], tag))
    return sendNotModified(context, reply, tag, headers)
  setHeaders(context, tag)
  if (version === undefined && codingFor(context.raw.headers['accept-encoding']) === null)
    return sent(reply.send(text))
  const answer: KeptAnswer = {
    tag: tag ?? '',
    headers: { ...headers, 'content-type': String(reply.getHeader('content-type')) },
    bytes: Buffer.from(text),
    coded: {}
  }
  if (version !== undefined) kept.put(version.key, answer)
  return sendBytes(answer, context, reply, kept, version)
}

/** Answers from what is there: 304 to who has it, or what was kept. Null when it is to be made. */
export function sendKnown(
  version: AnswerVersion,
  context: RequestContext,
  reply: FastifyReply,
  kept: KeptAnswers
): Sending | null {
  if (hasTag(context.raw.headers['if-none-match'], version.tag))
    return sendNotModified(context, reply, version.tag)
  const answer = kept.get(version.key, version.tag)
  if (answer === undefined) return null
  setHeaders(context, version.tag)
  void reply.code(200).headers(answer.headers)
  return sendBytes(answer, context, reply, kept, version)
}

function sendBytes(
  answer: KeptAnswer,
  context: RequestContext,
  reply: FastifyReply,
  kept: KeptAnswers,
  version: AnswerVersion | undefined
): Sending {
  const coding = isWorthCompressing(answer.bytes.length)
    ? codingFor(context.raw.headers['accept-encoding'])
    : null
  if (coding === null) return sent(reply.send(answer.bytes))
  const send = (coded: Buffer | undefined): undefined =>
    sent(
      coded === undefined ? reply.send(answer.bytes) : reply.header('content-encoding', coding).send(coded)
    )
  const known = answer.coded[coding]
  if (known !== undefined) return send(known)
  return compress(answer.bytes, coding).then(coded => {
    if (coded !== undefined && version !== undefined) kept.addCoding(version.key, answer, coding, coded)
    return send(coded)
  })
}

/** They give way to those of the handler. */
function setHeaders({ response }: RequestContext, tag: string | undefined): void {
  addVary(response, 'Accept-Encoding')
  if (tag === undefined) return
  setDefaultHeader(response, 'etag', tag)
  setDefaultHeader(response, 'cache-control', revalidated)
}

/** With what a cache brings up to date in what it keeps, and nothing else. */
function sendNotModified(
  context: RequestContext,
  reply: FastifyReply,
  tag: string,
  headers: Headers = {}
): undefined {
  for (const name of [...Object.keys(headers), 'content-type'])
    if (name.toLowerCase() !== 'cache-control') void reply.removeHeader(name)
  setHeaders(context, tag)
  return sent(reply.code(304).send())
}

const saysNoStore = (headers: Headers): boolean =>
  Object.entries(headers).some(
    ([name, value]) => name.toLowerCase() === 'cache-control' && /\bno-store\b/i.test(value)
  )
