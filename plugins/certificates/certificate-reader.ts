import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { type PemBlock, pemBlocks } from './pem.js'
import { problems } from './problems.js'
import { inOneLine, subjectNames } from './subject-names.js'

/** A certificate that a server can present, with its key. */
interface ReadCertificate {
  /** The leaf and its issuers, and nothing else of what was sent. */
  readonly chainPem: string
  readonly keyPem: string
  readonly issuer: string
  readonly subjects: readonly string[]
  readonly notBefore: Date
  readonly notAfter: Date
}

const longestChain = 8
const curves: readonly unknown[] = ['prime256v1', 'secp384r1', 'secp521r1']
const keyLabels = ['PRIVATE KEY', 'RSA PRIVATE KEY', 'EC PRIVATE KEY']
const certificateLabels = ['CERTIFICATE', 'X509 CERTIFICATE', 'TRUSTED CERTIFICATE']
const serverAuth = '1.3.6.1.5.5.7.3.1'

/** Reads what an admin has sent; throws a problem that says what is wrong with it and what helps. */
export function readCertificate(certPem: string, keyPem: string): ReadCertificate {
  const chain = readChain(certPem)
  const [leaf] = chain
  if (leaf === undefined) throw problems.notPem({ reason: 'it holds no certificate' })
  const key = readKey(keyPem)
  if (!leaf.checkPrivateKey(key)) throw problems.otherKey()
  const subjects = subjectNames(leaf.subjectAltName)
  if (subjects.length === 0) throw problems.noSubject()
  // Absent: for everything. Node calls it `keyUsage`.
  const usages: readonly string[] | undefined = leaf.keyUsage
  if (usages !== undefined && usages.length > 0 && !usages.includes(serverAuth))
    throw problems.notForServers()
  const notBefore = new Date(leaf.validFrom)
  const notAfter = new Date(leaf.validTo)
  if (!(notBefore.getTime() <= notAfter.getTime())) throw problems.badDates()
  const read = {
    chainPem: chain.map(certificate => certificate.toString()).join(''),
    keyPem: String(key.export({ type: 'pkcs8', format: 'pem' })),
    issuer: inOneLine(leaf.issuer),
    subjects,
    notBefore,
    notAfter
  }
  checkServed(read)
  return read
}

function readChain(text: string): readonly X509Certificate[] {
  // A key that stands in the same file is left out, not kept.
  const blocks = pemBlocks(text, 64)
  if (blocks === undefined)
    throw problems.notPem({ reason: 'a block of PEM is cut off, or there are too many' })
  const own = blocks.filter(({ label }) => certificateLabels.includes(label))
  if (own.length > longestChain) throw problems.tooMany({ limit: longestChain })
  const chain = own.map(({ text: one }, index) => {
    try {
      return new X509Certificate(one)
    } catch {
      throw problems.unreadable({ position: index + 1 })
    }
  })
  chain.forEach((certificate, index) => {
    // Before anything is verified with it: that takes long with a key that is huge.
    checkKind(publicKeyOf(certificate), index + 1)
    const before = chain[index - 1]
    if (before !== undefined && !hasIssued(certificate, before))
      throw problems.badOrder({ position: index + 1, subject: inOneLine(certificate.subject).slice(0, 200) })
  })
  return chain
}

function publicKeyOf(certificate: X509Certificate): KeyObject | undefined {
  try {
    return certificate.publicKey
  } catch {
    return undefined
  }
}

function hasIssued(issuer: X509Certificate, certificate: X509Certificate): boolean {
  try {
    return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
  } catch {
    return false
  }
}

function checkKind(key: KeyObject | undefined, position: number): void {
  const kind = key?.asymmetricKeyType
  const { modulusLength = 0, namedCurve } = key?.asymmetricKeyDetails ?? {}
  const isServed =
    (kind === 'rsa' && modulusLength >= 2048 && modulusLength <= 8192) ||
    (kind === 'ec' && curves.includes(namedCurve))
  if (isServed) return
  const size =
    kind === 'rsa'
      ? ` of ${modulusLength} bits`
      : kind === 'ec'
        ? ` of ${namedCurve ?? 'no named curve'}`
        : ''
  throw problems.badKind({ position, kind: `${kind ?? 'unknown'}${size}` })
}

function readKey(text: string): KeyObject {
  const blocks = pemBlocks(text, 16)
  const isEncrypted = ({ label, text: one }: PemBlock): boolean =>
    label === 'ENCRYPTED PRIVATE KEY' || one.slice(0, 200).includes('Proc-Type: 4,ENCRYPTED')
  if (blocks?.some(isEncrypted) === true) throw problems.encryptedKey()
  // OpenSSL writes the parameters of a curve in front of the key.
  const block = blocks?.find(({ label }) => keyLabels.includes(label))
  if (block === undefined) throw problems.badKey()
  try {
    return createPrivateKey({ key: block.text, format: 'pem' })
  } catch {
    throw problems.badKey()
  }
}

/** What only the TLS library knows: signatures that it refuses to serve, for example. */
function checkServed({ chainPem, keyPem }: Pick<ReadCertificate, 'chainPem' | 'keyPem'>): void {
  try {
    createSecureContext({ cert: chainPem, key: keyPem })
  } catch (error) {
    const reason = error instanceof Error && 'reason' in error ? String(error.reason) : 'refused'
    throw problems.notServed({ reason: reason.slice(0, 100) })
  }
}
