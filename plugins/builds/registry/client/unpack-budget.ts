import { RegistryFailure } from './registry-failure.js'

/** How much the layers of one image may be, all together: as they come, and unpacked. */
export class UnpackBudget {
  #packed = 0
  #unpacked = 0

  constructor(readonly limitBytes: number) {}

  /** False when it is more than there may be. */
  takePacked(bytes: number): boolean {
    this.#packed += bytes
    return this.#packed <= this.limitBytes
  }

  takeUnpacked(bytes: number): boolean {
    this.#unpacked += bytes
    return this.#unpacked <= this.limitBytes
  }

  exceeded(what: string): RegistryFailure {
    return new RegistryFailure('size', `${what} more than ${Math.round(this.limitBytes / 2 ** 20)} MiB`)
  }
}
