/** How long one follow lasts. */
const usualMs = 10 * 60_000
const looksEachMs = 30_000

/** What is read of a log that is followed. */
interface Follow {
  destroy(): void
}

/**
 * Ends follows that have lasted long, so that they begin anew behind their place. Docker before 23 goes on waiting at a file of the log that
 * is not written any more, when another one is begun in the moment in which it begins to follow, and always where it follows more containers
 * than its machine has room for watches (128, `fs.inotify.max_user_instances`).
 */
export class FollowRenewal {
  readonly #begun = new Map<Follow, number>()
  readonly #ended = new WeakSet<Follow>()
  #timer: NodeJS.Timeout | undefined

  constructor(
    private readonly lastsMs = usualMs,
    private readonly everyMs = looksEachMs
  ) {}

  /** Calls back how to stop. */
  watch(output: Follow): () => void {
    this.#begun.set(output, performance.now())
    this.#timer ??= setInterval(() => {
      this.#endOld()
    }, this.everyMs).unref()
    return () => {
      this.#begun.delete(output)
      if (this.#begun.size > 0) return
      clearInterval(this.#timer)
      this.#timer = undefined
    }
  }

  /** Whether it was ended here. */
  hasEnded(output: Follow): boolean {
    return this.#ended.has(output)
  }

  #endOld(): void {
    const before = performance.now() - this.lastsMs
    for (const [output, begunAt] of this.#begun) {
      if (begunAt > before) continue
      this.#ended.add(output)
      output.destroy()
    }
  }
}

/** Whether an engine of this version may go on waiting so. */
export const losesFiles = (version: string): boolean => Number.parseInt(version, 10) < 23
