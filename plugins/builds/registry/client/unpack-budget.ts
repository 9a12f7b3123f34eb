import type { TarFault, TarMeter } from '../../context/tar-meter.js'
import { RegistryFailure } from './registry-failure.js'

/** How much the layers of one image may be, all together: as they come, and unpacked. */
export class UnpackBudget {
  #packed = 0
  #unpacked = 0
  #diskBytes = 0
  #fault: TarFault | undefined

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

  /** What the layers that have come take on a disk once they are unpacked, or why that cannot be told. */
  get unpacked(): { readonly bytes: number; readonly fault: TarFault | undefined } {
    return { bytes: this.#diskBytes, fault: this.#fault }
  }

  takeLayer({ bytes, fault }: TarMeter): void {
    this.#diskBytes += bytes
    this.#fault ??= fault
  }

  exceeded(what: string): RegistryFailure {
    return new RegistryFailure('size', `${what} more than ${Math.round(this.limitBytes / 2 ** 20)} MiB`)
  }
}
