import type { Bus, Clock, Log } from 'busbar/sdk'
import type { DirectAddresses, SwitchProof, Target } from './api.js'
import { targetOf, type AddressRow, type AddressStore } from './address-store.js'
import { openForwarder, type Forwarder } from './forwarder.js'
import { createTurns } from './turns.js'
import { problems } from './problems.js'
import { urlOf, type DirectSettings } from './settings.js'

/** Told to every process when the row of an application has changed. */
const changedTopic = 'changed'
const retryMs = 2000
/** How long a drain lasts where nobody can say what is under way: the port is another process's. */
const blindDrainMs = 2000
/** At most so many ports of the range are tried before any free one is taken. */
const maxTries = 64

export interface AddressServiceParts {
  readonly store: AddressStore
  readonly settings: DirectSettings
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
}

/** The ports of this machine's applications: one forwarder each, its target kept in the database. */
export function createAddressService ({ store, settings, bus, clock, log }: AddressServiceParts) {
  const forwarders = new Map<string, Forwarder>()
  /** Applications whose port could not be opened, with the reason that was logged. */
  const refused = new Map<string, string>()
  const turns = createTurns()
  let isStopped = false

  /** Opens the port of a row unless it is open; undefined when it is taken. */
  async function listen (row: AddressRow): Promise<Forwarder | undefined> {
    const open = forwarders.get(row.application_id)
    if (open !== undefined || isStopped) return open
    try {
      const forwarder = await openForwarder({ host: settings.bind, port: row.port }, row.is_running ? targetOf(row) : null)
      forwarders.set(row.application_id, forwarder)
      if (refused.delete(row.application_id)) log.info({ applicationId: row.application_id, port: row.port }, 'the direct address is open again')
      return forwarder
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (refused.get(row.application_id) !== reason) {
        log.warn({ applicationId: row.application_id, port: row.port, reason }, 'cannot listen for a direct address; trying again every two seconds')
      }
      refused.set(row.application_id, reason)
      return undefined
    }
  }

  async function choosePort (applicationId: string): Promise<AddressRow> {
    const taken = await store.takenPorts()
    const free: number[] = []
    for (let port = settings.firstPort; port <= settings.lastPort && free.length < maxTries; port += 1) if (!taken.has(port)) free.push(port)
    let reason = settings.isRangeOnly ? `no port of ${settings.firstPort}-${settings.lastPort} is free` : 'no port is free'
    for (const port of settings.isRangeOnly ? free : [...free, 0]) {
      let forwarder: Forwarder
      try {
        forwarder = await openForwarder({ host: settings.bind, port }, null)
      } catch (error) {
        reason = error instanceof Error ? error.message : String(error)
        if (isCodeOf(error, 'EADDRNOTAVAIL')) break
        continue
      }
      const isOurs = await store.add(applicationId, forwarder.port, clock.now())
      const row = await store.find(applicationId)
      if (isOurs && row !== undefined) {
        forwarders.set(applicationId, forwarder)
        return row
      }
      await forwarder.close()
      if (row !== undefined) return row
    }
    throw problems.noPort({ address: settings.bind, reason })
  }

  /** Makes this process's forwarder do what the row says, whoever wrote it. */
  const follow = (applicationId: string): Promise<void> => turns.take(applicationId, async () => {
    const row = await store.find(applicationId)
    if (row === undefined) return shut(applicationId)
    const forwarder = await listen(row)
    forwarder?.retarget(row.is_running ? targetOf(row) : null)
  })

  async function shut (applicationId: string): Promise<void> {
    const forwarder = forwarders.get(applicationId)
    forwarders.delete(applicationId)
    refused.delete(applicationId)
    await forwarder?.close()
  }

  const addresses: DirectAddresses = {
    open: applicationId => turns.take(applicationId, async () => {
      const row = await store.find(applicationId) ?? await choosePort(applicationId)
      if (await listen(row) === undefined) {
        throw problems.noPort({ address: `${settings.bind}:${row.port}`, reason: refused.get(applicationId) ?? 'the platform is stopping' })
      }
      return { url: urlOf(settings.host, row.port) }
    }),

    switchTo: (applicationId, target) => turns.take(applicationId, async () => {
      const row = await store.setTarget(applicationId, target, clock.now())
      if (row === undefined) throw problems.notOpen({ applicationId })
      const switched = (await listen(row))?.switchTo(target)
      await bus.signal(changedTopic, applicationId)
      return { drain: timeoutMs => switched === undefined ? blindDrain(timeoutMs) : switched.drain(timeoutMs) }
    }),

    retarget: (applicationId, target) => turns.take(applicationId, async () => {
      if (target === null) await store.setStopped(applicationId, clock.now())
      else if (await store.setTarget(applicationId, target, clock.now()) === undefined) throw problems.notOpen({ applicationId })
      forwarders.get(applicationId)?.retarget(target)
      await bus.signal(changedTopic, applicationId)
    }),

    close: applicationId => turns.take(applicationId, async () => {
      await store.remove(applicationId)
      await shut(applicationId)
      await bus.signal(changedTopic, applicationId)
    })
  }

  async function blindDrain (timeoutMs: number): Promise<SwitchProof> {
    const drainMs = Math.min(timeoutMs, blindDrainMs)
    await clock.sleep(drainMs)
    return { served: 0, failed: 0, longestGapMs: 0, drainMs, cut: 0 }
  }

  return {
    addresses,

    /** What is known of a container now: where it listens, or null when it does not run. Ignored once requests go elsewhere. */
    renew: (applicationId: string, containerId: string, at: { readonly host: string, readonly port: number } | null) =>
      turns.take(applicationId, async () => {
        const row = await store.find(applicationId)
        const target = row === undefined ? null : targetOf(row)
        if (row === undefined || target === null || target.containerId !== containerId) return
        const renewed = at === null ? null : { ...target, ...at }
        if (renewed === null) await store.setStopped(applicationId, clock.now())
        else await store.setTarget(applicationId, renewed, clock.now())
        forwarders.get(applicationId)?.retarget(renewed)
        await bus.signal(changedTopic, applicationId)
      }),

    /** Forwards again, as the database says, before anything else is looked at. */
    async resume (): Promise<void> {
      await store.removeOrphans()
      await Promise.all((await store.all()).map(row => turns.take(row.application_id, () => listen(row))))
    },

    /** Follows what other processes write, and tries the ports that were taken. */
    watch (): () => void {
      const stops = [
        bus.onSignal(changedTopic, applicationId => {
          void follow(applicationId).catch((error: unknown) => log.error({ err: error, applicationId }, 'could not follow a changed direct address'))
        }),
        clock.every(retryMs, async () => {
          for (const applicationId of [...refused.keys()]) await follow(applicationId)
        })
      ]
      return () => { for (const stop of stops) stop() }
    },

    /** Null while the application does not run or its port is not open. */
    directUrl (applicationId: string): string | null {
      const forwarder = forwarders.get(applicationId)
      return forwarder === undefined || forwarder.target === null ? null : urlOf(settings.host, forwarder.port)
    },

    refusedCount: (): number => refused.size,

    async stop (): Promise<void> {
      isStopped = true
      await Promise.all([...forwarders.values()].map(forwarder => forwarder.close()))
      forwarders.clear()
    }
  }
}
export type AddressService = ReturnType<typeof createAddressService>

const isCodeOf = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code
