import type { TarFault, TarMeter, Unpacked } from '../../context/tar-meter.js'
import { RegistryFailure } from './registry-failure.js'

/** How much the layers of one image may be, all together: as they come, and unpacked. */
export class UnpackBudget {
  #packed = 0
  #unpacked = 0
  #disk: Unpacked = { bytes: 0, inodes: 0 }
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
  get unpacked(): Unpacked & { readonly fault: TarFault | undefined } {
    return { ...this.#disk, fault: this.#fault }
  }

  takeLayer({ unpacked: { bytes, inodes }, fault }: TarMeter): void {
    this.#disk = { bytes: this.#disk.bytes + bytes, inodes: this.#disk.inodes + inodes }
    this.#fault ??= fault
  }

  exceeded(what: string): RegistryFailure {
    return new RegistryFailure('size', `${what} more than ${Math.round(this.limitBytes / 2 ** 20)} MiB`)
  }
}
