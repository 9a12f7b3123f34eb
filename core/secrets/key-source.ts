import { problems } from './problems.js'

export interface KeySet {
  readonly keys: ReadonlyMap<string, Buffer>
  /** The key that new values are sealed with. */
  readonly current: string
}
export type Environment = Readonly<Record<string, string | undefined>>

/** The id of the one key in ENCRYPTION_KEY, so that it can move to ENCRYPTION_KEYS unchanged. */
const singleKeyId = 'v1'

export const isKeyId = (text: string) => /^[A-Za-z0-9_-]{1,32}$/.test(text)

export function parseKey(hex: string, source: string): Buffer {
  if (!/^[0-9a-f]{64}$/i.test(hex)) throw problems.badKey({ source })
  return Buffer.from(hex, 'hex')
}

/** The keys in the environment, or undefined when it has none. The last one listed is the newest. */
export function environmentKeys(environment: Environment): KeySet | undefined {
  const keys = new Map<string, Buffer>()
  const add = (id: string, key: Buffer, source: string) => {
    if (keys.get(id)?.equals(key) === false) throw problems.duplicateKey({ source, key: id })
    keys.set(id, key)
  }
  const single = environment.ENCRYPTION_KEY?.trim()
  if (single) add(singleKeyId, parseKey(single, 'ENCRYPTION_KEY'), 'ENCRYPTION_KEY')
  for (const entry of environment.ENCRYPTION_KEYS?.split(',')
    .map(part => part.trim())
    .filter(Boolean) ?? []) {
    const [id = '', hex = ''] = entry.split(':')
    if (!isKeyId(id)) throw problems.badKeyId({ source: 'ENCRYPTION_KEYS' })
    add(id, parseKey(hex, `ENCRYPTION_KEYS (${id})`), 'ENCRYPTION_KEYS')
  }
  const newest = [...keys.keys()].at(-1)
  if (newest === undefined) return undefined
  const current = environment.ENCRYPTION_KEY_CURRENT?.trim() || newest
  if (!keys.has(current)) throw problems.unknownCurrent({ key: current, known: [...keys.keys()].join(', ') })
  return { keys, current }
}
