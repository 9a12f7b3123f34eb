import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type { Log, Tx } from 'busbar/sdk'
import type { Postgres } from './postgres.js'

const channel = 'busbar'
/** PostgreSQL's limit for what a NOTIFY carries. */
const maxPayloadBytes = 7999

/** Messages between the processes of an installation: at most once, ordered per sender. */
export interface Signals {
  /** Outside a transaction it is delivered here at once, before it resolves; in one, after its commit. */
  signal(topic: string, data: string, tx?: Tx): Promise<void>
  onSignal(topic: string, listener: (data: string) => void): () => void
  /** Signals may have been missed: what was learnt from them is to be read again. */
  onReconnect(listener: () => void): () => void
}

/** For who has much to say. */
export interface BulkSignals extends Signals {
  /** Of several that differ, in one statement: all of them are delivered, in their order, or none. */
  signalAll(topic: string, data: readonly string[]): Promise<void>
}

/** Starts to listen on the session of `postgres`. */
export async function openListener({
  postgres,
  log
}: {
  readonly postgres: Postgres
  readonly log: Log
}): Promise<Listener> {
  const listener = new Listener(postgres, log)
  await listener.open()
  return listener
}

/** Signals over NOTIFY. */
export class Listener implements BulkSignals {
  /** Marks what this process has delivered to itself already. */
  readonly #origin = randomBytes(6).toString('hex')
  readonly #topics = new EventEmitter().setMaxListeners(0)
  readonly #stops: Array<() => void> = []

  constructor(
    private readonly postgres: Postgres,
    private readonly log: Log
  ) {}

  async open(): Promise<void> {
    this.#stops.push(
      await this.postgres.session.listen(channel, payload => {
        const [origin = '', topic = ''] = payload.split(' ', 2)
        if (origin !== this.#origin)
          this.#topics.emit(`on ${topic}`, payload.slice(origin.length + topic.length + 2))
      })
    )
  }

  async signal(topic: string, data: string, tx?: Tx): Promise<void> {
    // What is sent in a transaction comes back to this process too, when and if it commits.
    const payload = payloadOf(tx === undefined ? this.#origin : '', topic, data)
    if (tx !== undefined) {
      await this.postgres.query('select pg_notify($1, $2)', [channel, payload], tx)
      return
    }
    this.#topics.emit(`on ${topic}`, data)
    await this.postgres.session.query('select pg_notify($1, $2)', [channel, payload])
  }

  async signalAll(topic: string, data: readonly string[]): Promise<void> {
    const payloads = data.map(one => payloadOf(this.#origin, topic, one))
    for (const one of data) this.#topics.emit(`on ${topic}`, one)
    await this.postgres.session.query('select pg_notify($1, payload) from unnest($2::text[]) as payload', [
      channel,
      payloads
    ])
  }

  onSignal(topic: string, listener: (data: string) => void): () => void {
    const call = this.#guarded(listener)
    this.#topics.on(`on ${topic}`, call)
    return () => {
      this.#topics.off(`on ${topic}`, call)
    }
  }

  onReconnect(listener: () => void): () => void {
    const stop = this.postgres.session.onConnect(this.#guarded(listener))
    this.#stops.push(stop)
    return stop
  }

  async close(): Promise<void> {
    for (const stop of this.#stops.splice(0)) stop()
  }

  /** One that throws must not keep the others from hearing. */
  #guarded<Args extends unknown[]>(listener: (...args: Args) => void): (...args: Args) => void {
    return (...args) => {
      try {
        listener(...args)
      } catch (error) {
        this.log.error({ err: error }, 'a listener for signals failed')
      }
    }
  }
}

function payloadOf(origin: string, topic: string, data: string): string {
  if (/\s/.test(topic)) throw new Error(`the topic "${topic}" of a signal may not hold white space`)
  const payload = `${origin} ${topic} ${data}`
  const bytes = Buffer.byteLength(payload)
  if (bytes > maxPayloadBytes)
    throw new Error(
      `a signal on ${topic} is ${bytes} bytes long and may be ${maxPayloadBytes}: store the data and signal where they are`
    )
  return payload
}
