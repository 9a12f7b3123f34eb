import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual
} from 'node:crypto'
import type { Redactor } from '../log/redactor.js'
import { createKeyFile, readKeyFile } from './key-file.js'
import { type Environment, environmentKeys } from './key-source.js'
import { problems } from './problems.js'

const version = 'b1'
const nonceBytes = 12
const tagBytes = 16
const codeBytes = 32

interface KeyringOptions {
  /** BUSBAR_DIR: where keys.json is, or is made when the environment has no key. */
  readonly directory: string
  readonly environment: Environment
  /** When given, the keys themselves never show in an output. */
  readonly redactor?: Redactor
}

/**
 * The keys of ENCRYPTION_KEY and ENCRYPTION_KEYS, or else of `<directory>/keys.json`, which is made
 * once. Keys of an existing file go on opening old values after the environment was given a key.
 */
export async function createKeyring({ directory, environment, redactor }: KeyringOptions): Promise<Keyring> {
  const given = environmentKeys(environment)
  const stored = await readKeyFile(directory)
  const chosen = given ?? stored ?? (await createKeyFile(directory))
  const keys = new Map([...(stored?.keys ?? []), ...chosen.keys])
  redactor?.add([...keys.values()].map(key => key.toString('hex')))
  return keyringOf(keys, chosen.current)
}

export type Keyring = ReturnType<typeof keyringOf>

/** Sealed: `b1.<key id>.<nonce>.<ciphertext and tag>`, the last two as base64url. */
export function keyringOf(keys: ReadonlyMap<string, Buffer>, current: string) {
  function keyOf(id: string, place: string): Buffer {
    const key = keys.get(id)
    if (key === undefined) throw problems.unknownKey({ place, key: id })
    return key
  }

  return {
    /** The key that new values are sealed with. */
    current,
    /** All of them as `keys.json` has them, for a backup. */
    exported: (): { readonly current: string; readonly keys: Readonly<Record<string, string>> } => ({
      current,
      keys: Object.fromEntries([...keys].map(([id, key]) => [id, key.toString('hex')]))
    }),
    /** `place` becomes associated data: the value opens there and nowhere else. */
    seal(plaintext: string, place: string): string {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', keyOf(current, place), nonce).setAAD(Buffer.from(place))
      const sealed = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return [version, current, nonce.toString('base64url'), sealed.toString('base64url')].join('.')
    },
    open(sealed: string, place: string): string {
      const [format, id = '', nonceText = '', bodyText = '', ...rest] = sealed.split('.')
      const nonce = Buffer.from(nonceText, 'base64url')
      const body = Buffer.from(bodyText, 'base64url')
      if (format !== version || rest.length > 0 || nonce.length !== nonceBytes || body.length < tagBytes) {
        throw problems.malformed({ place })
      }
      const decipher = createDecipheriv('aes-256-gcm', keyOf(id, place), nonce, { authTagLength: tagBytes })
        .setAAD(Buffer.from(place))
        .setAuthTag(body.subarray(-tagBytes))
      try {
        return Buffer.concat([decipher.update(body.subarray(0, -tagBytes)), decipher.final()]).toString(
          'utf8'
        )
      } catch {
        throw problems.cannotOpen({ place, key: id })
      }
    },
    /** False for a value that a rotation has still to seal again. */
    isCurrent: (sealed: string): boolean => sealed.startsWith(`${version}.${current}.`),
    /** `<key id>.<code>`: only who has the key can make it, and in another place it is another one. */
    sign: (text: string, place: string): string =>
      `${current}.${code(keyOf(current, place), text, place).toString('base64url')}`,
    verify(text: string, signature: string, place: string): boolean {
      const [id = '', given = '', ...rest] = signature.split('.')
      const key = keys.get(id)
      const bytes = Buffer.from(given, 'base64url')
      return (
        key !== undefined &&
        rest.length === 0 &&
        bytes.length === codeBytes &&
        timingSafeEqual(bytes, code(key, text, place))
      )
    }
  }
}

/** Under a key of the place alone, because the key itself encrypts. */
function code(key: Buffer, text: string, place: string): Buffer {
  const derived = hkdfSync('sha256', key, '', `sign/${place}`, codeBytes)
  return createHmac('sha256', Buffer.from(derived)).update(text).digest()
}
