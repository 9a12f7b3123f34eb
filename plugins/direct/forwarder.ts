import type { TrafficSwitch, TrafficTarget } from 'busbar/api/deployments'
import {
  type ConnectionCaps,
  createSwitchable,
  defaultLimits,
  type ForwardingLimits,
  hostnameOf,
  openForwardingServer,
  type Route
} from 'busbar/sdk/http1'

/** Of all applications: what an attack on some of them may take of the process, and what it leaves to each of the others. */
const ofAllApplications = { open: 0, max: 8192, each: 32 }
const defaultCaps: ConnectionCaps = Object.freeze({
  inAll: 1000,
  perAddress: 500,
  together: ofAllApplications
})

/** One application's port: an HTTP forwarder whose target can be changed between two requests. */
export interface Forwarder {
  readonly port: number
  /** The only host by which it may be asked; undefined: any. */
  readonly ownHost: string | undefined
  readonly target: TrafficTarget | null
  /** From now on new requests go to `target`. What is under way elsewhere finishes there. */
  switchTo(target: TrafficTarget): TrafficSwitch
  /** The same without being watched: the container has moved or is gone. */
  retarget(target: TrafficTarget | null): void
  close(): Promise<void>
}

/** Listens on `host:port` (0: any free port); rejects with the error of `listen` when it cannot. */
export async function openForwarder(
  at: { readonly host: string; readonly port: number; readonly ownHost?: string | undefined },
  target: TrafficTarget | null,
  given: Partial<ForwardingLimits> = {},
  caps: ConnectionCaps = defaultCaps
): Promise<Forwarder> {
  const { ownHost } = at
  const limits = { ...defaultLimits, ...given }
  const container = createSwitchable(target)
  const route: Route = { ownHost, current: container.current, meter: container.meter, limits }
  const server = await openForwardingServer(
    at,
    {
      // Another host is another application's: a browser that asks for it on this port sends the cookies of that one.
      decide: head => (ownHost === undefined || hostnameOf(head) === ownHost ? route : 'otherHost'),
      limits
    },
    caps
  )
  return {
    port: server.port,
    ownHost,
    get target() {
      return container.target
    },
    switchTo: next => container.switchTo(next),
    retarget: next => container.retarget(next),
    async close() {
      await server.close(() => container.current()?.open ?? 0)
      container.current()?.retire()
    }
  }
}
