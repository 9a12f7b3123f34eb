import { randomUUID } from 'node:crypto'
import type { Log } from 'busbar/sdk'
import { isStopping } from '../clock/stopping.js'
import type { Listener } from '../database/listener.js'
import type { Reconciler } from './reconciler.js'

const topic = 'plugins'

/** Notifies the other processes of an installation that a plugin was turned on or off, or reloaded. */
export class ChoiceSignal {
  /** The sender gets its own signal too, and has made the change already. */
  readonly #origin = randomUUID()

  constructor(
    private readonly listener: Listener,
    private readonly log: Log
  ) {}

  /** `reloaded` names a plugin for the others to reload; '' is for choices they are to read again. */
  async announce(reloaded: string): Promise<void> {
    await this.listener.signal(topic, `${this.#origin} ${reloaded}`)
  }

  /** Makes this process follow the others; returns how to stop. */
  follow(reconciler: Pick<Reconciler, 'refresh'>): () => void {
    const refresh = (reloaded: string): void => {
      void reconciler.refresh(reloaded).catch((error: unknown) => {
        if (isStopping(error)) return
        this.log.error({ err: error }, 'following a change of the plugins failed')
      })
    }
    const stops = [
      // What was missed while the connection was down is in the database.
      this.listener.onReconnect(() => {
        refresh('')
      }),
      this.listener.onSignal(topic, message => {
        const [origin, reloaded = ''] = message.split(' ', 2)
        if (origin !== this.#origin) refresh(reloaded)
      })
    ]
    return () => {
      for (const stop of stops) stop()
    }
  }
}
