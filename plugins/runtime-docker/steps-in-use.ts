/** Of more than any Dockerfile has; a step can print such words too, and then only its own build loses by it. */
const mostSteps = 4096

/** Which steps a build that is under way goes on from: those that the engine has told of, and all that it has made. */
export class StepsInUse {
  readonly #told = new Set<string>()
  /** By the engine's clock, to the second; undefined while it has not begun. */
  #begunAt: number | undefined

  constructor(private readonly applicationId: string | undefined) {}

  /** `at`: what the engine says that the time is. */
  begin(at: Date): void {
    this.#begunAt = Math.floor(at.getTime() / 1000) * 1000
  }

  /** Reads the engine's words. */
  read(text: string): void {
    const id = /^ ---> ([0-9a-f]{12})\n?$/.exec(text)?.[1]
    if (id === undefined) return
    this.#told.add(id)
    for (const oldest of this.#told) {
      if (this.#told.size <= mostSteps) break
      this.#told.delete(oldest)
    }
  }

  /** Whether the image may be one of them: one build of an application runs at a time. */
  includes(image: {
    readonly id: string
    readonly createdAt: Date
    readonly applicationId: string | undefined
  }): boolean {
    const isMade =
      this.#begunAt !== undefined &&
      image.createdAt.getTime() >= this.#begunAt &&
      image.applicationId === this.applicationId
    return isMade || this.#told.has(image.id.replace(/^sha256:/, '').slice(0, 12))
  }
}
