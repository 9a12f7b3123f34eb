import type { SwitchProof, TrafficSwitch, TrafficTarget } from 'busbar/api/deployments'
import { type Bus, type Clock, createKeyedMutex, type Log } from 'busbar/sdk'
import { isSameTarget } from 'busbar/sdk/http1'
import { type AddressStore, targetOf } from './address-store.js'
import type { DirectAddresses } from './api.js'
import type { Forwarder } from './forwarder.js'
import { OpenPorts } from './open-ports.js'
import { problems } from './problems.js'
import { type DirectSettings, urlOf } from './settings.js'

/** Told to every process when the row of an application has changed. */
const changedTopic = 'changed'
const retryMs = 2000
/** How long a drain lasts where it is unknown what is under way: the port is another process's. */
const blindDrainMs = 2000

interface AddressServiceParts {
  readonly store: AddressStore
  readonly settings: DirectSettings
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
}

/** The addresses of this machine's applications: a port and a target each, kept in the database. */
export class AddressService implements DirectAddresses {
  readonly #ports: OpenPorts
  /** What changes one application's address happens in turns. */
  readonly #mutex = createKeyedMutex()

  constructor(private readonly parts: AddressServiceParts) {
    this.#ports = new OpenPorts(parts)
  }

  open(applicationId: string): ReturnType<DirectAddresses['open']> {
    return this.#mutex.take(applicationId, async () => {
      const { store, settings } = this.parts
      const row = (await store.find(applicationId)) ?? (await this.#ports.choose(applicationId))
      const forwarder = await this.#ports.listen(row)
      if (forwarder === undefined)
        throw problems.noPort({
          address: `${settings.bind}:${row.port}`,
          reason: this.#ports.refusalOf(applicationId) ?? 'the platform is stopping'
        })
      return { url: this.#urlOf(forwarder) }
    })
  }

  switchTo(applicationId: string, target: TrafficTarget): Promise<TrafficSwitch> {
    return this.#mutex.take(applicationId, async () => await this.#switchTo(applicationId, target))
  }

  /** As `switchTo`, but for an address that goes there already: what is under way on it is left in peace, and null is answered. */
  revert(applicationId: string, target: TrafficTarget | null): Promise<TrafficSwitch | null> {
    return this.#mutex.take(applicationId, async () => {
      const current = this.#ports.get(applicationId)?.target ?? null
      if (target !== null && (current === null || !isSameTarget(target, current)))
        return await this.#switchTo(applicationId, target)
      await this.#setTarget(applicationId, target)
      return null
    })
  }

  retarget(applicationId: string, target: TrafficTarget | null): Promise<void> {
    return this.#mutex.take(applicationId, async () => await this.#setTarget(applicationId, target))
  }

  close(applicationId: string): Promise<void> {
    return this.#mutex.take(applicationId, async () => {
      const { store, clock } = this.parts
      await store.remove(applicationId, clock.now())
      await this.#ports.shut(applicationId)
      await this.#tellOthers(applicationId)
    })
  }

  /** What is known of a container now: where it listens, or null when it does not run. Ignored once requests go elsewhere. */
  renew(
    applicationId: string,
    containerId: string,
    at: { readonly host: string; readonly port: number } | null
  ): Promise<void> {
    return this.#mutex.take(applicationId, async () => {
      const row = await this.parts.store.find(applicationId)
      const target = row === undefined ? null : targetOf(row)
      if (target === null || target.containerId !== containerId) return
      await this.#setTarget(applicationId, at === null ? null : { ...target, ...at })
    })
  }

  /** Requests go to `target` instead of `former`, which does not run; ignored once they go elsewhere. */
  replace(applicationId: string, former: TrafficTarget | null, target: TrafficTarget): Promise<void> {
    return this.#mutex.take(applicationId, async () => {
      const row = await this.parts.store.find(applicationId)
      if (row?.container_id === (former?.containerId ?? null)) await this.#setTarget(applicationId, target)
    })
  }

  /** Forwards again, as the database says, before anything else is looked at. */
  async resume(): Promise<void> {
    const { store, clock } = this.parts
    await store.removeOrphans(clock.now())
    const rows = await store.all()
    await Promise.all(rows.map(row => this.#mutex.take(row.application_id, () => this.#ports.listen(row))))
  }

  /** Follows what other processes write, and tries the ports that were taken. */
  watch(): () => void {
    const { bus, clock, log } = this.parts
    const stops = [
      bus.onSignal(changedTopic, applicationId => {
        void this.#follow(applicationId).catch((error: unknown) =>
          log.error({ err: error, applicationId }, 'could not follow a changed direct address')
        )
      }),
      clock.every(retryMs, async () => {
        for (const applicationId of this.#ports.refused()) await this.#follow(applicationId)
      })
    ]
    return () => {
      for (const stop of stops) stop()
    }
  }

  /** Null while the application does not run or its port is not open. */
  directUrl(applicationId: string): string | null {
    const forwarder = this.#ports.get(applicationId)
    return forwarder === undefined || forwarder.target === null ? null : this.#urlOf(forwarder)
  }

  #urlOf({ ownHost, port }: Forwarder): string {
    return urlOf(ownHost ?? this.parts.settings.host, port)
  }

  refusedCount(): number {
    return this.#ports.refused().length
  }

  async stop(): Promise<void> {
    await this.#ports.close()
  }

  /** Makes this process's forwarder do what the row says, whichever process wrote it. */
  #follow(applicationId: string): Promise<void> {
    return this.#mutex.take(applicationId, async () => {
      const row = await this.parts.store.find(applicationId)
      if (row === undefined) return await this.#ports.shut(applicationId)
      const forwarder = await this.#ports.listen(row)
      forwarder?.retarget(row.is_running ? targetOf(row) : null)
    })
  }

  async #switchTo(applicationId: string, target: TrafficTarget): Promise<TrafficSwitch> {
    const { store, clock } = this.parts
    const row = await store.setTarget(applicationId, target, clock.now())
    if (row === undefined) throw problems.notOpen({ applicationId })
    const switched = (await this.#ports.listen(row))?.switchTo(target)
    await this.#tellOthers(applicationId)
    return switched ?? { drain: async timeoutMs => await this.#blindDrain(timeoutMs) }
  }

  async #setTarget(applicationId: string, target: TrafficTarget | null): Promise<void> {
    const { store, clock } = this.parts
    if (target === null) await store.setStopped(applicationId, clock.now())
    else if ((await store.setTarget(applicationId, target, clock.now())) === undefined)
      throw problems.notOpen({ applicationId })
    this.#ports.get(applicationId)?.retarget(target)
    await this.#tellOthers(applicationId)
  }

  async #tellOthers(applicationId: string): Promise<void> {
    await this.parts.bus.signal(changedTopic, applicationId)
  }

  async #blindDrain(timeoutMs: number): Promise<SwitchProof> {
    const drainMs = Math.min(timeoutMs, blindDrainMs)
    await this.parts.clock.sleep(drainMs)
    return { served: 0, failed: 0, longestGapMs: 0, drainMs, cut: 0 }
  }
}
