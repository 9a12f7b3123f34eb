import { allow, type RouteDeclarer, redirect, reply } from 'busbar/sdk'
import type { ApiReference } from './api-reference.js'
import { type PageFile, pageFiles } from './page-files.js'

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
  route({
    method: 'GET',
    url: '/',
    summary: 'Home: leads a browser that is given the bare address to the API reference',
    documented: false,
    access,
    schema: { response: { 302: null } },
    handler: () => redirect('/api/docs')
  })
  for (const [name, type] of Object.entries(pageFiles)) {
    route({
      method: 'GET',
      url: name === 'index.html' ? '/api/docs' : `/api/docs/${name}`,
      summary: `The API reference: ${name}`,
      documented: false,
      access,
      produces: type.replace(/;.*/, ''),
      // They stay as they are while the plugin runs.
      version: () => name,
      handler: (_request, { texts }) =>
        reply(200, texts.get(name as PageFile), {
          headers: {
            'content-type': type,
            'content-security-policy': contentSecurityPolicy,
            'cache-control': 'no-cache'
          }
        })
    })
  }
}
