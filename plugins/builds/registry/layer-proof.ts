import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import type { ImageInfo, RegistryAuth } from 'busbar/api/runtime-docker'
import { isProblem, withTimeLimit } from 'busbar/sdk'
import type { HostRules } from '../network/host-resolution.js'
import { fullRepository } from './local-image.js'
import { NotShown, RegistryReader } from './registry-reader.js'

interface WantedProof {
  /** The name that it was pulled by. */
  readonly name: string
  readonly auth?: RegistryAuth
  readonly image: ImageInfo
  /** Its layers, or some of them. */
  readonly layers: readonly string[]
  /** With what the image says of itself. */
  readonly hasConfig: boolean
}

/** Why the registry could not be seen to hand these out; undefined: it does. */
export type LayerProof = (wanted: WantedProof, signal: AbortSignal) => Promise<string | undefined>

interface Reading {
  /** What may still be read, unpacked. */
  readonly budget: { bytes: number }
  readonly signal: AbortSignal
}

const maxManifests = 50
const maxUnpackedBytes = 16 * 2 ** 30
const timeLimitMs = 10 * 60_000
const manifestTypes = [
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.oci.image.index.v1+json'
].join(', ')

/**
 * Reads the layers from the registry and unpacks them, keeping nothing: whoever can hand out bytes of that digest has
 * the layer, whatever its manifests say.
 */
export const layerProof =
  (rules: HostRules): LayerProof =>
  async (wanted, signal) =>
    await withTimeLimit({ signal, ms: timeLimitMs }, async limited => {
      try {
        await compareAll(rules, wanted, limited)
        return undefined
      } catch (error) {
        signal.throwIfAborted()
        if (isProblem(error)) throw error
        if (limited.aborted) return `it takes longer than ${timeLimitMs / 60_000} minutes`
        return error instanceof Error ? error.message : String(error)
      }
    })

/** Rejects when one of them is not handed out. */
async function compareAll(
  rules: HostRules,
  { name, auth, image, layers, hasConfig }: WantedProof,
  signal: AbortSignal
): Promise<void> {
  const reader = new RegistryReader(name, auth, rules, signal)
  const blobs = await blobsOf(reader, name, image)
  const reading: Reading = { budget: { bytes: maxUnpackedBytes }, signal }
  const compare = async (blob: string, digest: string, mayBePacked: boolean): Promise<void> => {
    const answer = await reader.open(`blobs/${blob}`)
    if ((await digestOf(answer, { ...reading, mayBePacked })) !== digest)
      throw new NotShown('what its registry hands out is something else')
  }
  if (hasConfig) await compare(image.id, image.id, false)
  for (const layer of layers) {
    const blob = blobs[image.layers?.indexOf(layer) ?? -1]
    if (blob === undefined) throw new NotShown('its registry names other layers now')
    await compare(blob, layer, true)
  }
}

/** The digests under which the registry has the layers, in the order of the layers. */
async function blobsOf(reader: RegistryReader, name: string, image: ImageInfo): Promise<readonly string[]> {
  const repository = fullRepository(name)
  const waiting = image.repoDigests
    .filter(known => fullRepository(known) === repository)
    .map(known => known.slice(known.indexOf('@') + 1))
  for (let asked = 0; asked < maxManifests; asked++) {
    const digest = waiting.shift()
    if (digest === undefined) break
    const manifest = await reader.json(`manifests/${digest}`, manifestTypes).catch((error: unknown) => {
      // An earlier one may be gone.
      if (error instanceof NotShown && waiting.length > 0) return undefined
      throw error
    })
    if (digestIn(get(manifest, 'config')) === image.id) return list(get(manifest, 'layers')).map(digestIn)
    waiting.push(...list(get(manifest, 'manifests')).map(digestIn).slice(0, maxManifests))
  }
  throw new NotShown('its registry has no manifest of it')
}

const get = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[key] : undefined

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

function digestIn(descriptor: unknown): string {
  const digest = get(descriptor, 'digest')
  return typeof digest === 'string' && /^sha256:[0-9a-f]{64}$/.test(digest) ? digest : 'none'
}

/** Of what an answer holds, or unpacks to. */
async function digestOf(
  answer: IncomingMessage,
  { mayBePacked, budget, signal }: Reading & { readonly mayBePacked: boolean }
): Promise<string> {
  const hash = createHash('sha256')
  const count = async (plain: AsyncIterable<Buffer>): Promise<void> => {
    for await (const chunk of plain) {
      budget.bytes -= chunk.length
      if (budget.bytes < 0) throw new NotShown('its layers are too large to be compared')
      hash.update(chunk)
    }
  }
  try {
    const chunks: AsyncIterator<Buffer> = answer[Symbol.asyncIterator]()
    const first = await chunks.next()
    const head: Buffer = first.done === true ? Buffer.alloc(0) : first.value
    const whole = Readable.from(
      (async function* () {
        yield head
        yield* { [Symbol.asyncIterator]: () => chunks }
      })()
    )
    const isPacked = mayBePacked && head[0] === 0x1f && head[1] === 0x8b
    if (isPacked) await pipeline(whole, createGunzip(), count, { signal })
    else await pipeline(whole, count, { signal })
  } finally {
    answer.destroy()
  }
  return `sha256:${hash.digest('hex')}`
}
