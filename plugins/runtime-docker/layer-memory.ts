const askedAtOnce = 16

/** The layers of images. An id stands for what it does for ever, so each is asked for once. */
export class LayerMemory {
  #known: ReadonlyMap<string, readonly string[]> = new Map()

  /** `ask`: undefined for an image that is gone. */
  constructor(private readonly ask: (id: string) => Promise<readonly string[] | undefined>) {}

  /** Of those that exist. Forgets all others. */
  async of(ids: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    const found = new Map<string, readonly string[]>()
    const rest = ids.values()
    const worker = async (): Promise<void> => {
      for (const id of rest) {
        const layers = this.#known.get(id) ?? (await this.ask(id))
        if (layers !== undefined) found.set(id, layers)
      }
    }
    await Promise.all(Array.from({ length: Math.min(askedAtOnce, ids.length) }, worker))
    this.#known = found
    return found
  }
}
