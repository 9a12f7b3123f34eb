import type { ContainerRuntime, ImageInfo } from 'busbar/api/runtime-docker'
import type { BuildContext } from '../api.js'
import { instructionsOf } from './dockerfile.js'
import type { PrivateImages } from '../registry/private-images.js'
import { problems } from '../problems.js'

/** An image that a build takes something from. */
export interface OutsideImage {
  readonly name: string
  /** It is built upon, so that its ONBUILD instructions are carried out. */
  readonly isBase: boolean
}

/**
 * The images that a Dockerfile takes from outside: those of FROM and of COPY --from that are no stage of its
 * own, and those that a build on top of it would copy from.
 */
export function outsideImages (dockerfile: string, buildArgs: Readonly<Record<string, string>>): OutsideImage[] {
  const globals = new Map<string, string>()
  const stages = new Set<string>(['scratch'])
  const images = new Map<string, boolean>()
  let isBeforeStages = true
  for (const { text } of instructionsOf(dockerfile)) {
    const [, image = '', stage] = /^\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?/i.exec(text) ?? []
    if (image !== '') {
      isBeforeStages = false
      const name = expand(image, globals)
      if (!stages.has(name.toLowerCase())) images.set(name, true)
      if (stage !== undefined) stages.add(stage.toLowerCase())
      continue
    }
    const [, name, value] = /^\s*ARG\s+(\w+)(?:=("[^"]*"|'[^']*'|\S*))?/i.exec(text) ?? []
    // Only those before the first FROM count in one.
    if (name !== undefined && isBeforeStages) globals.set(name, buildArgs[name] ?? value?.replace(/^["']|["']$/g, '') ?? '')
    const source = copiedFrom(text)
    if (source !== undefined && !stages.has(source.toLowerCase()) && !images.has(source)) images.set(source, false)
  }
  images.delete('')
  return [...images].map(([name, isBase]) => ({ name, isBase }))
}

/** What a COPY, or an ONBUILD COPY, takes from another image or stage. A number is a stage. */
function copiedFrom (instruction: string): string | undefined {
  const source = /^\s*(?:ONBUILD\s+)?COPY\s+(?:--\S+\s+)*?--from=(\S+)/i.exec(instruction)?.[1]
  return source === undefined || /^\d+$/.test(source) ? undefined : source
}

/** `$NAME`, `${NAME}`, `${NAME:-else}` and `${NAME:+if}`, as the engine reads them in a FROM. */
const expand = (text: string, values: ReadonlyMap<string, string>): string =>
  text.replace(/\$(?:(\w+)|\{(\w+)(?::([-+])([^}]*))?\})/g, (_, plain?: string, braced?: string, operator?: string, word = '') => {
    const value = values.get(plain ?? braced ?? '') ?? ''
    if (operator === '+') return value === '' ? '' : word
    return value === '' && operator === '-' ? word : value
  })

/**
 * Refuses what is on this machine for other applications only: the engine would build on it without asking
 * anybody. What an account was needed for is asked of its registry again, as everybody may.
 */
export async function checkOutsideImages (images: readonly OutsideImage[], applicationId: string, parts: CheckParts, context: BuildContext): Promise<void> {
  for (const { name, isBase } of images) {
    // A name that the engine will not take either is for the engine to explain.
    const local = await parts.runtime.image(name).catch(() => undefined) ?? (isBase ? await fetched(name, parts, context) : undefined)
    if (local === undefined) continue
    if (local.builtFor !== undefined && local.builtFor.applicationId !== applicationId) throw problems.imageOfOthers({ image: name })
    let image = local
    if (await parts.privateImages.isOfOthers(local.id, applicationId)) {
      image = await pull(name, parts, context)
      await parts.privateImages.note(image.id, applicationId, false)
    }
    const sources = isBase ? image.onBuild?.flatMap(trigger => copiedFrom(trigger) ?? []) ?? [] : []
    await checkOutsideImages(sources.map(source => ({ name: source, isBase: false })), applicationId, parts, context)
  }
}

interface CheckParts { readonly runtime: ContainerRuntime, readonly privateImages: PrivateImages }

/** Its ONBUILD instructions are to be known before the engine carries them out. Why it cannot be had the engine says. */
async function fetched (name: string, parts: CheckParts, context: BuildContext): Promise<ImageInfo | undefined> {
  try {
    return await pull(name, parts, context)
  } catch {
    context.signal.throwIfAborted()
    return undefined
  }
}

const pull = async (name: string, { runtime }: CheckParts, { log, signal }: BuildContext): Promise<ImageInfo> =>
  await runtime.pull(name, { isBase: true, signal, onLine: line => log({ level: 'info', stream: 'stdout', msg: line }) })
