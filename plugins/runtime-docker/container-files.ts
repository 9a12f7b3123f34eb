import { Readable } from 'node:stream'
import type { ContainerRuntime } from 'busbar/api/containers'
import { type ContainerAccess, short } from './container-access.js'
import type { EngineClient } from './engine-client.js'
import type { EngineError } from './engine-failure.js'
import { asReadable } from './output-lines.js'
import { problems } from './problems.js'
import { TarEnd } from './tar-end.js'

interface FilesParts {
  readonly engine: EngineClient
  readonly access: ContainerAccess
}
type Options = Parameters<ContainerRuntime['getFiles']>[2]

/** See `ContainerRuntime.putFiles`. The engine unpacks with the container's root as its own (since 18.09.7). */
export async function putFiles(
  { engine, access }: FilesParts,
  containerId: string,
  directory: string,
  tar: Readable,
  { signal }: Options
): Promise<void> {
  // Its errors look like those of the engine's socket, and are not.
  let tarError: unknown
  tar.once('error', error => {
    tarError = error
  })
  const names = { container: short(containerId), path: directory }
  const explain = ({ statusCode, words }: EngineError) => {
    if (statusCode === 404) return problems.pathMissing(names)
    // Engines answer 500 to these, up to 25 at least.
    if (statusCode !== undefined && /marked read-?only/i.test(words)) return problems.pathReadonly(names)
    if (statusCode === 400 || /not a directory|archive\/tar|unexpected EOF|invalid tar/i.test(words))
      return problems.filesRefused({ ...names, reason: words })
    return undefined
  }
  try {
    signal.throwIfAborted()
    await access.running(containerId)
    // Asked first, as an engine that refuses hangs up while the tar is on its way, and its words get lost.
    await engine.call(
      `look for ${directory} in a container`,
      async docker =>
        asReadable(await docker.getContainer(containerId).infoArchive({ path: directory })).resume(),
      { explain }
    )
    await engine.call(
      'unpack files in a container',
      async docker => {
        // From here on docker-modem ends the request when the tar fails: half of one must not come to its end.
        if (tarError !== undefined) throw tarError
        signal.throwIfAborted()
        await docker
          .getContainer(containerId)
          .putArchive(tar, { path: directory, noOverwriteDirNonDir: '1', abortSignal: signal })
      },
      { explain, patient: true }
    )
  } catch (error) {
    signal.throwIfAborted()
    throw tarError ?? error
  } finally {
    tar.destroy()
  }
}

/** See `ContainerRuntime.getFiles`. */
export async function getFiles(
  { engine, access }: FilesParts,
  containerId: string,
  path: string,
  { signal }: Options
): Promise<Readable> {
  signal.throwIfAborted()
  await access.running(containerId)
  const names = { container: short(containerId), path }
  const answer = await engine
    .call(
      `read ${path} in a container`,
      async docker =>
        asReadable(await docker.getContainer(containerId).getArchive({ path, abortSignal: signal })),
      {
        patient: true,
        explain: ({ statusCode }) => (statusCode === 404 ? problems.pathMissing(names) : undefined)
      }
    )
    .catch((error: unknown) => {
      signal.throwIfAborted()
      throw error
    })
  return untilItsEnd(answer, problems.filesCut(names), signal)
}

/** A tar that an engine answers; where it is not whole, it fails with `cut`. */
export function untilItsEnd(answer: Readable, cut: Error, signal: AbortSignal): Readable {
  // It may fail before it is read; whoever reads is told then.
  answer.on('error', () => {})
  const whole = Readable.from(piecesOf(answer, cut, signal), { objectMode: false })
  whole.once('close', () => answer.destroy())
  return whole
}

/** An engine that fails while it packs ends its answer as if that were all: the tar has to say that it is whole. */
async function* piecesOf(answer: Readable, cut: Error, signal: AbortSignal): AsyncGenerator<Buffer> {
  const end = new TarEnd()
  try {
    for await (const piece of answer as AsyncIterable<Buffer>) {
      signal.throwIfAborted()
      end.read(piece)
      yield piece
    }
  } catch {
    signal.throwIfAborted()
    throw cut
  }
  signal.throwIfAborted()
  if (!end.isReached) throw cut
}
