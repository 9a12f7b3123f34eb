import { type FSWatcher, watch } from 'node:fs'
import { type Clock, pause } from 'busbar/sdk'

/** A folder is looked at as often even when nothing is heard of it: it may be on a file system that tells nothing. */
const pollMs = 1_000

/** Says when something in a folder may have changed. */
export class FolderWatch {
  #watcher: FSWatcher | undefined
  #hasChanged = false
  #wake = (): void => {}

  constructor(
    private readonly folder: string,
    private readonly clock: Pick<Clock, 'sleep'>
  ) {}

  /** Resolves at once when something has changed since the last call, else when it does, after a second or at the abort. */
  async change(signal: AbortSignal): Promise<void> {
    this.#open()
    if (!this.#hasChanged && !signal.aborted)
      await new Promise<void>(resolve => {
        const poll = new AbortController()
        const done = (): void => {
          signal.removeEventListener('abort', done)
          poll.abort()
          resolve()
        }
        signal.addEventListener('abort', done)
        this.#wake = done
        void pause(this.clock, pollMs, poll.signal).then(done)
      })
    this.#hasChanged = false
  }

  close(): void {
    this.#watcher?.close()
    this.#watcher = undefined
  }

  #open(): void {
    if (this.#watcher !== undefined) return
    try {
      const watcher = watch(this.folder, { persistent: false }, () => {
        this.#note()
      })
      // What is deleted and made again is another folder; that there is no watch left costs a second.
      watcher.on('error', () => {
        this.close()
      })
      this.#watcher = watcher
      // Before the watch.
      this.#hasChanged = true
    } catch {
      // It is not there, or the kernel has no watch left: it is looked at.
    }
  }

  #note(): void {
    this.#hasChanged = true
    this.#wake()
  }
}
