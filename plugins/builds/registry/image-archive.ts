import { Readable } from 'node:stream'
import { blockBytes, fileHeader } from '../context/tar-header.js'

interface ArchivedLayer {
  /** As it is packed. */
  readonly size: number
  /** Absent: left out, as the engine holds it. */
  readonly open?: () => AsyncIterable<Buffer>
}

interface ArchivedImage {
  /** With a tag; absent: it is named when it is there. */
  readonly name?: string
  readonly config: Buffer
  readonly layers: readonly ArchivedLayer[]
  /** Before the last bytes, without which the engine takes nothing of it apart. */
  readonly beforeEnd: () => Promise<void>
}

/** An image as `docker load` takes it in, layer by layer as they come. Ends with an error where one of them does. */
export const imageArchive = (image: ArchivedImage): Readable =>
  Readable.from(archived(image), { objectMode: false })

async function* archived({ name, config, layers, beforeEnd }: ArchivedImage): AsyncGenerator<Buffer> {
  const layerName = (at: number): string => `layer-${at}.tar`
  const manifest = [
    {
      Config: 'config.json',
      RepoTags: name === undefined ? null : [name],
      Layers: layers.map((_, at) => layerName(at))
    }
  ]
  for (const [file, content] of [
    ['config.json', config],
    ['manifest.json', Buffer.from(JSON.stringify(manifest))]
  ] as const) {
    yield fileHeader(file, content.length)
    yield content
    yield padding(content.length)
  }
  for (const [at, { size, open }] of layers.entries()) {
    if (open === undefined) continue
    yield fileHeader(layerName(at), size)
    yield* open()
    yield padding(size)
  }
  await beforeEnd()
  yield Buffer.alloc(2 * blockBytes)
}

const padding = (size: number): Buffer => Buffer.alloc((blockBytes - (size % blockBytes)) % blockBytes)
