import { problemTable } from 'busbar/sdk'

const certPem = { field: 'cert_pem' } as const
const keyPem = { field: 'key_pem' } as const

export const problems = problemTable({
  noName: [400, 'E_CERTIFICATE_NAME', 'name must not be empty', { field: 'name' }],
  notPem: [
    400,
    'E_CERTIFICATE_PEM',
    'cert_pem: {reason}',
    {
      ...certPem,
      remedy:
        'send the certificate as PEM, from -----BEGIN CERTIFICATE----- on, followed by those of its issuers'
    }
  ],
  tooMany: [
    400,
    'E_CERTIFICATE_CHAIN_LENGTH',
    'cert_pem has more than {limit} certificates',
    {
      ...certPem,
      remedy: 'send the one of the server and the intermediate ones only, without a bundle of roots'
    }
  ],
  unreadable: [
    400,
    'E_CERTIFICATE_UNREADABLE',
    'cert_pem: the certificate {position} cannot be read',
    { ...certPem, remedy: 'export it once more; the text between the lines of dashes may have been cut' }
  ],
  badOrder: [
    400,
    'E_CERTIFICATE_CHAIN_ORDER',
    'cert_pem: the certificate {position} ({subject}) has not issued the one before it',
    { ...certPem, remedy: 'begin with the certificate of the server, and let each be followed by its issuer' }
  ],
  badKind: [
    400,
    'E_CERTIFICATE_KIND',
    'cert_pem: the certificate {position} has a key of a kind that is not served ({kind})',
    { ...certPem, remedy: 'use RSA of 2048 to 8192 bits, or EC of P-256, P-384 or P-521' }
  ],
  noSubject: [
    400,
    'E_CERTIFICATE_NO_SAN',
    'cert_pem: the certificate names no host: it has no subject alternative name of a DNS name or an address',
    {
      ...certPem,
      remedy: 'have it issued with a SAN for each hostname; browsers do not read the common name'
    }
  ],
  notForServers: [
    400,
    'E_CERTIFICATE_USAGE',
    'cert_pem: the certificate is not for servers: its extended key usage lacks serverAuth',
    { ...certPem, remedy: 'have a certificate issued for TLS servers' }
  ],
  badDates: [
    400,
    'E_CERTIFICATE_DATES',
    'cert_pem: the dates of the certificate cannot be read, or it ends before it begins',
    { ...certPem, remedy: 'have it issued anew' }
  ],
  encryptedKey: [
    400,
    'E_CERTIFICATE_KEY_ENCRYPTED',
    'key_pem is protected by a passphrase, which the platform does not have',
    { ...keyPem, remedy: 'remove it first: openssl pkey -in key.pem -out plain.pem' }
  ],
  badKey: [
    400,
    'E_CERTIFICATE_KEY',
    'key_pem is no private key that can be read',
    {
      ...keyPem,
      remedy: 'send the key as PEM, from -----BEGIN PRIVATE KEY----- (or RSA, or EC PRIVATE KEY) on'
    }
  ],
  otherKey: [
    400,
    'E_CERTIFICATE_KEY_MISMATCH',
    'key_pem is not the key of the first certificate in cert_pem',
    {
      ...keyPem,
      remedy: 'send the key that the certificate was requested with, and the certificate of the server first'
    }
  ],
  notServed: [
    400,
    'E_CERTIFICATE_UNUSABLE',
    'cert_pem: a TLS server does not take the certificate with its key ({reason})',
    { ...certPem, remedy: 'have it issued anew, with a key of RSA or EC' }
  ],
  nameTaken: [
    409,
    'E_CERTIFICATE_NAME_TAKEN',
    'there is a certificate with the name {name} already',
    { field: 'name', remedy: 'choose another name; a successor is uploaded beside the one that it replaces' }
  ],
  noHostname: [
    400,
    'E_CERTIFICATE_HOSTNAME',
    'hostname is required',
    { field: 'hostname', remedy: 'say which host is to be served: ?hostname=www.example.com' }
  ],
  notFound: [404, 'E_CERTIFICATE_NOT_FOUND', 'the certificate {certificateId} does not exist'],
  inUse: [
    409,
    'E_CERTIFICATE_IN_USE',
    'the certificate {name} is in use: {hostnames}',
    'give these domains another certificate first, or remove them'
  ]
})
