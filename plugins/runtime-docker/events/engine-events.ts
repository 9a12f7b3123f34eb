import type { Readable } from 'node:stream'
import type { ContainerEvent, EngineOutage } from 'busbar/api/containers'
import { Backoff, type Clock, type Log } from 'busbar/sdk'
import type { ContainerOwners } from '../container-owners.js'
import type { EngineClient } from '../engine-client.js'
import { instanceLabel } from '../labels.js'
import { asReadable, jsonLines } from '../output-lines.js'

const task = 'send its events'
const firstWaitMs = 1000
/** The longest pause between attempts to reach an engine that is away. */
const longestWaitMs = 2000
/** The engine drops events of a reader that is slow; so they wait here, and past this all are looked up again. */
export const maxWaiting = 1000

const actions = ['start', 'restart', 'stop', 'die', 'oom', 'destroy'] as const

interface EventSource {
  readonly engine: EngineClient
  readonly owners: Pick<ContainerOwners, 'of'>
  readonly instanceId: string
  readonly clock: Clock
  readonly log: Log
}

/** How far the stream of the engine has been read. */
export interface Reading {
  /** What is read gets the next number. */
  count: number
  /** The engine sends what happens from now on. */
  isOpen: boolean
}

/** What the engine has sent, and its number in the order of reading. */
export interface ReadEvent {
  readonly event: ContainerEvent
  readonly number: number
}

/**
 * One stream of the engine, opened again whenever it ends until `signal` aborts: `resync` each time, then every event of our
 * containers. It never fails.
 */
export async function* engineEvents(
  { engine, owners, instanceId, clock, log }: EventSource,
  reading: Reading,
  signal: AbortSignal
): AsyncGenerator<ReadEvent> {
  const backoff = new Backoff(clock, { firstMs: firstWaitMs, longestMs: longestWaitMs })
  let lostAt: Date | undefined
  while (!signal.aborted) {
    try {
      const stream = await subscribe(engine, instanceId, signal)
      backoff.reset()
      reading.isOpen = true
      const outage = lostAt === undefined ? undefined : { lostAt, backAt: clock.now() }
      for await (const { event, number } of follow(engine, stream, outage, reading, () => {
        reading.isOpen = false
        lostAt = clock.now()
      })) {
        const verified = event.kind === 'resync' ? event : await verify(event, owners)
        if (verified !== undefined) yield { event: verified, number }
      }
      if (!signal.aborted) log.warn('the event stream of the Docker Engine ended; connecting again')
    } catch (error) {
      if (signal.aborted) return
      // Said once per outage: an installation without an engine is a usual one.
      const level = backoff.isFresh ? 'warn' : 'debug'
      log[level](
        { reason: (error as Error).message },
        'the events of the Docker Engine cannot be followed; trying again until they can'
      )
    }
    await backoff.pause(signal)
  }
}

async function subscribe(engine: EngineClient, instanceId: string, signal: AbortSignal): Promise<Readable> {
  const filters = {
    type: ['container' as const],
    label: [`${instanceLabel}=${instanceId}`],
    event: [...actions, 'health_status']
  }
  return await engine.call(
    task,
    async docker => asReadable(await docker.getEvents({ filters, abortSignal: signal })),
    { patient: true }
  )
}

/** The labels in an event say whose the container claims to be. What cannot be looked at now is to be looked up again. */
async function verify(
  event: EngineEvent,
  owners: Pick<ContainerOwners, 'of'>
): Promise<ContainerEvent | undefined> {
  try {
    const owner = await owners.of(event.containerId)
    return owner === undefined ? undefined : { ...event, owner }
  } catch {
    return { kind: 'resync' }
  }
}

type EngineEvent = Omit<Extract<ContainerEvent, { kind: 'container' }>, 'owner'>
interface Read {
  readonly event: EngineEvent | Extract<ContainerEvent, { kind: 'resync' }>
  readonly number: number
}

/** `resync`, then every event. Reading never waits for the consumer. */
async function* follow(
  engine: EngineClient,
  stream: Readable,
  outage: EngineOutage | undefined,
  reading: Reading,
  onLost: () => void
): AsyncGenerator<Read> {
  let waiting: Read[] = [
    { event: outage === undefined ? { kind: 'resync' } : { kind: 'resync', outage }, number: ++reading.count }
  ]
  let hasEnded = false
  let failure: unknown
  let wake = (): void => {}
  const ended = (async () => {
    for await (const raw of engine.reading(task, jsonLines(stream))) {
      const event = containerEvent(raw)
      if (event === undefined) continue
      const number = ++reading.count
      if (waiting.length < maxWaiting) waiting.push({ event, number })
      else waiting = [{ event: { kind: 'resync' }, number }]
      wake()
    }
  })()
    .catch((error: unknown) => {
      failure = error
    })
    .finally(() => {
      // Noted here and not by the consumer, who may be busy with what came before.
      onLost()
      hasEnded = true
      wake()
    })
  try {
    while (true) {
      const batch = waiting
      waiting = []
      yield* batch
      if (waiting.length > 0) continue
      if (hasEnded) break
      await new Promise<void>(resolve => {
        wake = resolve
      })
    }
  } finally {
    stream.destroy()
    await ended
  }
  if (failure !== undefined) throw failure
}

/** One raw event of the engine; undefined for those that say nothing about a container's state. */
function containerEvent(raw: Readonly<Record<string, unknown>>): EngineEvent | undefined {
  const { Action: action, Actor: actor } = raw as {
    Action?: unknown
    Actor?: { ID?: unknown; Attributes?: Record<string, string> }
  }
  if (typeof action !== 'string' || typeof actor?.ID !== 'string') return undefined
  const known = action.startsWith('health_status: ') ? health(action) : actions.find(name => name === action)
  if (known === undefined) return undefined
  const attributes = actor.Attributes ?? {}
  const exitCode = attributes.exitCode
  return {
    kind: 'container',
    action: known,
    containerId: actor.ID,
    exitCode: exitCode === undefined ? null : Number(exitCode)
  }
}

const health = (action: string): 'healthy' | 'unhealthy' | undefined =>
  (['healthy', 'unhealthy'] as const).find(state => action === `health_status: ${state}`)
