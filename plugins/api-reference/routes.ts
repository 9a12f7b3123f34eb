import { allow, type RouteDeclarer, redirect, reply } from 'busbar/sdk'
import type { ApiReference } from './api-reference.js'
import { type PageFile, pageFiles } from './page-files.js'

const group = 'Public'
const description = 'A part of the page that shows this description to people.'
const access = allow.public('the page shows nothing but the public description of the API')

/** Everything comes from this server, nothing is inline, and the page goes nowhere. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join('; ')

export function routes(route: RouteDeclarer<ApiReference>): void {
  const file = (url: `/api/docs${string}`, name: PageFile, operationId: string, summary: string): void => {
    const type = pageFiles[name]
    route({
      method: 'GET',
      url,
      group,
      operationId,
      summary,
      description,
      access,
      produces: type.replace(/;.*/, ''),
      // They stay as they are while the plugin runs.
      version: () => name,
      handler: (_request, { texts }) =>
        reply(200, texts.get(name), {
          headers: {
            'content-type': type,
            'content-security-policy': contentSecurityPolicy,
            'cache-control': 'no-cache'
          }
        })
    })
  }
  route({
    method: 'GET',
    url: '/',
    group,
    operationId: 'Home',
    summary: 'Home',
    description: 'Leads a browser that is given the bare address to the API reference.',
    access,
    schema: { response: { 302: null } },
    handler: () => redirect('/api/docs')
  })
  file('/api/docs', 'index.html', 'GetAPIReference', 'API Reference')
  file('/api/docs/style.css', 'style.css', 'GetAPIReferenceStyle', 'Style of the API Reference')
  file('/api/docs/page.js', 'page.js', 'GetAPIReferencePageScript', 'Script of the API Reference')
  file(
    '/api/docs/operation.js',
    'operation.js',
    'GetAPIReferenceOperationScript',
    'How the API Reference shows an operation'
  )
  file(
    '/api/docs/schema.js',
    'schema.js',
    'GetAPIReferenceSchemaScript',
    'How the API Reference shows a schema'
  )
  file('/api/docs/dom.js', 'dom.js', 'GetAPIReferenceElementScript', 'How the API Reference makes elements')
}
