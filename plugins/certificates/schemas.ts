import {
  described,
  maybe,
  named,
  nullable,
  object,
  type Static,
  Type,
  text,
  timestamp,
  uuid
} from 'busbar/sdk'

/** A chain with two intermediate certificates has some 6 KiB. */
const longestPem = 65_536

export const certificateAnswer = named(
  'CertificateMetadata',
  object({
    id: described(uuid(), 'What the certificate is called in paths.'),
    name: described(Type.String(), 'What the admin called it who uploaded it.'),
    issuer: described(Type.String(), 'The distinguished name of who issued it: `C=US, O=Example, CN=R1`.'),
    subjects: described(
      Type.Array(Type.String()),
      'The hostnames and addresses that it is for; `*.example.com` is for each host directly below that name.'
    ),
    not_before: described(nullable(timestamp()), 'From when it is valid.'),
    not_after: described(nullable(timestamp()), 'Until when it is valid.'),
    domain_count: described(Type.Integer(), 'How many domains are served with it.'),
    created_at: described(timestamp(), 'When it was uploaded.')
  }),
  { description: 'An uploaded certificate, without its private key.' }
)
export type CertificateAnswer = Static<typeof certificateAnswer>

export const usableCertificate = named(
  'UsableCertificate',
  object({
    id: described(uuid(), 'The `certificate_id` of a domain that is to use it.'),
    name: described(Type.String(), 'What it is called.'),
    issuer: described(Type.String(), 'The distinguished name of who issued it.'),
    not_after: described(nullable(timestamp()), 'Until when it is valid; it may be over.')
  }),
  { description: 'A certificate that can serve a hostname. Which others it covers is not told.' }
)
export type UsableCertificateAnswer = Static<typeof usableCertificate>

export const uploadBody = named(
  'UploadCertificate',
  object({
    name: described(text({ min: 1, max: 100 }), 'What to call it: unique, of up to 100 characters.'),
    cert_pem: described(
      text({ min: 1, max: longestPem }),
      'The certificate of the server as PEM, followed by those of its issuers in order, without the root. 64 KiB at most.'
    ),
    key_pem: described(
      text({ min: 1, max: longestPem }),
      'The private key as PEM, without a passphrase: RSA of 2048 to 8192 bits, or EC of P-256, P-384 or P-521. It is kept encrypted and is in no answer.'
    )
  }),
  {
    description: 'A certificate with its private key.',
    examples: [
      {
        name: 'shop 2027',
        cert_pem: '-----BEGIN CERTIFICATE-----\nMIIB…\n-----END CERTIFICATE-----\n',
        key_pem: '-----BEGIN PRIVATE KEY-----\nMIGH…\n-----END PRIVATE KEY-----\n'
      }
    ]
  }
)
export type UploadBody = Static<typeof uploadBody>

export const certificateParams = {
  certificateId: described(uuid(), 'The `id` of the certificate, as the list of them has it.')
}

export const usableQuery = {
  hostname: described(
    maybe(Type.String({ maxLength: 1000, examples: ['www.example.com'] })),
    'The host that is to be served; required. What is no name of a host finds nothing.'
  )
}
