import type { ContainerEvent } from 'busbar/api/containers'

type Event = Pick<Extract<ContainerEvent, { kind: 'container' }>, 'action' | 'containerId' | 'exitCode'>

/** By SIGKILL, as the kernel ends what it takes memory from. */
export const killedCode = 128 + 9

/**
 * Tells containers that ended for want of memory from those in which it took one program and the rest serves on: the
 * engine says `oom` of both, before the end or shortly after it.
 */
export class MemoryEnds {
  readonly #notes = new Map<string, 'short' | 'killed'>()

  /** Of each event, in their order. True: its container has ended, for want of memory. */
  isOne({ action, containerId, exitCode }: Event): boolean {
    const before = this.#notes.get(containerId)
    switch (action) {
      case 'oom':
        if (before !== 'killed') this.#notes.set(containerId, 'short')
        return before === 'killed'
      case 'die':
        if (exitCode === killedCode) this.#notes.set(containerId, 'killed')
        else this.#notes.delete(containerId)
        return before === 'short' && exitCode === killedCode
      case 'start':
      case 'restart':
      case 'stop':
      case 'destroy':
        this.#notes.delete(containerId)
        return false
      case 'healthy':
      case 'unhealthy':
        return false
    }
  }

  /** Forgets those that are gone without an event. */
  keep(containerIds: ReadonlySet<string>): void {
    for (const id of this.#notes.keys()) if (!containerIds.has(id)) this.#notes.delete(id)
  }
}
