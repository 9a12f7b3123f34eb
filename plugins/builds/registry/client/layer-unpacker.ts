import { createHash } from 'node:crypto'
import type { Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import { TarMeter } from '../../context/tar-meter.js'
import { RegistryFailure } from './registry-failure.js'
import type { UnpackBudget } from './unpack-budget.js'

/** As many bytes tell how a layer is packed. */
export const headBytes = 6

/** By what it begins with, as the engine tells it; the type in a manifest may be any. */
function packingOf(head: Buffer): 'gzip' | 'zstd' | 'bzip2' | 'xz' | 'none' {
  const start = head.toString('latin1', 0, 6)
  if (start.startsWith('BZh')) return 'bzip2'
  if (start === '\xfd7zXZ\0') return 'xz'
  if (head[0] === 0x1f && head[1] === 0x8b && head[2] === 0x08) return 'gzip'
  if (head.length < 4) return 'none'
  const magic = head.readUInt32LE(0)
  // A frame, or one that is to be skipped before it.
  return magic === 0xfd2fb528 || magic >>> 4 === 0x184d2a5 ? 'zstd' : 'none'
}

const chunkSize = 64 * 1024

/** Node.js 22.15 and newer have it. */
const { createZstdDecompress } = zlib as {
  readonly createZstdDecompress?: (options: { readonly chunkSize: number }) => Transform
}

function unpacking(head: Buffer): Transform | undefined {
  switch (packingOf(head)) {
    case 'gzip':
      return zlib.createGunzip({ chunkSize })
    case 'zstd':
      if (createZstdDecompress !== undefined) return createZstdDecompress({ chunkSize })
      throw new RegistryFailure(
        'packing',
        `a layer is packed by zstd, which Node.js ${process.versions.node} does not know; run the platform with Node.js 22.15 or newer, or push the image packed by gzip`
      )
    case 'bzip2':
    case 'xz':
      throw new RegistryFailure('packing', 'a layer is packed by bzip2 or xz; push the image packed by gzip')
    case 'none':
      return undefined
  }
}

/** Takes the bytes of a layer as they come, keeps nothing, and tells the digest of what they unpack to. */
export class LayerUnpacker {
  readonly #hash = createHash('sha256')
  readonly #meter = new TarMeter()
  /** Undefined: it is not packed. Works in threads; only its pieces come to the event loop, one a turn. */
  readonly #stream: Transform | undefined
  #failure: Error | undefined
  #hasEnded = false
  /** Of what is waited for now. */
  #reject: (error: Error) => void = () => {}

  constructor(
    head: Buffer,
    private readonly budget: UnpackBudget
  ) {
    this.#stream = unpacking(head)
    this.#stream?.on('data', (plain: Buffer) => {
      try {
        this.#take(plain)
      } catch (error) {
        this.#stream?.destroy(error as Error)
      }
    })
    // Padding behind it is no part of it.
    this.#stream?.once('end', () => {
      this.#hasEnded = true
    })
    this.#stream?.on('error', error => {
      this.#failure =
        error instanceof RegistryFailure
          ? error
          : new RegistryFailure('broken', `a layer does not unpack: ${error.message}`)
      this.#reject(this.#failure)
    })
  }

  /** Resolves when all of it has been unpacked. */
  async write(packed: Buffer): Promise<void> {
    const stream = this.#stream
    if (stream === undefined) return this.#take(packed)
    await this.#unlessFailed(done => {
      stream.write(packed, done)
    })
  }

  async digest(): Promise<string> {
    const stream = this.#stream
    if (stream !== undefined && !this.#hasEnded)
      await this.#unlessFailed(done => {
        stream.once('end', done)
        stream.end()
      })
    this.budget.takeLayer(this.#meter)
    return `sha256:${this.#hash.digest('hex')}`
  }

  destroy(): void {
    this.#stream?.destroy()
  }

  #take(plain: Buffer): void {
    if (!this.budget.takeUnpacked(plain.length)) throw this.budget.exceeded('its layers unpack to')
    this.#hash.update(plain)
    this.#meter.push(plain)
  }

  async #unlessFailed(begin: (done: (error?: Error | null) => void) => void): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#reject = reject
      if (this.#failure !== undefined) return reject(this.#failure)
      begin(error => {
        // What has failed is told by its own event, with the reason.
        if (error === undefined || error === null) resolve()
      })
    })
  }
}
