import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto'

const algorithm = 'ssh-ed25519'

/** A key pair as OpenSSH writes it. */
export interface OpenSshKey {
  /** One line, fit for `authorized_keys` and for what hosts of repositories take as a deploy key. */
  readonly publicKey: string
  /** A file without a passphrase. */
  readonly privateKey: string
  /** `SHA256:…`, as `ssh-keygen -l` shows it. */
  readonly fingerprint: string
}

/** A new one; `comment` tells people whose it is. */
export function makeOpenSshKey(comment: string): OpenSshKey {
  const jwk = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })
  const publicBytes = Buffer.from(jwk.x ?? '', 'base64url')
  const seed = Buffer.from(jwk.d ?? '', 'base64url')
  const blob = Buffer.concat([field(algorithm), field(publicBytes)])
  return {
    publicKey: `${algorithm} ${blob.toString('base64')} ${comment}`,
    privateKey: privateFile(blob, Buffer.concat([seed, publicBytes]), comment),
    fingerprint: fingerprintOf(blob.toString('base64'))
  }
}

/** Of the second word of a public key, or the third of a line of `known_hosts`. */
export const fingerprintOf = (blob: string): string =>
  `SHA256:${createHash('sha256').update(Buffer.from(blob, 'base64')).digest('base64').replace('=', '')}`

/** What `privateKey` must not show through, wherever it is printed: its lines, as they are the same in every form that is indented. */
export const secretLines = (privateKey: string): string[] =>
  privateKey.split('\n').filter(line => line.length > 20 && !line.startsWith('-----'))

function privateFile(publicBlob: Buffer, privateBytes: Buffer, comment: string): string {
  // Twice the same: who decrypts a file sees by it whether the passphrase was right.
  const check = randomBytes(4)
  const content = Buffer.concat([check, check, publicBlob, field(privateBytes), field(comment)])
  const padding = Buffer.from(Array.from({ length: (8 - (content.length % 8)) % 8 }, (_, at) => at + 1))
  const file = Buffer.concat([
    Buffer.from('openssh-key-v1\0'),
    field('none'),
    field('none'),
    field(''),
    uint32(1),
    field(publicBlob),
    field(Buffer.concat([content, padding]))
  ])
  const lines = file.toString('base64').match(/.{1,70}/g) ?? []
  return ['-----BEGIN OPENSSH PRIVATE KEY-----', ...lines, '-----END OPENSSH PRIVATE KEY-----', ''].join('\n')
}

function field(value: string | Buffer): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([uint32(bytes.length), bytes])
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
