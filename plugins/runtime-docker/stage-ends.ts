const mostEnds = 50

/**
 * Reads from the engine's words where the stages of a build end: the images that nothing of the finished one
 * continues, although the next build begins with them. A Dockerfile can print such words too, so an id here
 * says only what not to remove.
 */
export class StageEnds {
  readonly #ends = new Set<string>()
  #latest = ''

  read(text: string): void {
    this.#latest = /^ ---> ([0-9a-f]{12})\n?$/.exec(text)?.[1] ?? this.#latest
    const isNewStage = this.#latest !== '' && /^Step \d+\/\d+ : FROM /i.test(text)
    if (isNewStage && this.#ends.size < mostEnds) this.#ends.add(this.#latest)
  }

  /** Short ids of images. */
  get ids(): readonly string[] {
    return [...this.#ends]
  }
}
