import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { bounded } from 'busbar/sdk'
import type { EngineClient } from '../engine-client.js'
import { asReadable } from '../output-lines.js'
import { problems } from '../problems.js'
import { startHijacked } from './hijacked-exec.js'
import { supervisorAnswers } from './supervisor-answers.js'
import { markName, supervisorScript } from './supervisor-script.js'

/** How long programs have to end by themselves when their terminal hangs up. */
const graceMs = 1000
const lookEveryMs = 100
/** Thousands of processes are looked at one by one, with what time the container has. */
const answerMs = 20_000

/** The program in a container that ends what runs in a terminal; see `supervisorScript`. */
export class Supervisor {
  readonly #answers: AsyncGenerator<string, void>

  private constructor(
    private readonly stream: Duplex,
    answers: AsyncGenerator<string, void>,
    private readonly containerId: string
  ) {
    this.#answers = answers
  }

  /** It needs `sh`: 502 E_CONTAINER_PROGRAM without. */
  static async start(
    engine: EngineClient,
    containerId: string,
    terminalId: string,
    signal: AbortSignal
  ): Promise<Supervisor> {
    const { stream } = await startHijacked(engine, {
      containerId,
      command: ['sh', '-c', supervisorScript, 'busbar-terminal', terminalId],
      // Of the terminal too: an engine that was killed leaves one behind, which hears of nothing any more.
      env: { [markName]: terminalId },
      hasTerminal: false,
      signal
    })
    const supervisor = new Supervisor(stream, supervisorAnswers(asReadable(stream)), containerId)
    try {
      if ((await supervisor.#answer(signal)) === 'ready') return supervisor
    } catch (error) {
      supervisor.close()
      throw error
    }
    supervisor.close()
    throw problems.supervisorLost({ container: containerId })
  }

  /**
   * Tells everything in the terminal that its line is gone, and kills what is there after a second. Rejects where something
   * is left, and where nothing can be said of it.
   */
  async endTerminal(): Promise<void> {
    await this.#send('HUP')
    // What is stopped hears of it when it goes on.
    let left = await this.#send('CONT')
    const late = performance.now() + graceMs
    while (left > 0 && performance.now() < late) {
      await sleep(lookEveryMs)
      left = await this.#send('0')
    }
    if (left > 0) left = await this.#send('KILL')
    if (left > 0) throw problems.terminalLeft({ container: this.containerId, count: left })
  }

  /** Ends it, and with it whatever is left in the terminal. */
  close(): void {
    this.stream.destroy()
  }

  /** How many processes were sent the signal. */
  async #send(word: 'HUP' | 'CONT' | '0' | 'KILL'): Promise<number> {
    if (this.stream.destroyed || this.stream.writableEnded) throw this.#lost()
    this.stream.write(`${word}\n`)
    const answer = await this.#answer()
    if (!/^\d{1,9}$/.test(answer)) throw this.#lost()
    return Number(answer)
  }

  async #answer(signal?: AbortSignal): Promise<string> {
    const { value, done } = await bounded(async () => await this.#answers.next(), {
      ms: answerMs,
      signal,
      what: 'what ends terminals in a container'
    })
    if (done === true) throw this.#lost()
    return value
  }

  #lost() {
    return problems.supervisorLost({ container: this.containerId })
  }
}
