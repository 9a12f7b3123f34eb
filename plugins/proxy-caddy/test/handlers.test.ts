import { test } from 'tap'
import { handlersFault } from '../handlers.js'

const good: readonly object[] = [
  {
    handler: 'headers',
    response: { set: { 'X-Frame-Options': ['DENY'] }, delete: ['Server'], deferred: true }
  },
  { handler: 'headers', request: { set: { 'X-Path': ['{http.request.uri.path}'] } } },
  { handler: 'rewrite', strip_path_prefix: '/v1', path_regexp: [{ find: '^/a{2,3}', replace: '/b' }] },
  { handler: 'rewrite', uri: '/app{http.request.uri.path}?{http.request.uri.query}' },
  {
    handler: 'subroute',
    routes: [
      {
        match: [{ path: ['/api/*'], not: [{ method: ['GET'] }] }],
        handle: [{ handler: 'headers', response: { add: { 'X-Api': ['1'] } } }],
        terminal: true
      }
    ]
  },
  {
    handler: 'authentication',
    providers: {
      http_basic: {
        accounts: [{ username: 'ann', password: `$2b$10$${'a'.repeat(53)}` }],
        hash: { algorithm: 'bcrypt' }
      }
    }
  }
]

const deep = (handler: object): object => ({ handler: 'subroute', routes: [{ handle: [handler] }] })

const bad: ReadonlyArray<readonly [object, RegExp]> = [
  [{ handler: 'file_server', root: '/' }, /not allowed/],
  [deep({ handler: 'reverse_proxy', upstreams: [{ dial: 'unix//run/caddy.sock' }] }), /not allowed/],
  [deep(deep({ handler: 'templates' })), /not allowed/],
  [{ handler: 'vars', root: '/' }, /not allowed/],
  [{ handler: 'static_response', body: '{env.SECRET}' }, /not allowed/],
  [{ handler: 'constructor' }, /not allowed/],
  [{ handler: '__proto__' }, /not allowed/],
  [{ handler: 'headers', response: { set: { 'X-A': ['{env.SECRET}'] } } }, /placeholder/],
  [{ handler: 'headers', response: { set: { 'X-A': ['\\\\{env.SECRET}'] } } }, /placeholder/],
  [{ handler: 'headers', response: { set: { 'X-A': ['{http.request.{env.X}}'] } } }, /placeholder/],
  [{ handler: 'headers', response: { set: { 'X-A': ['{file./etc/passwd}'] } } }, /placeholder/],
  [{ handler: 'headers', response: { set: { 'X-A': ['{system.hostname}'] } } }, /placeholder/],
  [{ handler: 'headers', response: { set: { '{env.SECRET}': ['a'] } } }, /no name of a header/],
  [{ handler: 'headers', response: { set: { 'Set-Cookie': ['token=x'] } } }, /proxy's own/],
  [{ handler: 'headers', request: { set: { Host: ['localhost'] } } }, /proxy's own/],
  [{ handler: 'headers', request: { delete: ['X_Request_Id'] } }, /proxy's own/],
  [{ handler: 'headers', response: { set: { 'X-A': ['a\r\nSet-Cookie: token=x'] } } }, /line break/],
  [{ handler: 'rewrite', uri: '/x{http.request.uri}' }, /uri\.path/],
  [{ handler: 'rewrite', uri: '/x{http.request.uri.path}' }, /no query/],
  [{ handler: 'rewrite', uri: '/x{http.request.uri.path}?' }, /no query/],
  [{ handler: 'rewrite', uri: '/x{http.request.uri.path}#?a' }, /no query/],
  [{ handler: 'rewrite', uri: '{http.request.orig_uri}' }, /uri\.path/],
  [{ handler: 'rewrite', uri: '{http.request.header.X-A}' }, /uri\.path/],
  [{ handler: 'rewrite', uri: '/{http.request.uri.path.0}' }, /uri\.path/],
  [{ handler: 'rewrite', uri: '/{http.request.orig_uri.path}?a=1' }, /uri\.path/],
  [{ handler: 'rewrite', '@id': 'busbar-installation-x' }, /"@id", which is not allowed/],
  [{ handler: 'subroute', errors: { routes: [] } }, /"errors"/],
  [{ handler: 'subroute', routes: [{ match: [{ file: { root: '/' } }], handle: [] }] }, /"file"/],
  [{ handler: 'subroute', routes: [{ match: [{ expression: 'file("/")' }], handle: [] }] }, /"expression"/],
  [{ handler: 'subroute', routes: [{ match: [{ not: [{ vars: {} }] }], handle: [] }] }, /"vars"/],
  [{ handler: 'subroute', routes: [{ match: [{ host: ['other'] }], handle: [] }] }, /"host"/],
  [{ handler: 'redir', to: '/x' }, /redirect/],
  [
    {
      handler: 'authentication',
      providers: { http_basic: { accounts: [{ username: 'a', password: 'b' }] } }
    },
    /bcrypt/
  ],
  [
    {
      handler: 'authentication',
      providers: { http_basic: { accounts: [{ username: 'a', password: `$2b$31$${'a'.repeat(53)}` }] } }
    },
    /cost/
  ],
  [{ handler: 'authentication', providers: { forward_auth: {} } }, /"forward_auth"/]
]

test('handlers that only change a request or an answer are taken', async t => {
  for (const handler of good) t.equal(handlersFault([handler]), null, JSON.stringify(handler))
})

test('what could read the machine, reach another host or set cookies of the platform is refused', async t => {
  for (const [handler, fault] of bad) t.match(handlersFault([handler]), fault, JSON.stringify(handler))
})
