import { inApplication } from 'busbar/api/applications'
import { allow, type RouteDeclarer, reply } from 'busbar/sdk'
import type { Domains } from './domains.js'
import { problems } from './problems.js'
import { proxyRoutes } from './proxy-routes.js'
import {
  addBody,
  address,
  deletedAnswer,
  domain,
  domainWithFeatures,
  feature,
  featureBody,
  featureParams,
  tlsOverview,
  updateBody
} from './schemas.js'

const group = 'Application Domains & TLS'
const ofApplication = '/api/projects/:projectId/applications/:applicationId'
const all = `${ofApplication}/domains` as const
const one = `${all}/:domainId` as const
const inDomain = { ...inApplication, chain: { ...inApplication.chain, domainId: 'domain' } } as const
const id = { param: 'domainId' } as const
const ruleFaults = [
  problems.badHostname,
  problems.reserved,
  problems.badPath,
  problems.badSslMode,
  problems.dnsChallenge,
  problems.wildcardAutomatic,
  problems.contradiction,
  problems.forceWithoutTls,
  problems.noCertificate,
  problems.unknownCertificate,
  problems.notCovered,
  problems.mixedTls,
  problems.badPort,
  problems.badAdvanced,
  problems.unable,
  problems.taken,
  problems.takenHere
]

export function routes(route: RouteDeclarer<Domains>): void {
  domainRoutes(route)
  featureRoutes(route)
  proxyRoutes(route)
  route.list({
    url: '/api/domains/tls',
    group: 'Platform',
    operationId: 'ListDomainTLSStatus',
    summary: 'Get Domain TLS Status',
    description: 'How all domains are served that the caller may see, by hostname; admins see all.',
    items: tlsOverview,
    access: allow.token('read', { project: 'filtered' }),
    handler: async ({ reach, page }, { domains }) => await domains.overview(reach, page)
  })
  route.list({
    url: `${ofApplication}/addresses`,
    group,
    operationId: 'ListApplicationAddresses',
    summary: 'Get Addresses',
    description:
      'Where a browser finds the application by a hostname, with the port of the proxy that is on: the name below `.localhost` that it got with its first deploy, then its domains. Empty while no proxy is on.',
    items: address,
    access: allow.token('read', { project: inApplication }),
    handler: async ({ params, page }, { domains }) => await domains.addresses(params.applicationId, page)
  })
}

function domainRoutes(route: RouteDeclarer<Domains>): void {
  route.list({
    url: all,
    group,
    operationId: 'ListDomains',
    summary: 'Get Domains',
    description: 'The domains of the application with their route features, by hostname and path.',
    items: domainWithFeatures,
    access: allow.token('read', { project: inApplication }),
    handler: async ({ project, params, page }, { domains }) =>
      await domains.list({ projectId: project, applicationId: params.applicationId }, page)
  })
  route({
    method: 'POST',
    url: all,
    group,
    operationId: 'AddDomain',
    summary: 'Create Domain',
    description:
      'Leads a hostname, or what is below a path of it, to the application. It is served when this is answered, and answers 503 while the application does not run. What the proxy that is on cannot do is refused, with the way to get it.',
    problems: [...ruleFaults, problems.tooMany],
    access: allow.token('write', { project: inApplication }),
    schema: { body: addBody, response: { 201: domain } },
    idempotent: true,
    audit: { action: 'add_domain', resource: 'domain', id: { result: 'id' } },
    handler: async ({ project, params, body }, { domains }) =>
      await domains.add({ projectId: project, applicationId: params.applicationId }, body)
  })
  route({
    method: 'GET',
    url: one,
    group,
    operationId: 'GetDomain',
    summary: 'Get Domain',
    description:
      'One domain, as the list has it. `tls_status` changes by itself once a certificate is served.',
    problems: [problems.notFound],
    access: allow.token('read', { project: inDomain }),
    schema: { response: { 200: domainWithFeatures } },
    handler: async ({ project, params }, { domains }) =>
      await domains.find({ projectId: project, applicationId: params.applicationId }, params.domainId)
  })
  route({
    method: 'PUT',
    url: one,
    group,
    operationId: 'UpdateDomain',
    summary: 'Update Domain',
    description:
      'Replaces the rules of a domain. The former ones are served until the new ones are. What is changed of TLS holds for all paths of the hostname in this application.',
    problems: [...ruleFaults, problems.notFound],
    access: allow.token('write', { project: inDomain }),
    schema: { body: updateBody, response: { 200: domain } },
    audit: { action: 'update_domain', resource: 'domain', id },
    handler: async ({ project, params, body }, { domains }) =>
      await domains.update({ projectId: project, applicationId: params.applicationId }, params.domainId, body)
  })
  route({
    method: 'DELETE',
    url: one,
    group,
    operationId: 'RemoveDomain',
    summary: 'Remove Domain',
    description: 'The hostname is not served any more, and may be given to any project.',
    problems: [problems.notFound],
    access: allow.session({ project: inDomain }),
    schema: { response: { 200: deletedAnswer } },
    audit: { action: 'remove_domain', resource: 'domain', id },
    handler: async ({ project, params }, { domains }) =>
      await domains.remove({ projectId: project, applicationId: params.applicationId }, params.domainId)
  })
  route({
    method: 'POST',
    url: `${one}/tls/recheck`,
    group,
    operationId: 'RecheckDomainTLS',
    summary: 'Recheck Domain TLS',
    description:
      'Looks again at what is served for the domain and where its name leads, soon; `tls_last_checked_at` tells when it was.',
    problems: [problems.notFound],
    access: allow.token('write', { project: inDomain }),
    schema: { response: { 202: null } },
    idempotent: true,
    limit: { max: 30, windowSeconds: 60 },
    audit: { action: 'recheck_domain', resource: 'domain', id },
    handler: async ({ project, params }, { domains }) => {
      await domains.recheck({ projectId: project, applicationId: params.applicationId }, params.domainId)
      return reply(202, null)
    }
  })
}

function featureRoutes(route: RouteDeclarer<Domains>): void {
  route.list({
    url: `${one}/features`,
    group,
    operationId: 'ListRouteFeatures',
    summary: 'Get Route Features',
    description: 'What is done with requests of the domain, in the order in which it is.',
    problems: [problems.notFound],
    items: feature,
    access: allow.token('read', { project: inDomain }),
    handler: async ({ project, params, page }, { domains }) =>
      await domains.features(
        { projectId: project, applicationId: params.applicationId },
        params.domainId,
        page
      )
  })
  route({
    method: 'PUT',
    url: `${one}/features`,
    group,
    operationId: 'UpsertRouteFeature',
    summary: 'Upsert Route Feature',
    description:
      'Sets the feature of this type. A basic_auth without `hashed_password` keeps the stored one while `username` stays. What the proxy that is on cannot do is refused, with the way to get it.',
    problems: [problems.notFound, problems.badFeatureType, problems.badFeature, problems.unable],
    access: allow.token('write', { project: inDomain }),
    schema: { body: featureBody, response: { 200: feature } },
    audit: { action: 'upsert_route_feature', resource: 'domain', id },
    handler: async ({ project, params, body }, { domains }) =>
      await domains.putFeature(
        { projectId: project, applicationId: params.applicationId },
        params.domainId,
        body
      )
  })
  route({
    method: 'DELETE',
    url: `${one}/features/:featureId`,
    group,
    operationId: 'DeleteRouteFeature',
    summary: 'Delete Route Feature',
    description: 'It is applied to requests no longer.',
    problems: [problems.notFound, problems.featureNotFound],
    access: allow.token('write', { project: inDomain }),
    schema: { params: featureParams, response: { 200: deletedAnswer } },
    audit: { action: 'delete_route_feature', resource: 'domain', id },
    handler: async ({ project, params }, { domains }) =>
      await domains.removeFeature(
        { projectId: project, applicationId: params.applicationId },
        params.domainId,
        params.featureId
      )
  })
}
