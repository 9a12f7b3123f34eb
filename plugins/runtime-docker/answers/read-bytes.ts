/** Bytes that have come together, where they lie: they are gone when more is read. */
export class ReadBytes {
  #latin1: string | undefined

  constructor(
    readonly bytes: Buffer,
    readonly length = bytes.length
  ) {}

  /** Each byte as a character. It is made once: parts of it take no copy, and no call into the runtime for each. */
  get latin1(): string {
    const text = this.#latin1 ?? this.bytes.toString('latin1', 0, this.length)
    this.#latin1 = text
    return text
  }
}
