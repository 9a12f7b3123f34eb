import { Worker } from 'node:worker_threads'

/** What runs there, one password after another: a hash takes as much as a second, in which no request could be forwarded. */
const source = `
  const { parentPort, workerData } = require('node:worker_threads')
  import(workerData.library).then(({ compareSync }) => {
    parentPort.on('message', ({ id, password, hash }) => {
      let isRight = false
      try {
        isRight = compareSync(password, hash)
      } catch {}
      parentPort.postMessage({ id, isRight })
    })
  })
`

interface Waiting {
  resolve(isRight: boolean): void
  reject(error: Error): void
}

/** Verifies bcrypt hashes on a thread of its own, which begins with the first. */
export class BcryptThread {
  #thread: Worker | undefined
  #asked = 0
  readonly #waiting = new Map<number, Waiting>()

  /** False for what is no hash; rejects where the thread has ended meanwhile. */
  async verify(password: string, hash: string): Promise<boolean> {
    this.#thread ??= this.#begin()
    const thread = this.#thread
    const id = ++this.#asked
    return await new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      thread.postMessage({ id, password, hash })
    })
  }

  async close(): Promise<void> {
    await this.#thread?.terminate()
  }

  #begin(): Worker {
    const thread = new Worker(source, {
      eval: true,
      workerData: { library: import.meta.resolve('bcryptjs') },
      // Nothing of the platform's settings and secrets is of use there.
      env: {}
    })
    // The process does not wait for it.
    thread.unref()
    thread.on('message', ({ id, isRight }: { readonly id: number; readonly isRight: boolean }) => {
      this.#waiting.get(id)?.resolve(isRight)
      this.#waiting.delete(id)
    })
    // Its end follows.
    thread.on('error', () => {})
    thread.once('exit', () => {
      this.#thread = undefined
      for (const { reject } of this.#waiting.values()) reject(new Error('the thread has ended'))
      this.#waiting.clear()
    })
    return thread
  }
}
