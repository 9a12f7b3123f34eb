import type { Clock, Log } from 'busbar/sdk'
import { type AddressRow, type AddressStore, targetOf } from './address-store.js'
import { type Forwarder, openForwarder } from './forwarder.js'
import { isPattern, ownHostOf } from './hosts.js'
import { anyPort, portsToTry } from './port-choice.js'
import { problems } from './problems.js'
import type { DirectSettings } from './settings.js'

interface OpenPortsParts {
  readonly store: AddressStore
  readonly settings: DirectSettings
  readonly clock: Clock
  readonly log: Log
}

/** The forwarders of this process, one for each application whose port it could open. */
export class OpenPorts {
  readonly #forwarders = new Map<string, Forwarder>()
  /** Applications whose port could not be opened, with the reason that was logged. */
  readonly #refused = new Map<string, string>()
  #isClosed = false

  constructor(private readonly parts: OpenPortsParts) {}

  get(applicationId: string): Forwarder | undefined {
    return this.#forwarders.get(applicationId)
  }

  /** Undefined where nothing was tried, or the port is open. */
  refusalOf(applicationId: string): string | undefined {
    return this.#refused.get(applicationId)
  }

  refused(): string[] {
    return [...this.#refused.keys()]
  }

  /** Opens the port of a row unless it is open; undefined when it is taken. */
  async listen(row: AddressRow): Promise<Forwarder | undefined> {
    const { settings, log } = this.parts
    const applicationId = row.application_id
    const open = this.#forwarders.get(applicationId)
    if (open !== undefined || this.#isClosed) return open
    try {
      const forwarder = await openForwarder(
        { host: settings.bind, port: row.port, ownHost: await this.#ownHost(applicationId) },
        row.is_running ? targetOf(row) : null
      )
      this.#forwarders.set(applicationId, forwarder)
      if (this.#refused.delete(applicationId))
        log.info({ applicationId, port: row.port }, 'the direct address is open again')
      return forwarder
    } catch (error) {
      const reason = reasonOf(error)
      if (this.#refused.get(applicationId) !== reason)
        log.warn(
          { applicationId, port: row.port, reason },
          'cannot listen for a direct address; trying again every two seconds'
        )
      this.#refused.set(applicationId, reason)
      return undefined
    }
  }

  /** Opens a port for an application that has none, and records it; another process may have been faster. */
  async choose(applicationId: string): Promise<AddressRow> {
    const { settings, store, clock } = this.parts
    let reason = settings.isRangeOnly
      ? `no port of ${settings.firstPort}-${settings.lastPort} is free`
      : 'no port is free'
    const ownHost = await this.#ownHost(applicationId)
    const history = await store.ports()
    for (const port of portsToTry(settings, history)) {
      let forwarder: Forwarder
      try {
        forwarder = await openForwarder({ host: settings.bind, port, ownHost }, null)
      } catch (error) {
        reason = reasonOf(error)
        if (isCodeOf(error, 'EADDRNOTAVAIL')) break
        continue
      }
      const releasedAt = history.released.get(forwarder.port) ?? null
      if (port === anyPort && releasedAt !== null) {
        await forwarder.close()
        continue
      }
      const isOurs = await store.add(applicationId, { port: forwarder.port, releasedAt }, clock.now())
      const row = await store.find(applicationId)
      if (isOurs && row !== undefined) {
        this.#forwarders.set(applicationId, forwarder)
        return row
      }
      await forwarder.close()
      if (row !== undefined) return row
    }
    throw problems.noPort({ address: settings.bind, reason })
  }

  async shut(applicationId: string): Promise<void> {
    const forwarder = this.#forwarders.get(applicationId)
    this.#forwarders.delete(applicationId)
    this.#refused.delete(applicationId)
    await forwarder?.close()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#forwarders.values()].map(forwarder => forwarder.close()))
    this.#forwarders.clear()
  }

  /** Undefined where all applications have one host. That of an application that is just being deleted leads nowhere. */
  async #ownHost(applicationId: string): Promise<string | undefined> {
    const { settings, store } = this.parts
    return isPattern(settings.host)
      ? ownHostOf(settings.host, (await store.slugOf(applicationId)) ?? applicationId)
      : undefined
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const isCodeOf = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code
