import { allow, type RouteDeclarer, reply } from 'busbar/sdk'
import type { Certificates } from './certificates.js'
import { problems } from './problems.js'
import {
  certificateAnswer,
  certificateParams,
  uploadBody,
  usableCertificate,
  usableQuery
} from './schemas.js'

const group = 'Certificates (Admin)'
const admins = { role: 'admin', project: 'none' } as const
const uploadFaults = [
  problems.noName,
  problems.notPem,
  problems.tooMany,
  problems.unreadable,
  problems.badOrder,
  problems.badKind,
  problems.noSubject,
  problems.notForServers,
  problems.badDates,
  problems.encryptedKey,
  problems.badKey,
  problems.otherKey,
  problems.notServed,
  problems.nameTaken
]

export function routes(route: RouteDeclarer<Certificates>): void {
  route.list({
    url: '/api/certificates',
    group,
    operationId: 'ListCertificates',
    summary: 'Get Certificates',
    description: 'All uploaded certificates by name. Private keys are in no answer.',
    items: certificateAnswer,
    access: allow.token('read', admins),
    handler: async ({ page }, { certificates }) => await certificates.list(page)
  })
  route({
    method: 'POST',
    url: '/api/certificates',
    group,
    operationId: 'UploadCertificate',
    summary: 'Upload Certificate',
    description:
      'Keeps a certificate with its private key, encrypted. It must name the hosts that it is for, and the key must be its own; one that has expired is taken, and so is one that nobody knows the issuer of. To replace one, upload its successor under another name, let the domains use that, and delete the former.',
    problems: uploadFaults,
    access: allow.token('write', admins),
    schema: { body: uploadBody, response: { 201: certificateAnswer } },
    bodyLimit: 256 * 1024,
    idempotent: true,
    audit: { action: 'upload_certificate', resource: 'certificate', id: { result: 'id' } },
    handler: async ({ body }, { certificates }) => await certificates.upload(body)
  })
  route({
    method: 'DELETE',
    url: '/api/certificates/:certificateId',
    group,
    operationId: 'DeleteCertificate',
    summary: 'Delete Certificate',
    description:
      'Deletes a certificate and its key. While a domain uses it this is refused, with the names of all that do.',
    problems: [problems.notFound, problems.inUse],
    access: allow.token('write', admins),
    schema: { params: certificateParams, response: { 204: null } },
    audit: { action: 'delete_certificate', resource: 'certificate', id: { param: 'certificateId' } },
    handler: async ({ params }, { certificates }) => {
      await certificates.remove(params.certificateId)
      return reply(204, null)
    }
  })
  route.list({
    url: '/api/certificates/usable',
    group: 'Application Domains & TLS',
    operationId: 'ListUsableCertificates',
    summary: 'Find Certificates for a Hostname',
    description:
      'The uploaded certificates that can serve a hostname: those for exactly this name, and those for all names beside it (`*.example.com` for `www.example.com`). Case and a dot at the end do not matter. Expired ones are listed too.',
    problems: [problems.noHostname],
    items: usableCertificate,
    query: usableQuery,
    access: allow.token('read', { project: 'none' }),
    handler: async ({ query, page }, { certificates }) => await certificates.usable(query.hostname, page)
  })
}
