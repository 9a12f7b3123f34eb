import { createSocket, type Socket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { Log } from 'busbar/sdk'
import {
  type Answer,
  AUTHORITATIVE_ANSWER,
  decode,
  encode,
  type Packet,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED
} from 'dns-packet'
import type { Zone } from './zone.js'

/** Codes of RFC 1035. */
const noSuchName = 3
const refused = 5
/** A question of ours is never longer; the rest is not read at all. */
const longestQuestion = 512

interface AnswererOptions {
  readonly host: string
  /** Taken where it is free; any other else. 0: any. */
  readonly port: number
  readonly zone: Zone
  readonly log: Log
}

/** Answers the questions of Caddy by UDP, and only those of its own zone. */
interface Answerer {
  readonly host: string
  readonly port: number
  close(): Promise<void>
}

export async function openAnswerer({ host, port, zone, log }: AnswererOptions): Promise<Answerer> {
  const socket = await bound(host, port).catch(error => {
    if (port === 0) throw error
    return bound(host, 0)
  })
  socket.on('error', error => log.warn({ err: error }, 'the name server for Caddy'))
  socket.on('message', (message, { address, port: from }) => {
    void answerTo(message, zone).then(answer => {
      if (answer === undefined) return
      try {
        socket.send(answer, from, address)
      } catch {
        // It has been closed meanwhile.
      }
    })
  })
  return {
    host,
    port: socket.address().port,
    close: async () => {
      await new Promise<void>(resolve => socket.close(resolve))
    }
  }
}

async function bound(host: string, port: number): Promise<Socket> {
  const socket = createSocket({ type: isIP(host) === 6 ? 'udp6' : 'udp4' })
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject)
    socket.bind({ address: host, port, exclusive: true }, () => {
      socket.off('error', reject)
      resolve()
    })
  })
  return socket
}

/** Undefined where it is no question. Never rejects. */
async function answerTo(message: Buffer, zone: Zone): Promise<Buffer | undefined> {
  const query = questionIn(message)
  if (query === undefined) return undefined
  const [question] = query.questions ?? []
  if (question === undefined) return undefined
  const name = `${question.name.toLowerCase()}.`
  const reply = (answers: Answer[], code = 0): Buffer =>
    encode({
      type: 'response',
      id: query.id,
      flags: AUTHORITATIVE_ANSWER | RECURSION_AVAILABLE | ((query.flags ?? 0) & RECURSION_DESIRED) | code,
      questions: [question],
      answers
    })
  try {
    if (!name.endsWith('.busbar.invalid.')) return reply([], refused)
    const host = zone.hostOf(name)
    if (host !== undefined) return reply(await addressesOf(host, question.name, question.type))
    const place = question.type === 'SRV' ? zone.ask(name) : undefined
    if (place === undefined) return reply([], noSuchName)
    return reply([
      {
        type: 'SRV',
        name: question.name,
        ttl: 0,
        data: { priority: 0, weight: 0, port: place.port, target: place.target.replace(/\.$/, '') }
      }
    ])
  } catch {
    return undefined
  }
}

/** `decode` throws at whatever is no message, and follows no pointer twice. */
function questionIn(message: Buffer): Packet | undefined {
  if (message.length > longestQuestion) return undefined
  try {
    const query = decode(message)
    return query.type === 'query' && query.questions?.length === 1 ? query : undefined
  } catch {
    return undefined
  }
}

async function addressesOf(host: string, name: string, type: string): Promise<Answer[]> {
  const wanted = type === 'A' ? 4 : type === 'AAAA' ? 6 : 0
  if (wanted === 0) return []
  const found =
    isIP(host) === 0
      ? await lookup(host, { all: true, family: wanted }).catch(() => [])
      : [{ address: host, family: isIP(host) }]
  return found
    .filter(({ family }) => family === wanted)
    .map(({ address }) => ({ type: type as 'A' | 'AAAA', name, ttl: 0, data: address }))
}
