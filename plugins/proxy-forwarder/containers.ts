import type { TrafficSwitch } from 'busbar/api/deployments'
import type { ApplicationTargets, ProxyRoute } from 'busbar/api/domains'
import { createSwitchable, type ForwardSwitchProof, type Switchable } from 'busbar/sdk/http1'

/** Where the requests of applications go, by the ports that routes name. */
export class Containers {
  readonly #targets = new Map<string, ApplicationTargets>()
  /** By application, then by the `containerPort` of routes. */
  readonly #switchables = new Map<string, Map<number | null, Switchable>>()

  /** The one for a route; it is there from the first route that names it. */
  for({ applicationId, containerPort }: Pick<ProxyRoute, 'applicationId' | 'containerPort'>): Switchable {
    const ports = this.#switchables.get(applicationId) ?? new Map<number | null, Switchable>()
    this.#switchables.set(applicationId, ports)
    const known = ports.get(containerPort)
    if (known !== undefined) return known
    const made = createSwitchable(this.#targets.get(applicationId)?.get(containerPort) ?? null)
    ports.set(containerPort, made)
    return made
  }

  /** Forgets those that no route names any more; what is under way on them finishes. */
  keepOnly(routes: ReadonlyArray<Pick<ProxyRoute, 'applicationId' | 'containerPort'>>): void {
    const named = new Set(
      routes.map(({ applicationId, containerPort }) => `${applicationId} ${containerPort}`)
    )
    for (const [applicationId, ports] of this.#switchables) {
      for (const [port, switchable] of ports) {
        if (named.has(`${applicationId} ${port}`)) continue
        switchable.retarget(null)
        ports.delete(port)
      }
      if (ports.size === 0) this.#switchables.delete(applicationId)
    }
  }

  retarget(applicationId: string, targets: ApplicationTargets | null): void {
    if (targets === null) this.#targets.delete(applicationId)
    else this.#targets.set(applicationId, targets)
    for (const [port, switchable] of this.#switchables.get(applicationId) ?? [])
      switchable.retarget(targets?.get(port) ?? null)
  }

  switchTo(applicationId: string, targets: ApplicationTargets): TrafficSwitch | null {
    this.#targets.set(applicationId, targets)
    const switched = [...(this.#switchables.get(applicationId) ?? [])].flatMap(([port, switchable]) => {
      const target = targets.get(port)
      if (target !== undefined) return switchable.switchTo(target)
      switchable.retarget(null)
      return []
    })
    if (switched.length === 0) return null
    return {
      drain: async timeoutMs =>
        sumOf(await Promise.all(switched.map(async one => await one.drain(timeoutMs))))
    }
  }

  /** Requests and sockets under way. */
  open(): number {
    let open = 0
    for (const ports of this.#switchables.values())
      for (const switchable of ports.values()) open += switchable.current()?.open ?? 0
    return open
  }
}

/** Requests add up; of gaps and drains the longest counts, as they are at the same time. */
const sumOf = (proofs: readonly ForwardSwitchProof[]): ForwardSwitchProof => ({
  served: proofs.reduce((sum, { served }) => sum + served, 0),
  failed: proofs.reduce((sum, { failed }) => sum + failed, 0),
  longestGapMs: Math.max(...proofs.map(({ longestGapMs }) => longestGapMs)),
  drainMs: Math.max(...proofs.map(({ drainMs }) => drainMs)),
  cut: proofs.reduce((sum, { cut }) => sum + cut, 0)
})
