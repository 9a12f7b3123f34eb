import type { ContainerRuntime } from 'busbar/api/runtime-docker'
import type { BuildContext } from '../api.js'
import { instructionsOf } from './dockerfile.js'
import type { PrivateImages } from '../registry/private-images.js'
import { problems } from '../problems.js'

/** The images that a Dockerfile takes from outside: those of FROM and of COPY --from that are no stage of its own. */
export function baseImages (dockerfile: string, buildArgs: Readonly<Record<string, string>>): string[] {
  const globals = new Map<string, string>()
  const stages = new Set<string>(['scratch'])
  const images = new Set<string>()
  let isBeforeStages = true
  for (const { text } of instructionsOf(dockerfile)) {
    const [, image = '', stage] = /^\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?/i.exec(text) ?? []
    if (image !== '') {
      isBeforeStages = false
      const name = expand(image, globals)
      if (!stages.has(name.toLowerCase())) images.add(name)
      if (stage !== undefined) stages.add(stage.toLowerCase())
      continue
    }
    const [, name, value] = /^\s*ARG\s+(\w+)(?:=("[^"]*"|'[^']*'|\S*))?/i.exec(text) ?? []
    // Only those before the first FROM count in one.
    if (name !== undefined && isBeforeStages) globals.set(name, buildArgs[name] ?? value?.replace(/^["']|["']$/g, '') ?? '')
    const [, source] = /^\s*COPY\s+(?:--\S+\s+)*--from=(\S+)/i.exec(text) ?? []
    if (source !== undefined && !/^\d+$/.test(source) && !stages.has(source.toLowerCase())) images.add(source)
  }
  return [...images].filter(image => image !== '')
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
export async function checkBaseImages (
  images: readonly string[],
  applicationId: string,
  { runtime, privateImages }: { readonly runtime: ContainerRuntime, readonly privateImages: PrivateImages },
  { log, signal }: BuildContext
): Promise<void> {
  for (const name of images) {
    // A name that the engine will not take either is for the engine to explain.
    const local = await runtime.image(name).catch(() => undefined)
    if (local === undefined) continue
    if (local.builtFor !== undefined && local.builtFor.applicationId !== applicationId) throw problems.imageOfOthers({ image: name })
    if (!await privateImages.isOfOthers(local.id, applicationId)) continue
    const pulled = await runtime.pull(name, { signal, onLine: line => log({ level: 'info', stream: 'stdout', msg: line }) })
    await privateImages.note(pulled.id, applicationId, false)
  }
}
