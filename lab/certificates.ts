import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A certificate that `openssl` has made, and its key. */
export interface LabCertificate {
  readonly cert: string
  readonly key: string
}

interface LabRequest {
  /** As `openssl` writes them: `DNS:a.example.com`. Empty: none. */
  readonly names?: readonly string[]
  /** As `openssl genpkey` takes them; EC P-256 unless given. */
  readonly key?: readonly string[]
  /** More extensions of the certificate: `extendedKeyUsage=clientAuth`. */
  readonly extensions?: readonly string[]
  readonly from?: Date
  readonly until?: Date
  readonly subject?: string
  /** By itself unless given. */
  readonly issuer?: LabCertificate
}

const dayMs = 86_400_000
const ec = ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256']
const config = `
[ca]
default_ca = lab
[lab]
database = index.txt
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = none
[none]
`

/** A certificate for tests, with dates as they are asked for. */
export function makeCertificate({
  names = ['DNS:www.example.com'],
  key = ec,
  extensions = [],
  from = new Date(Date.now() - dayMs),
  until = new Date(Date.now() + 90 * dayMs),
  subject = '/CN=lab',
  issuer
}: LabRequest = {}): LabCertificate {
  const directory = mkdtempSync(join(tmpdir(), 'busbar-certificate-'))
  const openssl = (...args: string[]): void => {
    execFileSync('openssl', args, { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] })
  }
  const read = (name: string): string => readFileSync(join(directory, name), 'utf8')
  try {
    const altNames = names.length === 0 ? [] : [`subjectAltName=${names.join(',')}`]
    writeFileSync(join(directory, 'config'), config)
    writeFileSync(join(directory, 'index.txt'), '')
    writeFileSync(join(directory, 'extensions'), [...altNames, ...extensions, ''].join('\n'))
    openssl('genpkey', ...key, '-out', 'key.pem')
    openssl('req', '-new', '-config', 'config', '-key', 'key.pem', '-subj', subject, '-out', 'request.pem')
    if (issuer !== undefined) {
      writeFileSync(join(directory, 'issuer.pem'), issuer.cert)
      writeFileSync(join(directory, 'issuer-key.pem'), issuer.key)
    }
    const signer =
      issuer === undefined
        ? ['-selfsign', '-keyfile', 'key.pem']
        : ['-cert', 'issuer.pem', '-keyfile', 'issuer-key.pem']
    const dates = ['-startdate', opensslTime(from), '-enddate', opensslTime(until)]
    openssl(
      ...['ca', '-batch', '-notext', '-config', 'config', '-in', 'request.pem', '-out', 'cert.pem'],
      ...[...signer, ...dates, '-extfile', 'extensions']
    )
    return { cert: read('cert.pem'), key: read('key.pem') }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** `20260101000000Z`. */
const opensslTime = (at: Date): string => `${at.toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`
